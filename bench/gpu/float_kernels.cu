#include "float_kernels.hpp"

#include <algorithm>

#include "check.hpp"

namespace bench {
namespace {

constexpr int threads = 256;
constexpr int points = 4; // rows of a thread at a time
constexpr int room = 98304; // bytes of a block's centroids or sums

__global__ void halves_kernel(FloatProblem p, float *halves)
{
    for (int j = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); j < p.k; j += static_cast<int>(gridDim.x * blockDim.x)) {
        float sum = 0.0f;
        for (int f = 0; f < p.d; ++f)
            sum = __fmaf_rn(p.centroids[std::int64_t{j} * p.d + f], p.centroids[std::int64_t{j} * p.d + f], sum);
        halves[j] = sum / 2;
    }
}

// Centroids of D padded features and their halves in shared memory; four rows in registers.
template <int D, bool Sums>
__global__ void __launch_bounds__(threads) point_kernel(FloatProblem p, const float *halves, int replicas)
{
    extern __shared__ float4 memory[];
    float *centroids = reinterpret_cast<float *>(memory); // k x D
    float *half = centroids + p.k * D;
    float *own = half + p.k; // k x (d + 1) x replicas: neighbouring threads never meet in a bank
    const int cells = p.k * (p.d + 1);
    for (int i = threadIdx.x; i < p.k * D; i += threads)
        centroids[i] = i % D < p.d ? p.centroids[i / D * p.d + i % D] : 0.0f;
    for (int i = threadIdx.x; i < p.k; i += threads)
        half[i] = halves[i];
    for (int i = threadIdx.x; Sums && i < replicas * cells; i += threads)
        own[i] = 0.0f;
    __syncthreads();
    for (std::int64_t start = std::int64_t{blockIdx.x} * threads * points; start < p.n;
         start += std::int64_t{gridDim.x} * threads * points) {
        float x[points][D], best[points];
        int label[points];
#pragma unroll
        for (int i = 0; i < points; ++i) {
            const std::int64_t row = start + i * threads + threadIdx.x;
            best[i] = INFINITY;
            label[i] = 0;
#pragma unroll
            for (int f = 0; f < D; ++f)
                x[i][f] = f < p.d && row < p.n ? -p.values[row * p.d + f] : 0.0f;
        }
        for (int j = 0; j < p.k; ++j) {
#pragma unroll
            for (int i = 0; i < points; ++i) {
                float score = half[j];
#pragma unroll
                for (int f = 0; f < D; ++f)
                    score = __fmaf_rn(x[i][f], centroids[j * D + f], score);
                label[i] = score < best[i] ? j : label[i];
                best[i] = fminf(best[i], score);
            }
        }
#pragma unroll
        for (int i = 0; i < points; ++i) {
            const std::int64_t row = start + i * threads + threadIdx.x;
            if (row >= p.n)
                break;
            if (!Sums) {
                p.labels[row] = label[i];
                continue;
            }
            float *cell = own + label[i] * (p.d + 1) * replicas + static_cast<int>(threadIdx.x) % replicas;
#pragma unroll
            for (int f = 0; f < D; ++f)
                if (f < p.d)
                    atomicAdd(cell + f * replicas, -x[i][f]);
            atomicAdd(cell + p.d * replicas, 1.0f);
        }
    }
    if (!Sums)
        return;
    __syncthreads();
    for (int i = threadIdx.x; i < cells; i += threads) {
        float sum = 0.0f;
        for (int r = 0; r < replicas; ++r)
            sum += own[i * replicas + r];
        const int j = i / (p.d + 1), f = i % (p.d + 1);
        atomicAdd(f < p.d ? p.sums + std::int64_t{j} * p.d + f : p.counts + j, sum);
    }
}

// 128 rows x 64 centroids per step, 8 x 4 products per thread (Li et al. 2010, Algorithm 4).
__global__ void __launch_bounds__(threads) product_kernel(FloatProblem p, const float *halves)
{
    constexpr int rows = 128, columns = 64, depth = 16;
    __shared__ float a[depth][rows + 4], b[depth][columns + 4];
    const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
    for (std::int64_t start = std::int64_t{blockIdx.x} * rows; start < p.n; start += std::int64_t{gridDim.x} * rows) {
        float best[8];
        int label[8];
        for (int i = 0; i < 8; ++i) {
            best[i] = INFINITY;
            label[i] = 0;
        }
        for (int first = 0; first < p.k; first += columns) {
            float product[8][4] = {};
            for (int f0 = 0; f0 < p.d; f0 += depth) {
                __syncthreads();
                for (int i = threadIdx.x; i < rows * depth; i += threads) {
                    const std::int64_t row = start + i / depth;
                    const int f = f0 + i % depth;
                    a[i % depth][i / depth] = row < p.n && f < p.d ? p.values[row * p.d + f] : 0.0f;
                }
                for (int i = threadIdx.x; i < columns * depth; i += threads) {
                    const int j = first + i / depth, f = f0 + i % depth;
                    b[i % depth][i / depth] = j < p.k && f < p.d ? p.centroids[std::int64_t{j} * p.d + f] : 0.0f;
                }
                __syncthreads();
#pragma unroll
                for (int f = 0; f < depth; ++f) {
                    float left[8], right[4];
#pragma unroll
                    for (int i = 0; i < 8; ++i)
                        left[i] = a[f][ty * 8 + i];
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        right[j] = b[f][tx * 4 + j];
#pragma unroll
                    for (int i = 0; i < 8; ++i)
#pragma unroll
                        for (int j = 0; j < 4; ++j)
                            product[i][j] = __fmaf_rn(left[i], right[j], product[i][j]);
                }
            }
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int column = first + tx * 4 + j;
                    const float score = column < p.k ? halves[column] - product[i][j] : INFINITY;
                    label[i] = score < best[i] ? column : label[i];
                    best[i] = fminf(best[i], score);
                }
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            for (int offset = 8; offset > 0; offset >>= 1) {
                const float other = __shfl_xor_sync(~0u, best[i], offset);
                const int its = __shfl_xor_sync(~0u, label[i], offset);
                if (other < best[i]) {
                    best[i] = other;
                    label[i] = its;
                }
            }
            const std::int64_t row = start + ty * 8 + i;
            if (tx == 0 && row < p.n)
                p.labels[row] = label[i];
        }
    }
}

