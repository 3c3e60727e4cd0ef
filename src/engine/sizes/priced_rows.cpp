// priced_rows.cpp - distances of rows to all centroids, tile by tile, and what follows from them with prices.
#include "engine/sizes/priced_rows.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "cpu/kernels/direct_kernels.hpp"
#include "cpu/kernels/list_kernels.hpp"
#include "cpu/kernels/pair_kernels.hpp"
#include "numeric/contract.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

constexpr int tile_rows = 64;
constexpr std::int32_t clusters_at_once = 32; // whose distances stay in cache
constexpr std::int64_t tiles_per_task = 8;
constexpr std::int64_t values_per_thread = 1 << 16; // fewer are done before another one wakes
constexpr double infinity = std::numeric_limits<double>::infinity();

// What is known of a tile's rows while clusters go by. Labels are float64, so that all of it is.
struct alignas(64) Tile {
    double best[tile_rows], next[tile_rows], square[tile_rows], label[tile_rows];
};

void look_for_best(Tile &tile, const double *distances, double price, double cluster)
{
    for (int i = 0; i < tile_rows; ++i) {
        const double cost = distances[i] + price;
        const bool better = cost < tile.best[i];
        const double other = cost < tile.next[i] ? cost : tile.next[i];
        tile.next[i] = better ? tile.best[i] : other;
        tile.square[i] = better ? distances[i] : tile.square[i];
        tile.label[i] = better ? cluster : tile.label[i];
        tile.best[i] = better ? cost : tile.best[i];
    }
}

cpu::Buffer<cpu::RowNumber> order_of(cpu::Context &context, bool threaded, const auto &rows)
{
    const cpu::BlockRunner runner(context, threaded);
    return cpu::canonical_order(runner, rows);
}

} // namespace

template <typename T>
PricedRows<T>::PricedRows(const cpu::Rows<T> &rows)
    : rows_(rows), order_(order_of(rows.context, &rows.pool == &rows.context.pool,
                                   cpu::SeedRows<T>{rows.values, nullptr, rows.n, rows.d})),
      wide_(budget(), at(rows.k) * at(rows.d))
{
    for (int worker = 0; worker < rows.pool.size(); ++worker)
        scratch_.push_back({cpu::Buffer<double>(budget(), at(rows.d) * tile_rows),
                            cpu::Buffer<double>(budget(), clusters_at_once * tile_rows)});
}

template <typename T>
void PricedRows<T>::set_centroids(const T *centroids)
{
    centroids_ = centroids;
    std::copy_n(centroids, wide_.size(), wide_.begin());
}

template <typename T>
template <typename Place, typename Begin, typename Body, typename End>
void PricedRows<T>::for_tiles(std::int64_t count, Place &&place, Begin &&begin, Body &&body, End &&end)
{
    const cpu::DirectKernels &direct = cpu::direct_kernels(rows_.context.instruction_set);
    const cpu::ListKernels &list = cpu::list_kernels(rows_.context.instruction_set);
    std::vector<std::int32_t> all(at(k()));
    for (std::size_t j = 0; j < all.size(); ++j)
        all[j] = static_cast<std::int32_t>(j);
    rows_.for_ranges(count, tiles_per_task * tile_rows, [&](std::int64_t first, std::int64_t last, int worker) {
        Scratch &scratch = scratch_[at(worker)];
        for (; first < last; first += tile_rows) {
            const int size = static_cast<int>(std::min<std::int64_t>(tile_rows, last - first));
            const T *x[tile_rows];
            for (int i = 0; i < size; ++i)
                x[i] = rows_.row(order_[at(place(first + i))]);
            direct.pack(x, size, rows_.d, tile_rows, scratch.block.data());
            auto state = begin(first, size);
            for (std::int32_t j = 0; j < k(); j += clusters_at_once) {
                poll();
                const std::int32_t some = std::min(clusters_at_once, k() - j);
                list.distances(scratch.block.data(), tile_rows, rows_.d, wide_.data(), all.data() + j, some,
                               scratch.distances.data());
                for (std::int32_t c = 0; c < some; ++c)
                    body(state, size, j + c, scratch.distances.data() + std::ptrdiff_t{c} * tile_rows);
            }
            end(state, first, size);
        }
    });
}

