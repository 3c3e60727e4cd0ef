#include "papers/constant.hpp"

namespace pgkm::cuda {
namespace {

template <typename T>
__global__ void fill_kernel(double *room, const T *centroids, int count, int d)
{
    const int groups = (count + constant_group - 1) / constant_group;
    for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < groups * d * constant_group;
         i += static_cast<int>(gridDim.x * blockDim.x)) {
        const int place = i % constant_group, f = i / constant_group % d, j = i / (constant_group * d) * constant_group + place;
        room[i] = j < count ? static_cast<double>(centroids[std::int64_t{j} * d + f]) : __longlong_as_double(0x7ff8000000000000LL);
    }
}

} // namespace

std::atomic<bool> &ConstantLease::taken()
{
    static std::atomic<bool> flag{false};
    return flag;
}

template <typename T>
void fill_constant(double *room, const T *centroids, int count, int d, cudaStream_t stream)
{
    fill_kernel<<<8, 256, 0, stream>>>(room, centroids, count, d);
    launched("fill_kernel");
}

template void fill_constant<float>(double *, const float *, int, int, cudaStream_t);
template void fill_constant<double>(double *, const double *, int, int, cudaStream_t);

} // namespace pgkm::cuda
