// constant.cu - assignment with the centroids in constant memory, where one read serves all threads of a warp: of rows
// in registers (register_constant, Aggarwal 2013, section 4.1) and of rows that are walked (generic_constant, section
// 4.2). To use: small k x d.
//
// Centroids lie there in float64, converted once and not for every row, in octets: feature by feature, the eight of an
// octet beside each other. Places beyond the last are NaN, which no comparison finds nearer.
#include "assign/exact_rows.cuh"

namespace pgkm::cuda {
namespace {

constexpr int octet = 8;
constexpr int room_bytes = 61440; // of 65,536; kernels' own constants need some
__constant__ double constant_room[room_bytes / sizeof(double)];

struct ConstantRoom {
    static constexpr int threads = 256, blocks = 2;
    int d;

    __device__ void fill(int) {}
    __device__ double operator()(int j, int b, int f) const { return constant_room[j * d + f * octet + b]; }
};

template <typename T>
__global__ void fill_kernel(double *room, const T *centroids, int count, int d)
{
    const int octets = (count + octet - 1) / octet;
    for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < octets * d * octet;
         i += static_cast<int>(gridDim.x * blockDim.x)) {
        const int place = i % octet, f = i / octet % d, j = i / (octet * d) * octet + place;
        room[i] = j < count ? static_cast<double>(centroids[std::int64_t{j} * d + f])
                            : __longlong_as_double(0x7ff8000000000000LL);
    }
}

// D: as in exact_rows.cuh. Whole octets of centroids at a time; false where not one fits.
template <int D, typename T>
bool assign_batches(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    const int batch = static_cast<int>(room_bytes / (std::int64_t{view.d} * 8 * octet)) * octet;
    if (batch == 0)
        return false;
    const RowValues<T> values = by_feature(stage, view);
    void *room = nullptr;
    checked("cudaGetSymbolAddress", [&] { return cudaGetSymbolAddress(&room, constant_room); });
    for (int first = 0; first < view.k; first += batch) {
        const int count = std::min(batch, view.k - first);
        enqueue(fill_kernel<T>, 8, 256, 0, stage.stream, static_cast<double *>(room),
                view.centroids + std::int64_t{first} * view.d, count, view.d);
        launch_exact_rows<D>(stage, view, values, ConstantRoom{view.d}, 0, labels, first,
                             (count + octet - 1) / octet * octet);
    }
    return true;
}

template <typename T>
void assign_registers(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    if (!stage.constant)
        return assign_register_global(stage, view, labels);
    if (!with_exact_size(view.d, [&](auto size) { assign_batches<decltype(size)::value>(stage, view, labels); }))
        assign_generic(stage, view, labels);
}

template <typename T>
void assign_walked(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    if (!stage.constant || !assign_batches<0>(stage, view, labels))
        assign_generic(stage, view, labels);
}

} // namespace

const Both<Assign> assign_register_constant = {assign_registers<float>, assign_registers<double>};
const Both<Assign> assign_generic_constant = {assign_walked<float>, assign_walked<double>};

} // namespace pgkm::cuda
