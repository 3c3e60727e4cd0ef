// row_distances.cuh - the contract's distances of 32 rows that lie anywhere, a row a lane: from a centroid each
// (OwnCentroids), or all from one (OneCentroid).
//
// Where that pays rows come by row_copies.cuh, some chunks ahead, and each lane adds up its own, in order. Elsewhere a
// thread reads its row by itself.
#pragma once

#include "device/exact.cuh"
#include "device/row_copies.cuh"

namespace pgkm::cuda {

// Each lane's centroid comes as its row does.
template <typename T>
class OwnCentroids {
    using Copies = RowCopies<T, 3>;

  public:
    static constexpr std::size_t bytes = Copies::bytes;

    // A thread's own loads of 16 bytes are as fast, and leave more warps at work. Copies of four bytes pay for longer
    // rows alone.
    static __host__ __device__ bool pay(int d)
    {
        const int places = d * static_cast<int>(sizeof(T)) % 16;
        return places != 0 && d >= (places == 8 ? 4 : 16) * Copies::values_of_chunk;
    }
    __device__ OwnCentroids(char *memory, const T *centroids, int d) : copies_(memory, centroids, d) {}
    __device__ void set(const T *centroid) { copies_.set(centroid); }
    __device__ void bring(int chunk) { copies_.bring(chunk); }
    __device__ void prepare(int) {}
    __device__ const T *chunk(int chunk) const { return copies_.chunk_of_lane(chunk); }

  private:
    const Copies copies_;
};

// Its values become float64 once a warp: those of a chunk while the chunk before is added up.
template <typename T>
class OneCentroid {
    static constexpr int values_of_chunk = RowCopies<T, 3>::values_of_chunk;

  public:
    static constexpr std::size_t bytes = 2 * values_of_chunk * sizeof(double);

    static __host__ __device__ bool pay(int d) { return d >= 2 * values_of_chunk; }
    __device__ OneCentroid(char *memory, const T *centroid, int d)
        : chunks_(reinterpret_cast<double *>(memory)), centroid_(centroid), d_(d)
    {
    }
    __device__ void set(const T *) { next_ = value_of(0); }
    __device__ void bring(int) {}
    __device__ void prepare(int chunk)
    {
        if (lane() < values_of_chunk)
            chunks_[chunk % 2 * values_of_chunk + lane()] = static_cast<double>(next_);
        next_ = value_of(chunk + 1);
    }
    __device__ const double *chunk(int chunk) const { return chunks_ + chunk % 2 * values_of_chunk; }

  private:
    static __device__ int lane() { return static_cast<int>(threadIdx.x & 31); }
    __device__ T value_of(int chunk) const
    {
        const int f = chunk * values_of_chunk + lane();
        return lane() < values_of_chunk && f < d_ ? centroid_[f] : T{0};
    }

    double *const chunks_;
    const T *const centroid_;
    const int d_;
    T next_;
};

template <typename T, typename Centroids>
class RowDistances {
  public:
    // Shared memory of a warp; none where rows are read by a thread each.
    static __host__ __device__ std::size_t bytes(int d)
    {
        return Centroids::pay(d) ? Copies::bytes + Centroids::bytes : 0;
    }

    // memory: of this warp. Rows are of `values`, centroids of `centroids`, d features each.
    __device__ RowDistances(char *memory, const T *values, const T *centroids, int d)
        : rows_(memory, values, d), centroids_(memory + Copies::bytes, centroids, d), d_(d)
    {
    }

    // Of each lane's row, nullptr: none. By all lanes.
    __device__ double distance(const T *row, const T *centroid)
    {
        if (!Centroids::pay(d_))
            return row == nullptr ? 0.0 : distance_ahead(row, centroid, d_);
        rows_.set(row);
        centroids_.set(row == nullptr ? nullptr : centroid);
        for (int chunk = 0; chunk < Copies::stages - 1; ++chunk)
            bring(chunk);
        double sum = 0.0;
        for (int chunk = 0; chunk < Copies::chunks_of(d_); ++chunk) {
            centroids_.prepare(chunk);
            wait_copies<Copies::stages - 2>();
            __syncwarp(); // all copies are there, and all have read the stage that is written next
            bring(chunk + Copies::stages - 1);
            add(rows_.chunk_of_lane(chunk), centroids_.chunk(chunk),
                min(Copies::values_of_chunk, d_ - chunk * Copies::values_of_chunk), sum);
        }
        wait_copies<0>();
        return sum;
    }

  private:
    using Copies = RowCopies<T, 3>;
    static constexpr int width = 16 / static_cast<int>(sizeof(T)); // values that are read together

    template <typename V>
    struct alignas(16) Values {
        V value[width];
    };

    __device__ void bring(int chunk)
    {
        rows_.bring(chunk);
        centroids_.bring(chunk);
        commit_copies();
    }

    template <typename C>
    static __device__ void add(const T *x, const C *c, int count, double &sum)
    {
        if (count == Copies::values_of_chunk) {
#pragma unroll
            for (int i = 0; i < Copies::values_of_chunk / width; ++i) {
                const Values<T> a = reinterpret_cast<const Values<T> *>(x)[i];
                const Values<C> b = reinterpret_cast<const Values<C> *>(c)[i];
#pragma unroll
                for (int j = 0; j < width; ++j)
                    add_term(sum, a.value[j], b.value[j]);
            }
        } else {
            for (int f = 0; f < count; ++f)
                add_term(sum, x[f], c[f]);
        }
    }

    const Copies rows_;
    Centroids centroids_;
    const int d_;
};

} // namespace pgkm::cuda
