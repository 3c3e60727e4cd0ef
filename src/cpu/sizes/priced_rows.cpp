// priced_rows.cpp - distances of rows to all centroids, tile by tile, and what follows from them with prices.
#include "cpu/sizes/priced_rows.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <utility>

#include "numeric/contract.hpp"
#include "numeric/index.hpp"

namespace pgkm::cpu {
namespace {

constexpr int tile_rows = 64;
constexpr std::int32_t clusters_at_once = 32; // whose distances stay in cache
constexpr std::int64_t tiles_per_task = 8;
constexpr std::int64_t values_per_thread = 1 << 16; // fewer are done before another one wakes
constexpr double infinity = std::numeric_limits<double>::infinity();

// What is known of a tile's rows while clusters go by. Labels are float64, so that all of it is.
struct alignas(64) Tile {
    double best[tile_rows], square[tile_rows], label[tile_rows];
};

void look_for_best(Tile &tile, const double *distances, double price, double cluster)
{
    for (int i = 0; i < tile_rows; ++i) {
        const double cost = distances[i] + price;
        const bool better = cost < tile.best[i];
        tile.square[i] = better ? distances[i] : tile.square[i];
        tile.label[i] = better ? cluster : tile.label[i];
        tile.best[i] = better ? cost : tile.best[i];
    }
}

// Rows of one cluster: what they cost where they are.
struct alignas(64) Members {
    std::int32_t cluster;
    double *floors; // k
    double squares[tile_rows];
};

double least_difference(const double *distances, const double *squares)
{
    constexpr int lanes = 8;
    double least[lanes];
    std::fill_n(least, lanes, infinity);
    for (int i = 0; i < tile_rows; i += lanes)
        for (int lane = 0; lane < lanes; ++lane) {
            const double difference = distances[i + lane] - squares[i + lane];
            least[lane] = difference < least[lane] ? difference : least[lane];
        }
    return *std::min_element(least, least + lanes);
}

} // namespace

template <typename T>
PricedRows<T>::PricedRows(const Rows<T> &rows, const RowNumber *order)
    : rows_(rows), order_(order), kernels_(exact_kernels(rows.context.instruction_set)), wide_(budget(), rows.k, rows.d)
{
    for (int worker = 0; worker < rows.pool.size(); ++worker)
        scratch_.push_back({Buffer<double>(budget(), at(rows.d) * tile_rows),
                            Buffer<double>(budget(), clusters_at_once * tile_rows),
                            Buffer<double>(budget(), at(rows.k))});
}

template <typename T>
void PricedRows<T>::set_centroids(const T *centroids)
{
    centroids_ = centroids;
    wide_.set(centroids, rows_);
}

template <typename T>
template <typename Place, typename Begin, typename Body, typename End>
void PricedRows<T>::for_tiles(std::int64_t count, Place &&place, Begin &&begin, Body &&body, End &&end)
{
    std::vector<std::int32_t> all(at(k()));
    for (std::size_t j = 0; j < all.size(); ++j)
        all[j] = static_cast<std::int32_t>(j);
    rows_.for_ranges(count, tiles_per_task * tile_rows, [&](std::int64_t first, std::int64_t last, int worker) {
        Scratch &scratch = scratch_[at(worker)];
        for (; first < last; first += tile_rows) {
            const int size = static_cast<int>(std::min<std::int64_t>(tile_rows, last - first));
            const T *x[tile_rows];
            for (int i = 0; i < size; ++i)
                x[i] = rows_.row(order_[place(first + i)]);
            kernels_.pack(x, size, rows_.d, tile_rows, scratch.block.data());
            auto state = begin(worker, first, size);
            for (std::int32_t j = 0; j < k(); j += clusters_at_once) {
                poll();
                const std::int32_t some = std::min(clusters_at_once, k() - j);
                kernels_.distances(scratch.block.data(), tile_rows, rows_.d, wide_.data(), all.data() + j, some,
                                   scratch.distances.data());
                for (std::int32_t c = 0; c < some; ++c)
                    body(state, j + c, scratch.distances.data() + std::ptrdiff_t{c} * tile_rows);
            }
            end(state, first, size);
        }
    });
}

template <typename T>
void PricedRows<T>::assign(std::int64_t count, const std::vector<double> &prices, std::int32_t *labels, double *squares)
{
    const auto begin = [](int, std::int64_t, int) {
        Tile tile;
        std::fill_n(tile.best, tile_rows, infinity);
        std::fill_n(tile.label, tile_rows, 0.0);
        return tile;
    };
    const auto look = [&](Tile &tile, std::int32_t j, const double *distances) {
        look_for_best(tile, distances, prices[at(j)], j);
    };
    for_tiles(
        count, [](std::int64_t i) { return i; }, begin, look,
        [&](const Tile &tile, std::int64_t first, int size) {
            for (int i = 0; i < size; ++i) {
                labels[first + i] = static_cast<std::int32_t>(tile.label[i]);
                squares[first + i] = tile.square[i];
            }
        });
}

// Each tile has rows of one cluster.
template <typename T>
void PricedRows<T>::find_floors(const std::vector<std::vector<std::int64_t>> &members, const double *squares,
                                double *floors)
{
    std::vector<std::int32_t> clusters; // of tiles
    std::vector<std::int64_t> places;
    for (std::int32_t j = 0; j < k(); ++j) {
        poll();
        std::fill_n(floors + std::int64_t{j} * k(), k(), infinity);
        places.insert(places.end(), members[at(j)].begin(), members[at(j)].end());
        while (places.size() % tile_rows != 0) // the last one once more
            places.push_back(places.back());
        clusters.resize(places.size() / tile_rows, j);
    }
    std::array<std::mutex, 64> mutexes; // of clusters
    for_tiles(
        static_cast<std::int64_t>(places.size()), [&](std::int64_t i) { return places[at(i)]; },
        [&](int worker, std::int64_t first, int) {
            Members tile;
            tile.cluster = clusters[at(first / tile_rows)];
            tile.floors = scratch_[at(worker)].floors.data();
            for (int i = 0; i < tile_rows; ++i)
                tile.squares[i] = squares[places[at(first + i)]];
            return tile;
        },
        [](Members &tile, std::int32_t j, const double *distances) {
            tile.floors[j] = least_difference(distances, tile.squares);
        },
        [&](const Members &tile, std::int64_t, int) {
            const std::lock_guard lock(mutexes[at(tile.cluster) % mutexes.size()]);
            double *least = floors + std::int64_t{tile.cluster} * k();
            for (std::int32_t j = 0; j < k(); ++j)
                least[j] = std::min(least[j], tile.floors[j]);
        });
}

template <typename T>
void PricedRows<T>::distances_to(std::int32_t cluster, const std::vector<std::int64_t> &places, double *squares) const
{
    constexpr int batch = 256;
    const auto find = [&](std::int64_t first, std::int64_t last, int) {
        const T *x[batch], *c[batch];
        std::fill_n(c, batch, centroids_ + std::int64_t{cluster} * rows_.d);
        for (; first < last; first += batch) {
            const std::int64_t size = std::min<std::int64_t>(batch, last - first);
            for (std::int64_t i = 0; i < size; ++i)
                x[i] = rows_.row(order_[places[at(first + i)]]);
            poll();
            kernels_.pairs(x, c, size, rows_.d, squares + first);
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
            by_row[order_[place]] = by_place[place];
    });
}

template <typename T>
void PricedRows<T>::distances_of(std::int64_t place, double *squares) const
{
    constexpr std::int32_t batch = 64;
    const T *x[batch], *c[batch];
    std::fill_n(x, batch, rows_.row(order_[place]));
    for (std::int32_t j = 0; j < k(); j += batch) {
        const std::int32_t some = std::min(batch, k() - j);
        for (std::int32_t i = 0; i < some; ++i)
            c[i] = centroids_ + std::int64_t{j + i} * rows_.d;
        kernels_.pairs(x, c, some, rows_.d, squares + j);
    }
}

template class PricedRows<float>;
template class PricedRows<double>;

} // namespace pgkm::cpu
