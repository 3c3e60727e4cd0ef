// register.cu - assignment with the point in registers (Aggarwal 2013, section 4.1; Li et al.
// 2010, Algorithm 3): the fused register kernel with labels in place of sums.
#include "../stages.hpp"

namespace pgkm::cuda {
template <typename T>
void assign_register(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    assign_generic(stage, view, labels);
}
template void assign_register<float>(const Stage<float> &, const View<float> &, std::int32_t *);
template void assign_register<double>(const Stage<double> &, const View<double> &, std::int32_t *);
template <typename T>
void assign_tiled(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    assign_generic(stage, view, labels);
}
template void assign_tiled<float>(const Stage<float> &, const View<float> &, std::int32_t *);
template void assign_tiled<double>(const Stage<double> &, const View<double> &, std::int32_t *);
void fused_register(const Stage<float> &stage, const View<float> &view, const Accumulators &sums)
{
    fused_generic(stage, view, sums);
}
} // namespace pgkm::cuda
