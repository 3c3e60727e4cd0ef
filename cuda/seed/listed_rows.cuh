// listed_rows.cuh (seed) - the contract's distances of 32 rows, which lie anywhere, from one centroid.
//
// Rows of many features come by device/row_copies.cuh, then each lane adds up its own, in order. The centroid's values
// become float64 once a warp. Rows of few features are read by a thread each.
#pragma once

#include "device/exact.cuh"
#include "device/row_copies.cuh"

namespace pgkm::cuda {

template <typename T>
class ListedRows {
  public:
    // Shared memory of a warp; none where rows are read by a thread each.
    static __host__ __device__ std::size_t bytes(std::int32_t d)
    {
        return takes(d) ? Copies::bytes + 2 * values_of_chunk * sizeof(double) : 0;
    }

    // memory: of this warp. Rows are those of `values`.
    __device__ ListedRows(char *memory, const T *values, std::int32_t d)
        : rows_(memory, values, d), centroid_(reinterpret_cast<double *>(memory + Copies::bytes)), d_(d)
    {
    }

    // Of each lane's row, nullptr: none. By all lanes.
    __device__ double distance(const T *row, const T *centroid) const
    {
        if (!takes(d_))
            return row == nullptr ? 0.0 : distance_ahead(row, centroid, d_);
        const int chunks = Copies::chunks_of(d_);
        rows_.set(row);
        for (int chunk = 0; chunk < Copies::stages - 1; ++chunk)
            bring(chunk);
        T next = value_of(centroid, 0);
        double sum = 0.0;
        for (int chunk = 0; chunk < chunks; ++chunk) {
            double *const other = centroid_ + chunk % 2 * values_of_chunk;
            if (lane() < values_of_chunk)
                other[lane()] = static_cast<double>(next);
            next = value_of(centroid, chunk + 1);
            wait_copies<Copies::stages - 2>();
            __syncwarp(); // all copies are there, and all have read the stage that is written next
            bring(chunk + Copies::stages - 1);
            sum = add(rows_.chunk_of_lane(chunk), other, min(values_of_chunk, d_ - chunk * values_of_chunk), sum);
        }
        wait_copies<0>();
        return sum;
    }

  private:
    using Copies = RowCopies<T, 3>;
    using Values = typename Copies::Values;
    static constexpr int values_of_chunk = Copies::values_of_chunk, least_d = 2 * values_of_chunk;

    static __host__ __device__ bool takes(std::int32_t d) { return d >= least_d; }
    static __device__ int lane() { return static_cast<int>(threadIdx.x & 31); }

    __device__ void bring(int chunk) const
    {
        rows_.bring(chunk);
        commit_copies();
    }

    // The lane's value of a chunk of the centroid.
    __device__ T value_of(const T *centroid, int chunk) const
    {
        const int f = chunk * values_of_chunk + lane();
        return lane() < values_of_chunk && f < d_ ? centroid[f] : T{0};
    }

    static __device__ double add(const T *own, const double *other, int count, double sum)
    {
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
            const double difference = static_cast<double>(own[f]) - other[f];
            sum = ::fma(difference, difference, sum);
        }
        return sum;
    }

    const Copies rows_;
    double *const centroid_;
    const std::int32_t d_;
};

} // namespace pgkm::cuda
