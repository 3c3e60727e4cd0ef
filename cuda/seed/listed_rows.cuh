// listed_rows.cuh (seed) - the contract's distances of 32 rows, which lie anywhere, from one centroid.
//
// Shape: rows of many features, few enough of them that a thread alone would wait for each of its loads. The lanes of a
// warp bring its rows to shared memory together, two chunks of 128 bytes ahead of their use, in pieces as large as the
// rows' places allow. Then each lane adds up its own row, in order. The centroid's values become float64 once a warp.
// Rows of few features are read by a thread each.
#pragma once

#include "device/copy_rows.cuh"
#include "device/exact.cuh"
#include "device/tensor_mma.cuh"

namespace pgkm::cuda {

template <typename T>
class ListedRows {
  public:
    // Shared memory of a warp; none where rows are read by a thread each.
    static __host__ __device__ std::size_t bytes(std::int32_t d)
    {
        return takes(d) ? stages * stage_bytes + 2 * values_of_chunk * sizeof(double) + 32 * sizeof(const T *) : 0;
    }

    // memory: of this warp. Rows are those of `values`.
    __device__ ListedRows(char *memory, const T *values, std::int32_t d)
        : memory_(memory), centroid_(reinterpret_cast<double *>(memory + stages * stage_bytes)),
          rows_(reinterpret_cast<const T **>(centroid_ + 2 * values_of_chunk)), d_(d),
          places_(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values)) |
                  static_cast<unsigned>(d * static_cast<std::int32_t>(sizeof(T))))
    {
    }

    // Of each lane's row, nullptr: none. By all lanes.
    __device__ double distance(const T *row, const T *centroid) const
    {
        if (!takes(d_))
            return row == nullptr ? 0.0 : distance_ahead(row, centroid, d_);
        __syncwarp(); // all have read what was there before
        rows_[lane()] = row;
        __syncwarp();
        if (places_ % 16 == 0)
            return sum<16>(centroid);
        if (sizeof(T) == 8 || places_ % 8 == 0)
            return sum<8>(centroid);
        return sum<sizeof(T)>(centroid); // the others are not there for float64
    }

  private:
    static constexpr int values_of_chunk = 128 / static_cast<int>(sizeof(T)), stages = 3;
    static constexpr int row_bytes = 128 + 16; // neighbours start in other banks
    static constexpr int stage_bytes = 32 * row_bytes;
    static constexpr int least_d = 2 * values_of_chunk;

    struct alignas(16) Values {
        static constexpr int width = 16 / static_cast<int>(sizeof(T));
        T value[width];
    };

    static __host__ __device__ bool takes(std::int32_t d) { return d >= least_d; }
    static __device__ int lane() { return static_cast<int>(threadIdx.x & 31); }
    __device__ char *stage(int chunk) const { return memory_ + chunk % stages * stage_bytes; }

    // Copies go Bytes at a time, which every row starts at a multiple of.
    template <int Bytes>
    __device__ double sum(const T *centroid) const
    {
        const int chunks = (d_ + values_of_chunk - 1) / values_of_chunk;
        for (int chunk = 0; chunk < stages - 1; ++chunk)
            bring<Bytes>(chunk);
        T next = value_of(centroid, 0);
        double sum = 0.0;
        for (int chunk = 0; chunk < chunks; ++chunk) {
            double *const other = centroid_ + chunk % 2 * values_of_chunk;
            if (lane() < values_of_chunk)
                other[lane()] = static_cast<double>(next);
            next = value_of(centroid, chunk + 1);
            tensor::wait_copies<stages - 2>();
            __syncwarp(); // all copies are there, and all have read the stage that is written next
            bring<Bytes>(chunk + stages - 1);
            sum = add(stage(chunk), other, min(values_of_chunk, d_ - chunk * values_of_chunk), sum);
        }
        tensor::wait_copies<0>();
        return sum;
    }

    // The lane's value of a chunk of the centroid.
    __device__ T value_of(const T *centroid, int chunk) const
    {
        const int f = chunk * values_of_chunk + lane();
        return lane() < values_of_chunk && f < d_ ? centroid[f] : T{0};
    }

    // Starts the copies of a chunk, if there is one.
    template <int Bytes>
    __device__ void bring(int chunk) const
    {
        constexpr int pieces = 128 / Bytes, width = Bytes / static_cast<int>(sizeof(T));
        const int piece = lane() % pieces, f = chunk * values_of_chunk + piece * width;
        char *const to = stage(chunk) + piece * Bytes;
        if (f < d_)
#pragma unroll 8
            for (int i = lane() / pieces; i < 32; i += 32 / pieces)
                if (const T *row = rows_[i]; row != nullptr)
                    copy_or_zero<Bytes>(to + i * row_bytes, row + f, true);
        tensor::commit_copies();
    }

    __device__ double add(const char *stage, const double *other, int count, double sum) const
    {
        const char *const own = stage + lane() * row_bytes;
        if (count == values_of_chunk) {
#pragma unroll
            for (int i = 0; i < values_of_chunk / Values::width; ++i) {
                const Values x = reinterpret_cast<const Values *>(own)[i];
#pragma unroll
                for (int j = 0; j < Values::width; ++j) {
                    const double difference = static_cast<double>(x.value[j]) - other[i * Values::width + j];
                    sum = ::fma(difference, difference, sum);
                }
            }
            return sum;
        }
        for (int f = 0; f < count; ++f) {
            const double difference = static_cast<double>(reinterpret_cast<const T *>(own)[f]) - other[f];
            sum = ::fma(difference, difference, sum);
        }
        return sum;
    }

    char *const memory_;
    double *const centroid_;
    const T **const rows_;
    const std::int32_t d_;
    const unsigned places_; // the low bits of where rows start
};

} // namespace pgkm::cuda
