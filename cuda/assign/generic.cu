// generic.cu - assignment for any d, k and element type, without a filter: rows are walked, centroids lie in global
// memory (exact_rows.cuh). To use: float64 data, and shapes that no filter kernel takes.
#include "assign/exact_rows.cuh"

namespace pgkm::cuda {
namespace {

template <typename T>
void assign(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    const RowValues<T> values = {view.values, view.d, 1};
    launch_exact_rows<0>(stage, view, values, GlobalRoom<T>{view.centroids, view.d}, 0, labels, 0, view.k);
}

} // namespace

const Both<Assign> assign_generic = {assign<float>, assign<double>};

} // namespace pgkm::cuda
