// listed_rows.cuh (seed) - the contract's distances of 32 rows, which lie anywhere, from one centroid.
//
// Shape: rows of many features, few enough of them that a thread alone would wait for each of its loads. The lanes of a
// warp bring its rows to shared memory together, pieces of 16 bytes, a few chunks of 256 bytes ahead of their use. Then
// each lane adds up its own row, in order. Rows that no such copy can start at are read by a thread each.
#pragma once

#include "device/exact.cuh"
#include "device/tensor_mma.cuh"

namespace pgkm::cuda {

template <typename T>
class ListedRows {
  public:
    // Shared memory of a warp; none where rows are read by a thread each.
    static __host__ __device__ std::size_t bytes(const T *values, std::int32_t d)
    {
        return takes(values, d) ? stages * stage_bytes + 32 * sizeof(const T *) : 0;
    }

    // memory: of this warp. Rows are those of `values`.
    __device__ ListedRows(char *memory, const T *values, std::int32_t d)
        : memory_(memory), rows_(reinterpret_cast<const T **>(memory + stages * stage_bytes)), d_(d),
          together_(takes(values, d))
    {
    }

    // Of each lane's row, nullptr: none. By all lanes.
    __device__ double distance(const T *row, const T *centroid) const
    {
        if (!together_)
            return row == nullptr ? 0.0 : distance_ahead(row, centroid, d_);
        __syncwarp(); // all have read what was there before
        rows_[lane()] = row;
        __syncwarp();
        const int chunks = (d_ + values_of_chunk - 1) / values_of_chunk;
        for (int chunk = 0; chunk < stages - 1; ++chunk)
            bring(chunk, centroid);
        double sum = 0.0;
        for (int chunk = 0; chunk < chunks; ++chunk) {
            tensor::wait_copies<stages - 2>();
            __syncwarp(); // all copies are there, and all have read the stage that is written next
            bring(chunk + stages - 1, centroid);
            sum = add(stage(chunk), min(values_of_chunk, d_ - chunk * values_of_chunk), sum);
        }
        tensor::wait_copies<0>();
        return sum;
    }

  private:
    static constexpr int piece_bytes = 16, pieces = 16, width = piece_bytes / static_cast<int>(sizeof(T));
    static constexpr int values_of_chunk = pieces * width, stages = 3;
    static constexpr int row_bytes = (pieces + 1) * piece_bytes; // neighbours start in other banks
    static constexpr int stage_bytes = 33 * row_bytes;           // the last row is the centroid's
    static constexpr int least_d = 4 * values_of_chunk;

    struct alignas(piece_bytes) Values {
        T value[width];
    };

    static __host__ __device__ bool takes(const T *values, std::int32_t d)
    {
        return d >= least_d && d % width == 0 && reinterpret_cast<std::uintptr_t>(values) % piece_bytes == 0;
    }
    static __device__ int lane() { return static_cast<int>(threadIdx.x & 31); }
    __device__ char *stage(int chunk) const { return memory_ + chunk % stages * stage_bytes; }

    // Starts the copies of a chunk, if there is one.
    __device__ void bring(int chunk, const T *centroid) const
    {
        const int piece = lane() % pieces, f = chunk * values_of_chunk + piece * width;
        char *const to = stage(chunk) + piece * piece_bytes;
        if (f < d_) {
            for (int i = lane() / pieces; i < 32; i += 32 / pieces)
                if (const T *row = rows_[i]; row != nullptr)
                    tensor::copy_async(tensor::shared_address(to + i * row_bytes), row + f);
            if (lane() < pieces)
                tensor::copy_async(tensor::shared_address(to + 32 * row_bytes), centroid + f);
        }
        tensor::commit_copies();
    }

    __device__ double add(const char *stage, int count, double sum) const
    {
        const auto *own = reinterpret_cast<const Values *>(stage + lane() * row_bytes);
        const auto *other = reinterpret_cast<const Values *>(stage + 32 * row_bytes);
#pragma unroll 4
        for (int i = 0; i < count / width; ++i) {
            const Values x = own[i], c = other[i];
#pragma unroll
            for (int j = 0; j < width; ++j) {
                const double difference = static_cast<double>(x.value[j]) - static_cast<double>(c.value[j]);
                sum = ::fma(difference, difference, sum);
            }
        }
        return sum;
    }

    char *const memory_;
    const T **const rows_;
    const std::int32_t d_;
    const bool together_;
};

} // namespace pgkm::cuda
