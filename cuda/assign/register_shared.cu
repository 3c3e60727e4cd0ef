// register_shared.cu - assignment with the row in registers and the centroids in shared memory, as many at a time as
// 32 KB hold (Aggarwal 2013, section 4.1; Li, Zhao, Chu, Liu 2010, Algorithm 3 with its centroids staged). To use:
// d <= 22; float64 rows of at most 16 features are always assigned so, for a filter and its settling would cost more.
#include "assign/exact_rows.cuh"

namespace pgkm::cuda {
namespace {

constexpr int room_bytes = 32768; // of a block

// Centroids as float64: converted once and not for every row.
template <typename T>
struct SharedRoom {
    static constexpr int threads = 256, blocks = 0;
    const T *centroids; // of the batch
    int d;

    __device__ static double *memory()
    {
        extern __shared__ double block_memory[];
        return block_memory;
    }
    __device__ void fill(int count)
    {
        for (int i = static_cast<int>(threadIdx.x); i < count * d; i += threads)
            memory()[i] = static_cast<double>(centroids[i]);
        __syncthreads();
    }
    __device__ double operator()(int j, int b, int f) const { return memory()[(j + b) * d + f]; }
};

template <typename T>
void assign(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    const int batch = std::max(room_bytes / (view.d * 8), 1);
    const bool fits = with_exact_size(view.d, [&](auto size) {
        const RowValues<T> values = by_feature(stage, view);
        for (int first = 0; first < view.k; first += batch) {
            const int count = std::min(batch, view.k - first);
            const SharedRoom<T> room = {view.centroids + std::int64_t{first} * view.d, view.d};
            launch_exact_rows<decltype(size)::value>(
                stage, view, values, room, static_cast<std::size_t>(count * view.d) * 8, labels, first, count);
        }
    });
    if (!fits)
        assign_generic(stage, view, labels);
}

} // namespace

const Both<Assign> assign_register_shared = {assign<float>, assign<double>};

} // namespace pgkm::cuda
