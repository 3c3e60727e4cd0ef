// distance_matrix.cu - all n x k distances are written to global memory, and a second kernel finds the least of each
// row (Li, Zhao, Chu, Liu 2010, Algorithm 4). Distances are the contract's, without a square root, which could tie two.
//
// A block of 16 x 2 threads makes 16 rows x 32 columns: a tile of 16 rows x 16 features at a time in shared memory, a
// column and its 16 sums in each thread's registers. Centroids come by the caches, for the lanes read different ones,
// which constant memory would serve one by one. To use: to compare.
#include "device/exact.cuh"
#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

constexpr int side = 16, lines = 2, columns = side * lines;

template <typename T>
__global__ void __launch_bounds__(side *lines) distances_kernel(View<T> view, const Control *control, double *matrix)
{
    if (block_stopped(control))
        return;
    __shared__ double tile[side][side];
    const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
    const std::int64_t first = std::int64_t{blockIdx.x} * side;
    const int column = static_cast<int>(blockIdx.y) * columns + y * side + x;
    const T *centroid = view.centroids + std::int64_t{min(column, view.k - 1)} * view.d;
    double sums[side] = {};
    for (int from = 0; from < view.d; from += side) {
        for (int i = y; i < side; i += lines) {
            const bool there = first + i < view.n && from + x < view.d;
            tile[i][x] = there ? static_cast<double>(view.values[(first + i) * view.d + from + x]) : 0.0;
        }
        __syncthreads();
        const int count = min(side, view.d - from);
        for (int f = 0; f < count; ++f) {
            const double value = static_cast<double>(centroid[from + f]);
#pragma unroll
            for (int i = 0; i < side; ++i) {
                const double difference = tile[i][f] - value;
                sums[i] = ::fma(difference, difference, sums[i]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < side; ++i)
        if (column < view.k && first + i < view.n)
            matrix[(first + i) * view.k + column] = sums[i];
}

// A row a thread.
__global__ void least_kernel(const Control *control, const double *matrix, std::int64_t n, int k, std::int32_t *labels)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (stopped(control) || row >= n)
        return;
    Nearest best = {__longlong_as_double(0x7ff0000000000000LL), 0};
    for (int j = 0; j < k; ++j)
        if (matrix[row * k + j] < best.distance)
            best = {matrix[row * k + j], j};
    labels[row] = best.label;
}

template <typename T>
void assign(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    constexpr std::uint64_t most_bytes = std::uint64_t{256} << 20;
    const std::uint64_t line = static_cast<std::uint64_t>(view.k) * sizeof(double);
    const std::int64_t blocks_of_columns = (std::int64_t{view.k} + columns - 1) / columns;
    const auto held = static_cast<std::int64_t>(std::min(stage.context.scratch_room(), most_bytes) / line);
    const std::int64_t step = std::min(held, view.n);
    if (step < 1 || blocks_of_columns > 65535)
        return assign_generic(stage, view, labels);
    auto *matrix = reinterpret_cast<double *>(stage.context.scratch(static_cast<std::size_t>(step) * line));
    in_exact_launches(stage, view, 2e11, [&](std::int64_t first, std::int64_t rows) {
        for (std::int64_t done = 0; done < rows; done += step) {
            const View<T> part = slice(view, first + done, std::min(step, rows - done));
            const dim3 grid(static_cast<unsigned>((part.n + side - 1) / side),
                            static_cast<unsigned>(blocks_of_columns));
            distances_kernel<<<grid, dim3(side, lines), 0, stage.stream>>>(part, stage.control, matrix);
            launched("distances_kernel");
            least_kernel<<<static_cast<unsigned>((part.n + 127) / 128), 128, 0, stage.stream>>>(
                stage.control, matrix, part.n, part.k, labels + first + done);
            launched("least_kernel");
        }
    });
}

} // namespace

const Both<Assign> assign_distance_matrix = {assign<float>, assign<double>};

} // namespace pgkm::cuda
