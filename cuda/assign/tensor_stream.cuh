// tensor_stream.cuh - columns streamed past a row tile, products on the tensor cores.
//
// Stages of 64 or 128 columns x 32 features arrive by cp.async, three ahead of their use. Rows
// arrive with the stages of the first column tile and then stay.
#pragma once

#include "assign/tensor_tile.cuh"

namespace pgkm::cuda::tensor {

inline constexpr int stages = 4;

// The rows of a tile: places[0 .. count), or count places from `first` on.
struct Rows {
    int group;
    int count;
    int first;
    const std::int32_t *places;
};

template <typename T, typename S>
class Stream {
    static constexpr int mine = S::rows < 64 ? 1 : S::rows / 64; // rows that a thread copies pieces of

  public:
    __device__ Stream(const Layout<T> &l, int d, unsigned tile, unsigned ring)
        : l_(l), tile_(tile), ring_(ring), width_(padded_features(d) / 8), chunks_(l.d32 / feature_chunk)
    {
    }

    // Starts the copies that any tile of these rows needs.
    __device__ void begin(const Rows &rows)
    {
        table_ = l_.table + std::int64_t{rows.group} * l_.columns * l_.d32;
        load_column_ = 0;
        load_chunk_ = 0;
#pragma unroll
        for (int i = 0; i < mine; ++i) {
            const int at = static_cast<int>(threadIdx.x / 4) + i * 64;
            place_[i] = at >= rows.count ? -1 : rows.places == nullptr ? rows.first + at : rows.places[at];
        }
        for (int s = 0; s < stages - 1; ++s) {
            if (s < chunks_)
                load(s);
            commit_copies();
        }
    }

    // Calls take(first_column, acc) with the products of every column tile up to `columns`:
    // acc[m][s] holds the warp's rows 16 m to 16 m + 15, its strip s of eight columns.
    template <typename Take>
    __device__ void run(int columns, Take &&take)
    {
        const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
        const int total = (columns + S::columns - 1) / S::columns * chunks_;
        for (int s = chunks_; s < stages - 1; ++s) {
            if (s < total)
                load(s);
            commit_copies();
        }
        float acc[2][S::strips][4] = {};
        const int row = warp / S::warp_columns * 32 + (lane & 15), offset = warp % S::warp_columns * S::width;
        const int column = offset + (lane >> 4) * 8 + (lane & 7);
        int chunk = 0, first = 0;
        for (int s = 0; s < total; ++s) {
            wait_copies<stages - 2>();
            __syncthreads();
            if (s + stages - 1 < total)
                load(s + stages - 1);
            commit_copies();
            multiply(acc, columns - first - offset, row, column, chunk, ring_ + (s % stages) * S::stage_bytes);
            if (++chunk == chunks_) {
                if (first + offset < columns)
                    take(first, acc);
                chunk = 0;
                first += S::columns;
#pragma unroll
                for (int m = 0; m < 2; ++m)
                    for (int strip = 0; strip < S::strips; ++strip)
                        for (int i = 0; i < 4; ++i)
                            acc[m][strip][i] = 0.0f;
            }
        }
        wait_copies<0>();
        __syncthreads();
    }

  private:
    __device__ void load(int stage)
    {
#pragma unroll
        for (int i = 0; i < S::columns / 64; ++i) {
            const int piece = static_cast<int>(threadIdx.x) + i * filter_threads, column = piece / 4;
            copy_or_zero<16>(ring_ + (stage % stages) * S::stage_bytes + column_piece(column, piece % 4) * 16,
                             table_ + std::int64_t{load_column_ + column} * l_.d32 + load_chunk_ * feature_chunk +
                                 piece % 4 * 8,
                             true);
        }
        if (load_column_ == 0)
            load_rows();
        if (++load_chunk_ == chunks_) {
            load_chunk_ = 0;
            load_column_ += S::columns;
        }
    }

    __device__ void load_rows()
    {
        const int piece = load_chunk_ * 4 + static_cast<int>(threadIdx.x & 3);
#pragma unroll
        for (int i = 0; i < mine; ++i) {
            const int at = static_cast<int>(threadIdx.x / 4) + i * 64;
            const bool there = place_[i] >= 0 && piece * 8 < l_.rows.d8;
            if (at < S::rows)
                copy_or_zero<16>(
                    tile_ + row_piece(at, piece, width_) * 16,
                    there ? l_.rows.halves + std::int64_t{place_[i]} * l_.rows.d8 + piece * 8 : l_.rows.halves, there);
        }
    }

    // Only the first `wanted` of the warp's columns matter; it may be none.
    __device__ void multiply(float (&acc)[2][S::strips][4], int wanted, int row, int column, int chunk, unsigned from)
    {
        if (wanted <= 0)
            return;
        const int lane = static_cast<int>(threadIdx.x & 31);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            unsigned a[2][4];
            for (int m = 0; m < 2; ++m)
                load_matrices(a[m], tile_ + row_piece(row + m * 16, chunk * 4 + half * 2 + (lane >> 4), width_) * 16);
#pragma unroll
            for (int pair = 0; pair < S::strips / 2; ++pair) {
                if (pair * 16 >= wanted)
                    break;
                unsigned b[4];
                load_matrices(b, from + column_piece(column + pair * 16, half * 2 + ((lane >> 3) & 1)) * 16);
                for (int m = 0; m < 2; ++m) {
                    multiply_fp16(acc[m][2 * pair], a[m], b[0], b[1]);
                    multiply_fp16(acc[m][2 * pair + 1], a[m], b[2], b[3]);
                }
            }
        }
    }

    const Layout<T> &l_;
    const __half *table_ = nullptr;
    unsigned tile_, ring_;
    int width_, chunks_;
    int load_column_ = 0, load_chunk_ = 0;
    int place_[mine];
};

} // namespace pgkm::cuda::tensor
