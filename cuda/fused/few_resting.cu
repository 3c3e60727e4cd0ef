// few_resting.cu (fused) - an iteration over rows of few features and clusters of which most rest
// (resting.hpp): what is left is gathered.
//
// A warp looks at the cells of 512 rows at a time, 16 by a lane, in bits that the block keeps in
// shared memory. Rows that do not rest wait in a queue of the warp until they fill a tile of few.cuh; their
// values are then loaded all at once. To use: where rest_kernel finds that it serves.
#include "fused/few.cuh"
#include "fused/resting.hpp"

namespace pgkm::cuda {
namespace {

constexpr int rest_words = resting_cells / 32;
constexpr int per_lane = resting_stride / 32;
constexpr int loads = per_lane / 8; // of eight cell numbers each

// Entries of a warp's queue: a stretch's rows beside those that do not fill a tile.
template <int D>
constexpr int awake = resting_stride + 32 * rows_per_thread<D>;
template <int D>
constexpr int resting_words = rest_words + warps * awake<D>;

// Rows of the warp that are to be read.
struct Awake {
    std::int32_t *rows;
    int           count;

    // Rows first + i of those bits i that are set. By all lanes.
    __device__ void push(unsigned wanted, int first)
    {
        const int lane = static_cast<int>(threadIdx.x & 31), own = __popc(wanted);
        int upto = own;
        for (int offset = 1; offset < 32; offset *= 2) {
            const int before = __shfl_up_sync(~0u, upto, static_cast<unsigned>(offset));
            upto += lane >= offset ? before : 0;
        }
        for (int place = count + upto - own; wanted != 0; wanted &= wanted - 1)
            rows[place++] = first + __ffs(static_cast<int>(wanted)) - 1;
        count += __shfl_sync(~0u, upto, 31);
    }
};

// Cell numbers of a lane's rows.
struct Numbers {
    uint4 eight[loads];
};

// The last 32 P of the queue, or all there are: n where a lane gets none.
template <int P>
__device__ void pop(Awake &queue, int n, int (&row)[P])
{
    __syncwarp();
    const int taken = min(queue.count, 32 * P);
    queue.count -= taken;
#pragma unroll
    for (int p = 0; p < P; ++p) {
        const int place = p * 32 + static_cast<int>(threadIdx.x & 31);
        row[p] = place < taken ? queue.rows[queue.count + place] : n;
    }
    __syncwarp();
}

template <int D, int P, bool Padded>
__device__ void gather(const MoveArguments &a, const int (&row)[P], Tile<D, P> &tile)
{
    const int most = static_cast<int>(a.view.n) - 1, d = Padded ? a.view.d : D;
    const auto *labels = static_cast<const std::uint8_t *>(a.last.values);
#pragma unroll
    for (int p = 0; p < P; ++p) {
        const int known = min(row[p], most);
        load_row<D>(a.view.values, known, d, tile.x[p]);
        tile.last[p] = labels[known];
    }
}

// Pushes those of the lane's rows whose cells do not rest.
__device__ __forceinline__ void look(const std::uint32_t *rest, const Numbers &numbers, int first, int n, Awake &queue)
{
    const auto *pairs = reinterpret_cast<const unsigned *>(&numbers);
    unsigned resting = 0;
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
        const unsigned cell = i % 2 == 0 ? pairs[i / 2] & 0xffff : pairs[i / 2] >> 16;
        resting |= (rest[cell / 32] >> (cell % 32) & 1) << i;
    }
    const int there = min(max(n - first, 0), per_lane);
    const unsigned wanted = ~resting & ((1u << there) - 1);
    if (__any_sync(~0u, wanted != 0))
        queue.push(wanted, first);
}

template <int D, int P, int Few, bool Padded>
__global__ void __launch_bounds__(threads, 2)
    few_resting_kernel(const __grid_constant__ MoveArguments a, const __grid_constant__ RestingGrid grid)
{
    if (block_stopped(a.update) || !grid.state->serves)
        return;
    std::int32_t *memory = shared_words(0);
    auto *rest = reinterpret_cast<std::uint32_t *>(memory);
    for (int i = static_cast<int>(threadIdx.x); i < (1 << (grid.bits * grid.d)) / 32; i += threads)
        rest[i] = grid.rest[i];
    const Shared shared = carve<D>(resting_words<D>);
    const MoveCells cells = {static_cast<int>(shared.cells - memory), a.view.k, a.view.d, replicas};
    cells.clear();
    cells.prepare_scales(a.view, a.floats);
    const float margin = prepare<D>(a, shared);
    const int n = static_cast<int>(a.view.n), lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
    Later later(shared.later);
    auto *carried = reinterpret_cast<Values<D> *>(shared.carried) + warp * waiting<D>;
    Awake queue = {memory + rest_words + warp * awake<D>, 0};
    const int step = static_cast<int>(gridDim.x) * warps * resting_stride;
    int first = (static_cast<int>(blockIdx.x) * warps + warp) * resting_stride;
    // Numbers of a warp's stretch of rows; there is room for a whole one behind the last row.
    const auto numbers_of = [&](int start) {
        Numbers numbers{};
        if (start < n)
#pragma unroll
            for (int i = 0; i < loads; ++i)
                numbers.eight[i] = __ldcs(reinterpret_cast<const uint4 *>(grid.of_row + a.first + start) + lane * loads + i);
        return numbers;
    };
    Numbers next = numbers_of(first);
    for (bool end = first >= n;; first += step, end = first >= n) {
        if (!end) {
            const Numbers numbers = next;
            next = numbers_of(first + step);
            look(rest, numbers, first + lane * per_lane, n, queue);
        }
        while (queue.count >= 32 * P || (end && queue.count > 0)) {
            int row[P];
            pop<P>(queue, n, row);
            Tile<D, P> tile;
            gather<D, P, Padded>(a, row, tile);
            take_tile<D, P, Few>(a, shared, cells, later, carried, margin, tile, row);
            while (later.full())
                take_later<D>(a, cells, later, carried);
        }
        if (end)
            break;
    }
    while (!later.empty())
        take_later<D>(a, cells, later, carried);
    __syncthreads();
    cells.publish(a.update.sums);
    if (a.finish && arrives_last(&a.update.control->arrived))
        finish_iteration(a.update, shared.cells);
}

template <int D, int P, int Few, bool Padded>
void launch(const Stage<float> &stage, const MoveArguments &a, const RestingGrid &grid)
{
    const std::size_t bytes = resting_words<D> * 4 + shared_bytes<D>(a);
    const auto kernel = few_resting_kernel<D, P, Few, Padded>;
    checked("cudaFuncSetAttribute", [&] {
        return allow_shared_memory(kernel, static_cast<int>(bytes));
    });
    int per_unit = 0;
    checked("cudaOccupancy", [&] {
        return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, kernel, threads, bytes);
    });
    const int most = stage.context.facts.multiprocessors * std::max(per_unit, 1);
    in_moves(a, most, warps * resting_stride, [&](const MoveArguments &part, int blocks) {
        kernel<<<blocks, threads, bytes, stage.stream>>>(part, grid);
        launched("few_resting_kernel");
    });
}

} // namespace

void iterate_few_resting(const Stage<float> &stage, const MoveArguments &a, const RestingGrid &grid)
{
    for_few(a.view, [&](auto size, auto few, auto padded) {
        constexpr int D = decltype(size)::value;
        if constexpr (D <= cells_d)
            launch<D, rows_per_thread<D>, decltype(few)::value, decltype(padded)::value>(stage, a, grid);
    });
}

} // namespace pgkm::cuda
