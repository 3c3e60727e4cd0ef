// half_scales.cu - how far a sample of the rows lies from the shift.
#include "moments/products.cuh"

namespace pgkm::cuda::moments {
namespace {

// One block per segment and stretch of the sample; all but the segments of index 0 have nothing to do.
__global__ void largest_kernel(const float *values, int d, const Segment *segments, HalfScales scales)
{
    const Segment segment = segments[blockIdx.x];
    const int f = static_cast<int>(threadIdx.x);
    if (segment.index != 0 || f >= d)
        return;
    const std::int64_t count = min(static_cast<long long>(segment.n_rows), static_cast<long long>(most_sample_rows));
    const float shift = scales.shift[segment.shift + f];
    float largest = 0.0f;
#pragma unroll 8
    for (std::int64_t i = blockIdx.y; i < count; i += gridDim.y)
        largest = fmaxf(largest, fabsf(values[(segment.first_row + sample_row(segment.n_rows, i)) * d + f] - shift));
    // Floats that are not negative are in the order of their bits.
    atomicMax(reinterpret_cast<int *>(scales.largest + segment.shift + f), __float_as_int(largest));
}

} // namespace

void find_largest(Context &context, const float *values, int d, const Segment *segments, std::int64_t n_segments,
                  const HalfScales &scales)
{
    const dim3 grid(static_cast<unsigned>(n_segments), 32);
    largest_kernel<<<grid, tile, 0, context.compute.get()>>>(values, d, segments, scales);
    launched("largest_kernel");
}

} // namespace pgkm::cuda::moments
