// few.cpp - the nearest of a few centroids by estimates, then by exact distances.
#include "cpu/assign/few.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/kernels/bounds.hpp"

namespace pgkm::cpu {

// What estimates leave open: pairs of a row and a centroid, those of a row one after the other.
template <typename T>
struct Few<T>::Pairs {
    const T *x[most_rows * most_centroids], *c[most_rows * most_centroids];
    std::int32_t row[most_rows * most_centroids], cluster[most_rows * most_centroids];
    double squares[most_rows * most_centroids];
};

// Labels of the rows whose nearest centroid the estimates tell, and bounds on squared distances; the pairs of the
// others, and how many there are.
template <typename T>
int Few<T>::compare(const std::int64_t *rows, int count, std::int32_t *labels, double *most, double *least,
                    Pairs &pairs) const
{
    const T *centroids[most_centroids];
    for (std::int32_t j = 0; j < rows_.k; ++j)
        centroids[j] = centroids_ + std::int64_t{j} * rows_.d;
    const auto per_poll =
        static_cast<int>(std::max<std::int64_t>(1, work_per_poll / (std::int64_t{rows_.d} * rows_.k)));
    int found = 0;
    for (int i = 0; i < count; ++i) {
        if (i % per_poll == 0)
            rows_.context.poll();
        T estimates[most_centroids];
        pairs_.estimates(rows_.row(rows[i]), centroids, rows_.k, rows_.d, estimates);
        const auto best = static_cast<std::int32_t>(std::min_element(estimates, estimates + rows_.k) - estimates);
        most[i] = square_bounds_.above(static_cast<double>(estimates[best]));
        least[i] = std::numeric_limits<double>::infinity();
        labels[i] = best;
        const int first = found;
        for (std::int32_t j = 0; j < rows_.k; ++j) {
            const double low = square_bounds_.below(static_cast<double>(estimates[j]));
            if (j != best && low > most[i]) {
                least[i] = std::min(least[i], low);
                continue;
            }
            pairs.x[found] = rows_.row(rows[i]);
            pairs.c[found] = centroids[j];
            pairs.row[found] = i;
            pairs.cluster[found++] = j;
        }
        if (found == first + 1) // the best alone
            found = first;
    }
    return found;
}

template <typename T>
void Few<T>::assign_block(const std::int64_t *rows, int count, std::int32_t *labels, const Bounds &bounds) const
{
    double most[most_rows], least[most_rows];
    Pairs pairs;
    const int found = compare(rows, count, labels, most, least, pairs);
    const auto batch = static_cast<int>(std::max<std::int64_t>(8, work_per_poll / rows_.d));
    for (int p = 0; p < found; p += batch) {
        rows_.context.poll();
        pairs_.distances(pairs.x + p, pairs.c + p, std::min(batch, found - p), rows_.d, pairs.squares + p);
    }
    for (int p = 0; p < found;) {
        const std::int32_t row = pairs.row[p];
        const int first = p;
        int nearest = p;
        for (; p < found && pairs.row[p] == row; ++p)
            if (pairs.squares[p] < pairs.squares[nearest]) // the first on a tie
                nearest = p;
        labels[row] = pairs.cluster[nearest];
        most[row] = square_bounds_.above(pairs.squares[nearest]);
        for (int q = first; q < p; ++q)
            if (q != nearest)
                least[row] = std::min(least[row], square_bounds_.below(pairs.squares[q]));
    }
    for (int i = 0; i < count; ++i) {
        bounds.upper[i] = distance_above(most[i]);
        bounds.lower[i] = std::max(0.0f, distance_below(least[i]));
    }
}

template class Few<float>;
template class Few<double>;

} // namespace pgkm::cpu
