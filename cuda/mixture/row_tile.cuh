// row_tile.cuh (mixture) - what the fused kernels share (diagonal_warp.cuh, diagonal_tile.cuh, full_tile.cuh): the
// tile of rows in shared memory, the loop over tiles, and where a thread stands in its warp.
//
// Data: the tile's rows about the mixture's origin, y = x - origin, in float64, of Block::features features; zeros
// where there is no row or feature. Behind them lie, where Block has room for them, the rows' responsibilities,
// component by component. A small tile's values wait in registers while the tile before is worked on, a large one's
// in the L2 cache.
// Threads: a block waits for its warps three times a tile: rows loaded, responsibilities found, both read.
#pragma once

#include "device/mma.cuh"
#include "mixture/items.cuh"
#include "mixture/log_sum_exp.cuh"

namespace pgkm::cuda::mixture {

// `count` values from device memory to shared memory, or zeros; the whole block.
template <typename Block>
__device__ inline void fill(double *to, const double *from, int count)
{
    for (int i = static_cast<int>(threadIdx.x); i < count; i += Block::threads)
        to[i] = from == nullptr ? 0.0 : from[i];
}

// Waits for all warps of the block.
template <typename Block>
__device__ inline void wait_for_block()
{
    if constexpr (Block::threads == 32)
        __syncwarp();
    else
        __syncthreads();
}

// Own has find_shares(first), which finds the responsibilities of the rows of the tile that begins at row `first` of
// the item; add(), which adds the tile's rows to the sums in registers; and flush(), called every tiles_per_logarithm
// tiles and at the end. Block: WarpBlock, DiagonalBlock or FullBlock.
template <typename Own, typename T, typename Block>
class RowTile {
  public:
    __device__ void run()
    {
        int pending = 0;
        T next[loads];
        if constexpr (Block::ahead)
            fetch(0, 0, next);
        for (int first = 0; first < n_; first += Block::rows) {
            wait_for_block<Block>();
            if constexpr (Block::ahead) // while this tile is worked on
                put(first, 0, next);
            else
                load(first);
            wait_for_block<Block>();
            if constexpr (Block::ahead)
                fetch(first + Block::rows, 0, next);
            else
                fetch_to_cache(first + Block::rows);
            own().find_shares(first);
            wait_for_block<Block>();
            own().add();
            if (++pending == tiles_per_logarithm) {
                take_logarithm();
                pending = 0;
            }
        }
        take_logarithm();
        wait_for_block<Block>();
    }

    __device__ void flush() {}

  protected:
    static constexpr int tiles_per_logarithm = 32; // a lane has two rows of a tile: factors of at most 64^2 each
    // Values of a thread that are on their way together: a small tile's all.
    static constexpr int loads = Block::ahead ? 2 * Block::feature_tiles : sizeof(T) == 4 ? 8 : 4;

    __device__ RowTile(const Launch<T> &launch, const Item &item, const MixtureView &mixture, double *memory)
        : values_(launch.values + item.first * launch.d), mixture_(mixture), d_(launch.d), n_(item.n), origin_(memory),
          rows_(memory + Block::features), shares_(rows_ + Block::rows * Block::row_stride),
          coefficients_(memory + Block::coefficient_offset)
    {
        fill<Block>(origin_, mixture.origin, d_);
        fill<Block>(rows_, nullptr, Block::coefficient_offset - Block::features); // what there is not stays 0
        fill<Block>(coefficients_, mixture.coefficients, Block::coefficient_count(mixture.k));
    }

    // The block's log-likelihood into the item's copy of the sums. counts: of the lanes that have seen the same rows,
    // one.
    __device__ void store_likelihood(double *out, bool counts)
    {
        rows_[threadIdx.x] = counts ? log_likelihood_ : 0.0;
        wait_for_block<Block>();
        if (threadIdx.x != 0)
            return;
        double sum = 0.0;
        for (int i = 0; i < Block::threads; ++i)
            sum += rows_[i];
        out[mixture_.k] += sum;
    }

    const T *values_;
    const MixtureView &mixture_; // read again at the end: registers are short
    const int d_, n_;
    double *origin_, *rows_, *shares_, *coefficients_;
    double log_likelihood_ = 0.0, factors_ = 1.0; // factors of the likelihood since the last logarithm

  private:
    __device__ Own &own() { return *static_cast<Own *>(this); }

    __device__ void take_logarithm()
    {
        log_likelihood_ += log(factors_);
        factors_ = 1.0;
        own().flush();
    }

    // Values begin, begin + threads, ... of the tile's, as many as are on their way together.
    __device__ void fetch(int first, int begin, T (&value)[loads]) const
    {
        const int count = min(Block::rows, n_ - first) * d_;
        const T *from = values_ + std::int64_t{first} * d_;
#pragma unroll
        for (int u = 0; u < loads; ++u) {
            const int i = begin + static_cast<int>(threadIdx.x) + u * Block::threads;
            value[u] = i < count ? from[i] : T{0};
        }
    }

    // The same values to their places. Rows that there are not are 0: about a large origin their squares would be
    // infinite.
    __device__ void put(int first, int begin, const T (&value)[loads]) const
    {
        const int count = min(Block::rows, n_ - first) * d_;
        const int row_step = Block::threads / d_, feature_step = Block::threads % d_;
        int i = begin + static_cast<int>(threadIdx.x), row = i / d_, f = i % d_;
#pragma unroll
        for (int u = 0; u < loads; ++u, i += Block::threads) {
            if (i < Block::rows * d_)
                rows_[row * Block::row_stride + f] = i < count ? static_cast<double>(value[u]) - origin_[f] : 0.0;
            row += row_step;
            f += feature_step;
            if (f >= d_) {
                f -= d_;
                ++row;
            }
        }
    }

    __device__ void load(int first) const
    {
        for (int begin = 0; begin < Block::rows * d_; begin += loads * Block::threads) {
            T value[loads];
            fetch(first, begin, value);
            put(first, begin, value);
        }
    }

    // The next tile's rows into the L2 cache while this one is worked on.
    __device__ void fetch_to_cache(int first) const
    {
        constexpr int line = 128 / sizeof(T);
        const std::int64_t begin = std::int64_t{first} * d_ + static_cast<int>(threadIdx.x) * line;
        const std::int64_t end = std::int64_t{min(first + Block::rows, n_)} * d_;
        for (std::int64_t i = begin; i < end; i += Block::threads * line)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(values_ + i));
    }
};

} // namespace pgkm::cuda::mixture
