// moments.cpp - count, mean and products of deviations of rows, in a form that merges.
//
// Merged as in Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing
// sample variances" (1979): deviations are always from the mean of the rows at hand, so that an
// offset of the data, however wide, does not cancel their digits.
#include <algorithm>
#include <vector>

#include "cpu/cpu_backend.hpp"
#include "engine/api.h"
#include "engine/backends/moments.hpp"
#include "engine/job/poll.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"
#include "numeric/reduction.hpp"

namespace pgkm {
namespace {

// cross += weight * (difference of the means) (that difference)'; the mean moves by its share.
void merge_means(PgkmRowMoments &moments, const double *mean, std::int64_t n, double mass)
{
    const double total = moments.mass + mass;
    const double weight = moments.mass * (mass / total);
    std::vector<double> difference(mean, mean + moments.d);
    for (std::int32_t f = 0; f < moments.d; ++f)
        difference[at(f)] -= moments.mean[f];
    for (std::int32_t a = 0; a < moments.d; ++a) {
        const double part = difference[at(a)];
        if (moments.n > 0 && part != 0.0)
            cpu::add(moments.cross + triangle_size(a), weight * part, difference.data(), a + 1);
        moments.mean[a] = moments.n == 0 ? mean[a] : moments.mean[a] + part * (mass / total);
    }
    moments.n += n;
    moments.mass = total;
}

void check_count(std::int64_t n, std::int64_t more)
{
    if (more > PGKM_MAX_ROWS - n)
        throw Error(PGKM_LIMIT, "sums of more than 2^53 rows are not supported");
}

} // namespace
} // namespace pgkm

// Rows are added up in blocks as they come: the same calls in the same order give the same bits.
PgkmStatus pgkm_moments_add(PgkmRowMoments *moments, const double *rows, const double *weights, int64_t count,
                            PgkmInterrupted interrupted, PgkmError *error)
{
    using namespace pgkm;
    return guarded(error, [&] {
        check_count(moments->n, count);
        std::vector<double> mean(at(moments->d));
        for (std::int64_t first = 0; first < count; first += block_rows) {
            const std::int64_t n = std::min<std::int64_t>(block_rows, count - first);
            const double mass =
                cpu::add_block(rows + first * moments->d, weights == nullptr ? nullptr : weights + first, n, moments->d,
                               mean.data(), moments->cross, poll_for(interrupted));
            merge_means(*moments, mean.data(), n, mass);
        }
    });
}

PgkmStatus pgkm_moments_merge(PgkmRowMoments *moments, const PgkmRowMoments *other, PgkmError *error)
{
    using namespace pgkm;
    return guarded(error, [&] {
        if (other->n == 0)
            return;
        check_count(moments->n, other->n);
        for (std::int64_t i = 0; i < triangle_size(moments->d); ++i)
            moments->cross[i] += other->cross[i];
        merge_means(*moments, other->mean, other->n, other->mass);
    });
}

void pgkm_dot_products(const double *matrix, int32_t rows, int32_t columns, const double *x, double *products)
{
    for (std::int32_t i = 0; i < rows; ++i)
        products[i] = pgkm::cpu::dot(matrix + std::int64_t{i} * columns, x, columns);
}

void pgkm_weighted_sum(const double *matrix, int32_t rows, int32_t columns, const double *factors, double *sum)
{
    for (std::int32_t i = 0; i < rows; ++i)
        pgkm::cpu::add(sum, factors[i], matrix + std::int64_t{i} * columns, columns);
}
