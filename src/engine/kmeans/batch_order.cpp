// batch_order.cpp - rows sorted by hashes of their contents, equal ones spread.
#include "engine/kmeans/batch_order.hpp"

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
class Order {
  public:
    Order(const PgkmPoints &points, std::int64_t first, const std::function<void()> &poll)
        : points_(points), values_(static_cast<const T *>(points.values) + first * points.d), first_(first), poll_(poll)
    {
    }

    const T *row(std::int64_t i) const { return values_ + i * points_.d; }

    // By key, then content, then weight: rows that are equal in all are interchangeable.
    void sort(std::vector<Place> &places)
    {
        std::sort(places.begin(), places.end(), [this](const Place &a, const Place &b) {
            count();
            if (a.key != b.key)
                return a.key < b.key;
            const int order = compare_content(row(a.row), row(b.row), points_.d);
            if (order != 0 || points_.weights == nullptr)
                return order < 0;
            return points_.weights[first_ + a.row] < points_.weights[first_ + b.row];
        });
    }

    void count()
    {
        if (++counted_ % rows_per_poll == 0)
            poll_();
    }

  private:
    const PgkmPoints &points_;
    const T *const values_;
    const std::int64_t first_;
    const std::function<void()> &poll_;
    std::int64_t counted_ = 0;
};

} // namespace

template <typename T>
std::vector<std::int64_t> batch_order(const PgkmPoints &points, std::int64_t first, std::int64_t n, std::uint64_t seed,
                                      const std::function<void()> &poll)
{
    Order<T> order(points, first, poll);
    std::vector<Place> places(at(n));
    for (std::int64_t i = 0; i < n; ++i) {
        order.count();
        places[at(i)] = {row_key(order.row(i), points.d), i};
    }
    order.sort(places);
    const std::uint64_t mark = finish_key(seed);
    std::uint64_t rank = 0, last = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        order.count();
        const bool repeats = i > 0 && places[i].key == last &&
                             compare_content(order.row(places[i].row), order.row(places[i - 1].row), points.d) == 0;
        last = places[i].key;
        rank = repeats ? rank + 1 : 0;
        places[i].key = finish_key((last ^ mark) + rank * key_step);
    }
    order.sort(places);
    std::vector<std::int64_t> rows(places.size());
    std::transform(places.begin(), places.end(), rows.begin(), [](const Place &place) { return place.row; });
    return rows;
}

template std::vector<std::int64_t> batch_order<float>(const PgkmPoints &, std::int64_t, std::int64_t, std::uint64_t,
                                                      const std::function<void()> &);
template std::vector<std::int64_t> batch_order<double>(const PgkmPoints &, std::int64_t, std::int64_t, std::uint64_t,
                                                       const std::function<void()> &);

} // namespace pgkm