template <typename T>
void PricedRows<T>::assign(std::int64_t count, const std::vector<double> &prices, std::int32_t *labels, double *squares,
                           double *slacks)
{
    const auto begin = [](std::int64_t, int) {
        Tile tile;
        std::fill_n(tile.best, tile_rows, infinity);
        std::fill_n(tile.next, tile_rows, infinity);
        std::fill_n(tile.label, tile_rows, 0.0);
        return tile;
    };
    const auto look = [&](Tile &tile, int, std::int32_t j, const double *distances) {
        look_for_best(tile, distances, prices[at(j)], j);
    };
    for_tiles(
        count, [](std::int64_t i) { return i; }, begin, look,
        [&](const Tile &tile, std::int64_t first, int size) {
            for (int i = 0; i < size; ++i) {
                labels[first + i] = static_cast<std::int32_t>(tile.label[i]);
                squares[first + i] = tile.square[i];
                slacks[first + i] = tile.next[i] - tile.best[i];
            }
        });
}

template <typename T>
std::vector<std::vector<Offer>> PricedRows<T>::offers(const std::vector<std::int64_t> &places,
                                                      const std::vector<double> &prices, const std::int32_t *labels,
                                                      const double *squares, const std::vector<double> &reaches)
{
    std::vector<std::vector<Offer>> offers(places.size());
    // best: the row's own squared distance; next: what an offer must cost less than.
    const auto begin = [&](std::int64_t first, int size) {
        Tile tile;
        for (int i = 0; i < size; ++i) {
            const std::int64_t place = places[at(first + i)];
            const std::int32_t own = labels[place];
            tile.best[i] = squares[place];
            tile.next[i] = tile.best[i] + prices[at(own)] + reaches[at(own)];
            tile.label[i] = own;
        }
        return std::pair(first, tile);
    };
    const auto look = [&](const std::pair<std::int64_t, Tile> &state, int size, std::int32_t j,
                          const double *distances) {
        const auto &[first, tile] = state;
        for (int i = 0; i < size; ++i)
            if (tile.label[i] != j && distances[i] + prices[at(j)] < tile.next[i])
                offers[at(first + i)].push_back({j, distances[i] - tile.best[i]});
    };
    for_tiles(
        static_cast<std::int64_t>(places.size()), [&](std::int64_t i) { return places[at(i)]; }, begin, look,
        [](const std::pair<std::int64_t, Tile> &, std::int64_t, int) {});
    return offers;
}

template <typename T>
void PricedRows<T>::distances_to(std::int32_t cluster, const std::vector<std::int64_t> &places, double *squares) const
{
    constexpr int batch = 256;
    const cpu::PairKernels &kernels = cpu::pair_kernels(rows_.context.instruction_set);
    const auto find = [&](std::int64_t first, std::int64_t last, int) {
        const T *x[batch], *c[batch];
        std::fill_n(c, batch, centroids_ + std::int64_t{cluster} * rows_.d);
        for (; first < last; first += batch) {
            const std::int64_t size = std::min<std::int64_t>(batch, last - first);
            for (std::int64_t i = 0; i < size; ++i)
                x[i] = rows_.row(order_[at(places[at(first + i)])]);
            poll();
            kernels.distances(x, c, size, rows_.d, squares + first);
        }
    };
    const auto count = static_cast<std::int64_t>(places.size());
    if (count * rows_.d < values_per_thread)
        find(0, count, 0);
    else
        rows_.for_ranges(count, 16 * batch, find);
}

template <typename T>
void PricedRows<T>::put_by_row(const std::int32_t *by_place, std::int32_t *by_row) const
{
    rows_.for_ranges(n(), 1 << 14, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t place = first; place < last; ++place)
            by_row[order_[at(place)]] = by_place[place];
    });
}

template <typename T>
void PricedRows<T>::distances_of(std::int64_t place, double *squares) const
{
    constexpr std::int32_t batch = 64;
    const cpu::PairKernels &kernels = cpu::pair_kernels(rows_.context.instruction_set);
    const T *x[batch], *c[batch];
    std::fill_n(x, batch, rows_.row(order_[at(place)]));
    for (std::int32_t j = 0; j < k(); j += batch) {
        const std::int32_t some = std::min(batch, k() - j);
        for (std::int32_t i = 0; i < some; ++i)
            c[i] = centroids_ + std::int64_t{j + i} * rows_.d;
        kernels.distances(x, c, some, rows_.d, squares + j);
    }
}

template class PricedRows<float>;
template class PricedRows<double>;

} // namespace pgkm
