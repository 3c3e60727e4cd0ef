// agreement.cpp - how much two labellings agree: the adjusted Rand index (Hubert, Arabie 1985), and the rows that keep
// their label under the best one-to-one pairing of labels.
#include <algorithm>
#include <cmath>
#include <string>

#include "engine/api.h"
#include "engine/pairing/pairing.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

// Labels in ascending order, each once.
std::vector<std::int64_t> labels_of(const PgkmLabelPair *pairs, std::int64_t count, std::int64_t PgkmLabelPair::*side)
{
    std::vector<std::int64_t> labels;
    labels.reserve(at(count));
    for (std::int64_t i = 0; i < count; ++i)
        labels.push_back(pairs[i].*side);
    std::sort(labels.begin(), labels.end());
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    return labels;
}

std::int64_t place_of(const std::vector<std::int64_t> &labels, std::int64_t label)
{
    return std::lower_bound(labels.begin(), labels.end(), label) - labels.begin();
}

// Pairs of n rows, below 2^105.
UInt128 pairs_of(double n)
{
    const auto rows = static_cast<UInt128>(n);
    return rows * (rows - (rows > 0)) / 2;
}

// An unsigned integer of 256 bits.
struct Wide {
    UInt128 high, low;
};

Wide product(UInt128 x, UInt128 y)
{
    constexpr UInt128 half = ~std::uint64_t{0};
    const UInt128 low = (x & half) * (y & half);
    const UInt128 first = (x >> 64) * (y & half);
    const UInt128 second = (x & half) * (y >> 64);
    const UInt128 middle = (low >> 64) + (first & half) + (second & half);
    return {(x >> 64) * (y >> 64) + (first >> 64) + (second >> 64) + (middle >> 64), middle << 64 | (low & half)};
}

bool operator<(const Wide &x, const Wide &y)
{
    return x.high != y.high ? x.high < y.high : x.low < y.low;
}

// x - y as float64.
double difference(const Wide &x, const Wide &y)
{
    if (x < y)
        return -difference(y, x);
    return std::ldexp(static_cast<double>(x.high - y.high - (x.low < y.low)), 128) + static_cast<double>(x.low - y.low);
}

// Of S pairs of rows that both labellings keep together, A and B that each does, and C in all: (S - AB / C) / ((A + B)
// / 2 - AB / C). Both are 0 where each labelling has one label, or one for each row; then they agree.
double adjusted_rand(UInt128 both, UInt128 a, UInt128 b, UInt128 all)
{
    const Wide expected = product(2 * a, b);
    const Wide most = product(a + b, all);
    const double range = difference(most, expected);
    return range == 0 ? 1 : difference(product(2 * both, all), expected) / range;
}

// The table of the labels: of each pair of them how many rows there are, less than 0, which is what a pairing costs.
struct Table {
    std::vector<std::int64_t> rows, columns;
    std::vector<double> cells;
    std::int64_t n = 0;
};

Table table_of(const PgkmLabelPair *pairs, std::int64_t count, std::uint64_t most_bytes)
{
    std::int64_t PgkmLabelPair::*row = &PgkmLabelPair::a;
    std::int64_t PgkmLabelPair::*column = &PgkmLabelPair::b;
    Table table;
    table.rows = labels_of(pairs, count, row);
    table.columns = labels_of(pairs, count, column);
    const std::uint64_t height = table.rows.size(), width = table.columns.size();
    if (height > INT32_MAX || width > INT32_MAX || height > most_bytes / sizeof(double) / width)
        throw Error(PGKM_LIMIT,
                    "too many labels to compare: " + std::to_string(height) + " and " + std::to_string(width));
    if (height > width) { // as pairs are found with the shorter side first
        std::swap(table.rows, table.columns);
        std::swap(row, column);
    }
    table.cells.resize(height * width);
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t place =
            place_of(table.rows, pairs[i].*row) * static_cast<std::int64_t>(table.columns.size()) +
            place_of(table.columns, pairs[i].*column);
        table.cells[at(place)] -= static_cast<double>(pairs[i].n);
        table.n += pairs[i].n;
        if (table.n > PGKM_MAX_ROWS)
            throw Error(PGKM_LIMIT, "too many rows to compare");
    }
    return table;
}

PgkmAgreement agreement_of(const Table &table, PgkmInterrupted interrupted)
{
    const std::size_t width = table.columns.size();
    std::vector<double> of_columns(width);
    UInt128 both = 0, a = 0, b = 0;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        double of_row = 0;
        for (std::size_t j = 0; j < width; ++j) {
            const double rows = -table.cells[i * width + j];
            both += pairs_of(rows);
            of_row += rows;
            of_columns[j] += rows;
        }
        a += pairs_of(of_row);
    }
    for (const double rows : of_columns)
        b += pairs_of(rows);

    const std::vector<std::int32_t> partners =
        cheapest_pairing(table.cells.data(), static_cast<std::int32_t>(table.rows.size()),
                         static_cast<std::int32_t>(width), interrupted);
    double moved = static_cast<double>(table.n);
    for (std::size_t i = 0; i < partners.size(); ++i)
        moved += table.cells[i * width + at(partners[i])];
    const auto n = static_cast<double>(table.n);
    return {adjusted_rand(both, a, b, pairs_of(n)), moved / n, table.n};
}

} // namespace
} // namespace pgkm

PgkmStatus pgkm_agreement(const PgkmLabelPair *pairs, int64_t count, uint64_t most_bytes, PgkmAgreement *agreement,
                          PgkmInterrupted interrupted, PgkmError *error)
{
    return pgkm::guarded(
        error, [&] { *agreement = pgkm::agreement_of(pgkm::table_of(pairs, count, most_bytes), interrupted); });
}
