// size_bounds.cpp - options min_size and max_size as numbers of rows.
#include "engine/kmeans/size_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "numeric/error.hpp"

namespace pgkm {
namespace {

// A share of 0.07 means 7 of 100 rows, though 0.07 * 100 is a little more in float64.
constexpr double margin = 0x1p-50;

// Numbers of rows are exact in float64.
std::int64_t least_of(double option, std::int64_t n)
{
    const double rows = option < 1.0 ? std::ceil(option * static_cast<double>(n) * (1.0 - margin)) : option;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(rows));
}

std::int64_t most_of(double option, std::int64_t n)
{
    if (option == 0.0)
        return n;
    const double rows = option < 1.0 ? std::floor(option * static_cast<double>(n) * (1.0 + margin)) : option;
    return std::min(n, static_cast<std::int64_t>(rows));
}

std::string clusters(std::int64_t k)
{
    return std::to_string(k) + (k == 1 ? " cluster" : " clusters");
}

std::string rows(std::int64_t n)
{
    return std::to_string(n) + (n == 1 ? " row" : " rows");
}

} // namespace

PgkmSizeBounds size_bounds(const PgkmOptions &options, std::int64_t n, std::int64_t k)
{
    const PgkmSizeBounds bounds = {least_of(options.min_size, n), most_of(options.max_size, n)};
    if (options.min_size != 0.0 && options.max_size != 0.0 && bounds.least > bounds.most)
        throw Error(PGKM_INVALID, "option min_size (" + std::to_string(bounds.least) +
                                      " rows) must not be above max_size (" + std::to_string(bounds.most) + " rows)");
    if (options.min_size != 0.0 && bounds.least > n / k)
        throw Error(PGKM_INVALID, "option min_size is too large: " + clusters(k) + " of at least " +
                                      std::to_string(bounds.least) + " rows cannot be made of " + rows(n));
    const std::int64_t found = std::min(n, k); // as many as there are without bounds
    if (bounds.most < (n - 1) / found + 1)
        throw Error(PGKM_INVALID, "option max_size is too small: " + clusters(found) + " of at most " +
                                      std::to_string(bounds.most) + " rows cannot hold " + rows(n));
    return bounds;
}

} // namespace pgkm
