// register.cu - assignment of rows in registers. Of up to 16 features a thread has a row: float32 rows by the kernels
// that iterates over them, labels alone (few.cu). Of more features a warp has some rows, under up to 16
// centroids (assign/wide_rows.cu). float64 rows by the contract's own distance, for at half the rate of float32
// it costs less than a filter and its settling.
#include "assign/wide_rows.hpp"
#include "fused/moves.hpp"

namespace pgkm::cuda {
namespace {

void assign(const Stage<float> &stage, const View<float> &view, std::int32_t *labels)
{
    const Shape shape = {view.n, view.d, view.k, false, false};
    if (fits_wide(shape, stage.context.facts))
        return assign_wide(stage, view, labels);
    if (stage.middle.shift == nullptr || !fits_register(shape, stage.context.facts))
        return assign_generic(stage, view, labels);
    MoveArguments a{};
    a.view = view;
    a.shift = stage.middle.shift;
    a.reach = stage.middle.reach;
    a.update.control = const_cast<Control *>(stage.control); // read alone
    a.labels = labels;
    label_few(stage, a);
}

void assign_exactly(const Stage<double> &stage, const View<double> &view, std::int32_t *labels)
{
    Stage<double> as_loaded = stage;
    as_loaded.prepared = nullptr; // its own use of the rows, and no second copy of them
    view.d <= register_d ? assign_register_shared(as_loaded, view, labels) : assign_generic(stage, view, labels);
}

} // namespace

const Both<Assign> assign_register = {assign, assign_exactly};

} // namespace pgkm::cuda
