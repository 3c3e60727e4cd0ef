// batch_order.cpp - rows sorted by hashes of their contents, equal ones spread.
#include "engine/rows/batch_order.hpp"

#include <algorithm>

#include "numeric/index.hpp"
#include "numeric/row_key.hpp"

namespace pgkm {
namespace {

constexpr std::int64_t rows_per_poll = 4096;

struct Place {
    std::uint64_t key;
    std::int64_t row;
};

template <typename T>
std::vector<std::int64_t> order_of(const PgkmPoints &points, std::int64_t first, std::int64_t n, std::uint64_t seed,
                                   const std::function<void()> &poll, const std::int32_t *labels)
{
    const T *const values = static_cast<const T *>(points.values) + first * points.d;
    std::int64_t looks = 0;
    const auto look = [&] {
        if (++looks % rows_per_poll == 0)
            poll();
    };
    const auto compare = [&](std::int64_t a, std::int64_t b) {
        return compare_content(values + a * points.d, values + b * points.d, points.d);
    };
    std::vector<Place> places(at(n));
    // By key, then content, then weight, then label: rows that are equal in all are interchangeable.
    const auto sort = [&] {
        std::sort(places.begin(), places.end(), [&](const Place &a, const Place &b) {
            look();
            if (a.key != b.key)
                return a.key < b.key;
            const int order = compare(a.row, b.row);
            if (order != 0)
                return order < 0;
            const std::int64_t x = first + a.row, y = first + b.row;
            if (points.weights != nullptr && points.weights[x] != points.weights[y])
                return points.weights[x] < points.weights[y];
            return labels != nullptr && labels[x] < labels[y];
        });
    };
    for (std::int64_t i = 0; i < n; ++i) {
        look();
        places[at(i)] = {row_key(values + i * points.d, points.d), i};
    }
    sort();
    const std::uint64_t mark = finish_key(seed);
    std::uint64_t rank = 0, last = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        look();
        const bool repeats = i > 0 && places[i].key == last && compare(places[i].row, places[i - 1].row) == 0;
        last = places[i].key;
        rank = repeats ? rank + 1 : 0;
        places[i].key = finish_key((last ^ mark) + rank * key_step);
    }
    sort();
    std::vector<std::int64_t> rows(places.size());
    std::transform(places.begin(), places.end(), rows.begin(), [](const Place &place) { return place.row; });
    return rows;
}

} // namespace

std::vector<std::int64_t> batch_order(const PgkmPoints &points, std::int64_t first, std::int64_t n, std::uint64_t seed,
                                      const std::function<void()> &poll, const std::int32_t *labels)
{
    return points.element == PGKM_FLOAT32 ? order_of<float>(points, first, n, seed, poll, labels)
                                          : order_of<double>(points, first, n, seed, poll, labels);
}

} // namespace pgkm
