// register_global.cu - assignment with the row in registers and the centroids in global memory
// (Li, Zhao, Chu, Liu 2010, Algorithm 3; Aggarwal 2013, section 4.1). To use: d <= 22, and so many centroids that they
// leave shared and constant memory.
#include "assign/exact_rows.cuh"

namespace pgkm::cuda {
namespace {

template <typename T>
void assign(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    const bool fits = with_exact_size(view.d, [&](auto size) {
        launch_exact_rows<decltype(size)::value>(stage, view, by_feature(stage, view),
                                                 GlobalRoom<T>{view.centroids, view.d}, 0, labels, 0, view.k);
    });
    if (!fits)
        assign_generic(stage, view, labels);
}

} // namespace

const Both<Assign> assign_register_global = {assign<float>, assign<double>};

} // namespace pgkm::cuda
