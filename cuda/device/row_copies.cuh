// row_copies.cuh - rows that lie anywhere, brought to shared memory by a warp: one of each lane, a chunk of 128 bytes
// at a time.
//
// Shape: rows of many features, few enough rows that a thread alone would wait for each of its loads. All lanes copy
// each row, in pieces as large as the rows' places allow, some chunks ahead of their use.
#pragma once

#include "device/copy_rows.cuh"

namespace pgkm::cuda {

template <typename T, int Stages>
class RowCopies {
    static constexpr int row_bytes = 128 + 16; // neighbours start in other banks
    static constexpr int stage_bytes = 32 * row_bytes;

  public:
    static constexpr int values_of_chunk = 128 / static_cast<int>(sizeof(T)), stages = Stages;
    // Shared memory of a warp.
    static constexpr std::size_t bytes = Stages * stage_bytes + 32 * sizeof(const T *);
    static __host__ __device__ constexpr int chunks_of(int d) { return (d + values_of_chunk - 1) / values_of_chunk; }

    // memory: of this warp. Rows are of `values`, d features each.
    __device__ RowCopies(char *memory, const T *values, int d)
        : memory_(memory), rows_(reinterpret_cast<const T **>(memory + Stages * stage_bytes)), d_(d),
          places_(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values)) |
                  static_cast<unsigned>(d * static_cast<int>(sizeof(T))))
    {
    }

    // Each lane's row, nullptr: none. By all lanes, as are the copies.
    __device__ void set(const T *row) const
    {
        __syncwarp(); // all have read what was there before
        rows_[lane()] = row;
        __syncwarp();
    }
    // Starts the copies of a chunk, if there is one.
    __device__ void bring(int chunk) const
    {
        if (places_ % 16 == 0)
            bring_by<16>(chunk);
        else if (sizeof(T) == 8 || places_ % 8 == 0)
            bring_by<8>(chunk);
        else
            bring_by<sizeof(T)>(chunk); // of float32 alone
    }
    // The lane's values of a chunk that has come.
    __device__ const T *chunk_of_lane(int chunk) const
    {
        return reinterpret_cast<const T *>(memory_ + chunk % Stages * stage_bytes + lane() * row_bytes);
    }

  private:
    static __device__ int lane() { return static_cast<int>(threadIdx.x & 31); }

    template <int Bytes>
    __device__ void bring_by(int chunk) const
    {
        constexpr int pieces = 128 / Bytes, width = Bytes / static_cast<int>(sizeof(T));
        const int piece = lane() % pieces, f = chunk * values_of_chunk + piece * width;
        char *const to = memory_ + chunk % Stages * stage_bytes + piece * Bytes;
        if (f < d_)
#pragma unroll 8
            for (int i = lane() / pieces; i < 32; i += 32 / pieces)
                if (const T *row = rows_[i]; row != nullptr)
                    copy_or_zero<Bytes>(shared_address(to + i * row_bytes), row + f, true);
    }

    char *const memory_;
    const T **const rows_;
    const int d_;
    const unsigned places_; // the low bits of where rows start
};

} // namespace pgkm::cuda