// One value per thread and step; lanes add to copies of their own.
template <bool Shared>
__global__ void __launch_bounds__(threads) sums_kernel(FloatProblem p, int replicas)
{
    extern __shared__ float4 memory[];
    float *own = reinterpret_cast<float *>(memory); // k x d x replicas, then k x replicas of counts
    const int cells = p.k * (p.d + 1), mine = static_cast<int>(threadIdx.x) % max(replicas, 1);
    for (int i = threadIdx.x; Shared && i < replicas * cells; i += threads)
        own[i] = 0.0f;
    __syncthreads();
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < p.n * p.d; i += stride) {
        const std::int64_t row = i / p.d;
        const int f = static_cast<int>(i - row * p.d), label = p.labels[row];
        const int cell = label * p.d + f, count = p.k * p.d + label;
        atomicAdd(Shared ? own + cell * replicas + mine : p.sums + cell, p.values[i]);
        if (f == 0)
            atomicAdd(Shared ? own + count * replicas + mine : p.counts + label, 1.0f);
    }
    __syncthreads();
    for (int i = threadIdx.x; Shared && i < cells; i += threads) {
        float sum = 0.0f;
        for (int r = 0; r < replicas; ++r)
            sum += own[i * replicas + r];
        atomicAdd(i < p.k * p.d ? p.sums + i : p.counts + (i - p.k * p.d), sum);
    }
}

// The largest power of two of copies, up to 32, that fit.
int copies_within(std::int64_t bytes, std::int64_t copy)
{
    int copies = 1;
    while (copies < 32 && 2 * copies * copy <= bytes)
        copies *= 2;
    return copies;
}

int blocks_of(const FloatProblem &p, std::int64_t rows_per_block)
{
    return static_cast<int>(std::clamp<std::int64_t>((p.n + rows_per_block - 1) / rows_per_block, 1, p.multiprocessors * 8));
}

int padded(int d) { return d <= 2 ? 2 : d <= 4 ? 4 : d <= 8 ? 8 : 16; }

template <typename Kernel>
void allow(Kernel kernel, int bytes)
{
    pgkm::cuda::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "cudaFuncSetAttribute");
}

template <int D, bool Sums>
void launch_points(const FloatProblem &p, const float *halves, cudaStream_t stream)
{
    const int fixed = p.k * (D + 1) * 4, copy = p.k * (p.d + 1) * 4;
    const int replicas = Sums ? copies_within(room - fixed, copy) : 0, bytes = fixed + replicas * copy;
    allow(point_kernel<D, Sums>, bytes);
    point_kernel<D, Sums><<<blocks_of(p, threads * points), threads, static_cast<std::size_t>(bytes), stream>>>(p, halves, replicas);
    pgkm::cuda::launched("point_kernel");
}

template <bool Sums>
void points_of(const FloatProblem &p, const float *halves, cudaStream_t stream)
{
    switch (padded(p.d)) {
    case 2: return launch_points<2, Sums>(p, halves, stream);
    case 4: return launch_points<4, Sums>(p, halves, stream);
    case 8: return launch_points<8, Sums>(p, halves, stream);
    default: return launch_points<16, Sums>(p, halves, stream);
    }
}

} // namespace

bool fits_fused(int d, int k) { return d <= 16 && k * (padded(d) + 1 + d + 1) * 4 <= room; }

void halves(const FloatProblem &p, float *out, cudaStream_t stream)
{
    halves_kernel<<<(p.k + 127) / 128, 128, 0, stream>>>(p, out);
    pgkm::cuda::launched("halves_kernel");
}

void float_labels(const FloatProblem &p, const float *halves, cudaStream_t stream)
{
    if (p.d <= 16 && p.k * (padded(p.d) + 1) * 4 <= room)
        return points_of<false>(p, halves, stream);
    product_kernel<<<blocks_of(p, 128), threads, 0, stream>>>(p, halves);
    pgkm::cuda::launched("product_kernel");
}

void float_sums(const FloatProblem &p, cudaStream_t stream)
{
    const std::int64_t copy = std::int64_t{p.k} * (p.d + 1) * 4;
    const int blocks = blocks_of({p.values, p.centroids, p.n * p.d, p.d, p.k, p.labels, p.sums, p.counts, p.multiprocessors}, threads * 16);
    if (copy <= room) {
        const int replicas = copies_within(room, copy), bytes = static_cast<int>(replicas * copy);
        allow(sums_kernel<true>, bytes);
        sums_kernel<true><<<blocks, threads, static_cast<std::size_t>(bytes), stream>>>(p, replicas);
    } else {
        sums_kernel<false><<<blocks, threads, 0, stream>>>(p, 1);
    }
    pgkm::cuda::launched("sums_kernel");
}

void float_fused(const FloatProblem &p, const float *halves, cudaStream_t stream) { points_of<true>(p, halves, stream); }

} // namespace bench
