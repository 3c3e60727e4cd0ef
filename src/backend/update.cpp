// update.cpp - gives empty clusters a row, and divides sums into centroids.
#include "backend/update.hpp"

#include <algorithm>

#include "numeric/bit_rows.hpp"

namespace pgkm {

template <typename T>
std::vector<MovedRow> fill_empty_clusters(const PgkmPoints &points, const PgkmProblem &problem,
                                          std::vector<FarRow> &rows, std::vector<Int128> &masses)
{
    // A heap with the first row on top: few rows are taken.
    const FarOrder<T> before = {points, problem.first_row};
    const auto later = [&](const FarRow &a, const FarRow &b) { return before(b, a); };
    std::make_heap(rows.begin(), rows.end(), later);

    std::vector<MovedRow> moved;
    for (std::int32_t empty = 0; empty < problem.k; ++empty) {
        if (masses[empty] != 0)
            continue;
        while (!rows.empty()) {
            const std::int64_t row = problem.first_row + rows.front().row;
            const std::int32_t old = rows.front().label;
            const Int128 mass = row_mass(points, problem, row);
            const bool eligible = mass != 0 && masses[old] - mass > 0;
            // No copy is ever eligible again where one is not: masses of the filled clusters only shrink here.
            if (!eligible || --rows.front().copies == 0) {
                std::pop_heap(rows.begin(), rows.end(), later);
                rows.pop_back();
            }
            if (!eligible)
                continue;
            masses[old] -= mass;
            masses[empty] = mass;
            moved.push_back({row, old, empty});
            break;
        }
    }
    return moved;
}

template <typename T>
void move_rows(const PgkmPoints &points, const PgkmProblem &problem, const std::vector<MovedRow> &moved, Sums &sums)
{
    for (const MovedRow &one : moved) {
        Int128 *const from = sums.totals.data() + std::int64_t{one.from} * points.d;
        Int128 *const to = sums.totals.data() + std::int64_t{one.to} * points.d;
        for (std::int32_t f = 0; f < points.d; ++f) {
            to[f] = row_feature<T>(points, problem, one.row, f);
            from[f] -= to[f];
        }
    }
}

template <typename T>
bool new_centroid(const PgkmProblem &problem, std::int32_t d, PgkmMetric metric, const Int128 *totals, Int128 mass,
                  T *fresh)
{
    if (mass == 0)
        return false;
    for (std::int32_t f = 0; f < d; ++f) {
        const PgkmFeatureScale &scale = problem.feature_scales[f];
        fresh[f] = static_cast<T>(mean_of(totals[f], mass, scale.origin, scale.exponent, problem.weight_exponent));
    }
    return metric != PGKM_COSINE || normalise(fresh, d);
}

template <typename T>
double update_centroids(const PgkmProblem &problem, std::int32_t d, PgkmMetric metric, const Sums &sums)
{
    auto *centroids = static_cast<T *>(problem.centroids);
    std::vector<T> fresh(d);
    double shift = 0.0;
    for (std::int32_t j = 0; j < problem.k; ++j) {
        const std::size_t base = std::int64_t{j} * d;
        if (!new_centroid(problem, d, metric, sums.totals.data() + base, sums.masses[j], fresh.data()))
            continue;
        shift += exact_distance(fresh.data(), centroids + base, d);
        std::copy(fresh.begin(), fresh.end(), centroids + base);
    }
    return shift;
}

template std::vector<MovedRow> fill_empty_clusters<float>(const PgkmPoints &, const PgkmProblem &,
                                                          std::vector<FarRow> &, std::vector<Int128> &);
template std::vector<MovedRow> fill_empty_clusters<double>(const PgkmPoints &, const PgkmProblem &,
                                                           std::vector<FarRow> &, std::vector<Int128> &);
template std::vector<MovedRow> fill_empty_clusters<BitWord>(const PgkmPoints &, const PgkmProblem &,
                                                            std::vector<FarRow> &, std::vector<Int128> &);
template void move_rows<float>(const PgkmPoints &, const PgkmProblem &, const std::vector<MovedRow> &, Sums &);
template void move_rows<double>(const PgkmPoints &, const PgkmProblem &, const std::vector<MovedRow> &, Sums &);
template bool new_centroid<float>(const PgkmProblem &, std::int32_t, PgkmMetric, const Int128 *, Int128, float *);
template bool new_centroid<double>(const PgkmProblem &, std::int32_t, PgkmMetric, const Int128 *, Int128, double *);
template double update_centroids<float>(const PgkmProblem &, std::int32_t, PgkmMetric, const Sums &);
template double update_centroids<double>(const PgkmProblem &, std::int32_t, PgkmMetric, const Sums &);

} // namespace pgkm
