// register_shared.cu - assignment with the point in registers and the centroids in shared memory, as
// many at a time as 32 KB hold (Li, Zhao, Chu, Liu 2010, Algorithm 3 with its centroids staged).
// To use: d <= 16; each block loads the centroids once for all its rows when they fit.
#include "plan/stages.hpp"
#include "papers/point.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int room = 32768; // bytes of shared memory per block

template <int D, typename T>
__global__ void __launch_bounds__(threads) register_shared_kernel(View<T> view, const Control *control, std::int32_t *labels,
                                                                  int batch)
{
    if (block_stopped(control))
        return;
    extern __shared__ double centroids[]; // as float64: converted once, not for every row
    const bool whole = batch >= view.k; // loaded once
    for (std::int64_t start = std::int64_t{blockIdx.x} * threads; start < view.n; start += std::int64_t{gridDim.x} * threads) {
        const std::int64_t row = start + threadIdx.x;
        Point<D> point = load_point<D>(view, row < view.n ? row : start);
        Nearest best = none_yet();
        for (int first = 0; first < view.k; first += batch) {
            const int count = min(batch, view.k - first);
            if (!whole || start == std::int64_t{blockIdx.x} * threads) {
                __syncthreads();
                for (int i = threadIdx.x; i < count * view.d; i += threads)
                    centroids[i] = static_cast<double>(view.centroids[std::int64_t{first} * view.d + i]);
                __syncthreads();
            }
            best = nearer(point, centroids, count, view.d, first, best);
        }
        if (row < view.n)
            labels[row] = best.label;
    }
}

} // namespace

template <typename T>
void assign_register_shared(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    const int batch = std::min(view.k, std::max(room / (view.d * 8), 1));
    const std::size_t bytes = static_cast<std::size_t>(batch) * static_cast<std::size_t>(view.d) * 8;
    const bool fits = with_register_size(view.d, [&](auto size) {
        constexpr int D = decltype(size)::value;
        in_exact_launches(stage, view, 1e12, [&](std::int64_t first, std::int64_t rows) {
            const int blocks = blocks_for(rows, threads, stage.context.facts.multiprocessors * 6);
            register_shared_kernel<D><<<blocks, threads, bytes, stage.stream>>>(slice(view, first, rows), stage.control,
                                                                                   labels + first, batch);
            launched("register_shared_kernel");
        });
    });
    if (!fits)
        assign_generic(stage, view, labels);
}

template void assign_register_shared<float>(const Stage<float> &, const View<float> &, std::int32_t *);
template void assign_register_shared<double>(const Stage<double> &, const View<double> &, std::int32_t *);

} // namespace pgkm::cuda
