// filter_coefficients.cu (mixture) - what the filter of candidates.cu makes of a mixture, on the device.
//
// Data: a warp for each feature's scale, then a warp for each component. Terms of the error bound are those that
// candidates.cu derives; they are found in float64 and rounded to float32, far less than the bound has to spare.
#include <cuda_bf16.h>

#include "mixture/sparse.hpp"
#include "mixture/stages.hpp"

namespace pgkm::cuda::mixture {
namespace {

// A warp for each feature: the power of two near the components' mean factor, by their exponents.
template <typename T>
__global__ void __launch_bounds__(128) scales_kernel(SparseLaunch<T> launch, float *scales, int features)
{
    const int k = launch.mixture->k, d = launch.d;
    const int f = static_cast<int>(blockIdx.x) * 4 + static_cast<int>(threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (f >= features)
        return;
    double sum = 0.0;
    for (int j = lane; j < k && f < d; j += 32)
        sum += ilogb(launch.factor(j, f));
    sum = sum_lanes(sum);
    if (lane == 0)
        scales[f] = f < d ? ldexpf(1.0f, max(-100, min(100, static_cast<int>(sum / k)))) : 0.0f;
}

// A warp for each component.
template <typename T>
__global__ void __launch_bounds__(128) filter_kernel(SparseLaunch<T> launch)
{
    const MixtureView &mixture = *launch.mixture;
    const int d = launch.d;
    const bool diagonal = launch.diagonal;
    float *const filter = launch.arrays.filter;
    const FilterLayout layout(mixture.k, d, diagonal);
    const std::int64_t j = blockIdx.x * 4 + threadIdx.x / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (j >= layout.components)
        return;
    const float *scales = filter + layout.scales();
    auto *linear = reinterpret_cast<__nv_bfloat16 *>(filter) + j * layout.features;
    auto *square = linear + layout.components * layout.features;
    double constant = 0.0, linear_norm = 0.0, square_norm = 0.0;
    for (int f = lane; f < layout.features; f += 32) {
        const bool inside = j < mixture.k && f < d;
        const double w = inside ? launch.factor(j, f) : 0.0;
        const double m = inside ? mixture.means[j * d + f] - mixture.origin[f] : 0.0;
        const double inverse = inside ? 1.0 / static_cast<double>(scales[f]) : 0.0;
        const double a = w * m * (w * inverse), b = -0.5 * (w * inverse) * (w * inverse);
        linear[f] = __float2bfloat16_rn(static_cast<float>(a));
        linear_norm += a * a;
        if (diagonal) {
            square[f] = __float2bfloat16_rn(static_cast<float>(b));
            square_norm += b * b;
        }
        constant -= 0.5 * (w * m) * (w * m);
    }
    constant = sum_lanes(constant);
    linear_norm = sum_lanes(linear_norm);
    square_norm = sum_lanes(square_norm);
    if (lane != 0)
        return;
    const double of_steps = static_cast<double>(layout.runs * layout.features / 16) * 0x1p-18;
    float4 terms = make_float4(-INFINITY, 0.0f, 0.0f, 0.0f);
    if (j < mixture.k) {
        const double w = diagonal ? 0.0 : launch.factor(j, 0) / static_cast<double>(scales[0]);
        constant += mixture.constants[j];
        terms.x = static_cast<float>(constant);
        terms.y = static_cast<float>((2.1 * 0x1p-9 + of_steps) * sqrt(linear_norm));
        terms.z = static_cast<float>(diagonal ? (4.1 * 0x1p-9 + of_steps) * sqrt(square_norm) : -0.5 * w * w);
        terms.w = static_cast<float>(0x1p-22 * fabs(constant));
    }
    reinterpret_cast<float4 *>(filter + layout.terms())[j] = terms;
}

} // namespace

template <typename T>
void prepare_filter(const SparseLaunch<T> &launch, std::int64_t k, cudaStream_t stream)
{
    const FilterLayout layout(k, launch.d, launch.diagonal);
    scales_kernel<<<static_cast<unsigned>(layout.features / 4), 128, 0, stream>>>(
        launch, launch.arrays.filter + layout.scales(), static_cast<int>(layout.features));
    launched("scales_kernel");
    filter_kernel<<<static_cast<unsigned>(layout.components / 4), 128, 0, stream>>>(launch);
    launched("filter_kernel");
}

template void prepare_filter<float>(const SparseLaunch<float> &, std::int64_t, cudaStream_t);
template void prepare_filter<double>(const SparseLaunch<double> &, std::int64_t, cudaStream_t);

} // namespace pgkm::cuda::mixture
