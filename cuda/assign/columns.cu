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

} // namespace

template <typename T>
RowValues<T> by_feature(const Stage<T> &stage, const View<T> &view)
{
    const RowValues<T> as_loaded = {view.values, view.d, 1};
    PreparedRows *prepared = stage.prepared;
    const std::int64_t tiles = (view.n + side - 1) / side, pitch = tiles * side;
    if (prepared == nullptr || prepared->refused || tiles >= std::int64_t{1} << 31 || view.d > 65535 * side)
        return as_loaded;
    if (const PreparedRows::Part *part = prepared->find(view.values, view.n, view.k))
        return {reinterpret_cast<const T *>(part->memory.get()), 1, pitch};
    const auto bytes = static_cast<std::size_t>(pitch) * static_cast<std::size_t>(view.d) * sizeof(T);
    prepared->refused = !stage.context.budget.has(2 * bytes); // half of what is left is for others
    if (prepared->refused || prepared->add(stage.context, view.values, view.n, view.k, bytes) == nullptr)
        return as_loaded;
    T *columns = reinterpret_cast<T *>(prepared->parts.back().memory.get());
    enqueue(turn_kernel<T>, {tiles, (view.d + side - 1) / side}, {side, lines}, 0, stage.stream, view, columns, pitch);
    return {columns, 1, pitch};
}

template RowValues<float> by_feature(const Stage<float> &, const View<float> &);
template RowValues<double> by_feature(const Stage<double> &, const View<double> &);

} // namespace pgkm::cuda
