// columns.cu - a copy of rows feature by feature. A block turns a tile of 32 rows x 32 features in shared memory, whose
// odd stride keeps reads and writes free of bank conflicts; features lie a multiple of 32 values apart.
#include "assign/columns.hpp"

namespace pgkm::cuda {
namespace {

constexpr int side = 32, lines = 8; // of a tile; of it a block's threads cover at a time

template <typename T>
__global__ void __launch_bounds__(side *lines) turn_kernel(View<T> view, T *columns, std::int64_t pitch)
{
    __shared__ T tile[side][side + 1];
    const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
    const std::int64_t first = std::int64_t{blockIdx.x} * side;
    const int features = static_cast<int>(blockIdx.y) * side;
    for (int i = y; i < side; i += lines)
        if (first + i < view.n && features + x < view.d)
            tile[i][x] = view.values[(first + i) * view.d + features + x];
    __syncthreads();
    for (int i = y; i < side; i += lines)
        if (first + x < view.n && features + i < view.d)
            columns[(features + i) * pitch + first + x] = tile[x][i];
}

// Memory for such a copy, in `prepared`; false where the device has no room to spare.
template <typename T>
bool make_room(const Stage<T> &stage, const View<T> &view, std::size_t bytes)
{
    std::size_t free_bytes = 0, total_bytes = 0;
    checked("cudaMemGetInfo", [&] { return cudaMemGetInfo(&free_bytes, &total_bytes); });
    return bytes <= free_bytes / 2 && bytes <= stage.context.budget.room() / 4 && within_limit([&] {
               stage.prepared->parts.push_back(
                   {view.values, view.n, view.k, DeviceArray<char>(stage.context.budget, bytes)});
           });
}

} // namespace

template <typename T>
RowValues<T> by_feature(const Stage<T> &stage, const View<T> &view)
{
    const RowValues<T> as_loaded = {view.values, view.d, 1};
    PreparedRows *prepared = stage.prepared;
    const std::int64_t tiles = (view.n + side - 1) / side, pitch = tiles * side;
    if (prepared == nullptr || prepared->refused || tiles >= std::int64_t{1} << 31 || view.d > 65535 * side)
        return as_loaded;
    for (const PreparedRows::Part &part : prepared->parts)
        if (part.values == view.values && part.n == view.n)
            return {reinterpret_cast<const T *>(part.memory.get()), 1, pitch};
    const auto bytes = static_cast<std::size_t>(pitch) * static_cast<std::size_t>(view.d) * sizeof(T);
    prepared->refused = !make_room(stage, view, bytes);
    if (prepared->refused)
        return as_loaded;
    T *columns = reinterpret_cast<T *>(prepared->parts.back().memory.get());
    const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>((view.d + side - 1) / side));
    turn_kernel<<<grid, dim3(side, lines), 0, stage.stream>>>(view, columns, pitch);
    launched("turn_kernel");
    return {columns, 1, pitch};
}

template RowValues<float> by_feature(const Stage<float> &, const View<float> &);
template RowValues<double> by_feature(const Stage<double> &, const View<double> &);

} // namespace pgkm::cuda
