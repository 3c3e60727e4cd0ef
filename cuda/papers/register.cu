// register.cu - assignment of float64 rows with the point in registers. float32 rows: fused/register.cu,
// labels alone.
//
// Without a filter: the contract's own float64 distance at half the rate of float32 costs less
// than settling would. To use: d <= 16; other d are walked by the generic kernel.
#include "plan/stages.hpp"

namespace pgkm::cuda {

template <>
void assign_register<double>(const Stage<double> &stage, const View<double> &view, std::int32_t *labels)
{
    assign_register_shared(stage, view, labels);
}

} // namespace pgkm::cuda
