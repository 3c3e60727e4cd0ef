// check_rows.cpp - the rows of a case.
#include "check_cases.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "numeric/contract.hpp"
#include "numeric/row_key.hpp"

namespace plugin_check {

namespace {

// Values whose terms in a row's key are 0: one factor of each is (numeric/row_key.hpp). A float64 value's lower half
// is chosen so; features of float32 rows where the two are no ordinary numbers are 0.
double keyless_value(PgkmElement element, int feature, bool left)
{
    const auto words = static_cast<std::uint64_t>(feature) * (element == PGKM_FLOAT32 ? 1 : 2);
    const std::uint64_t mark = pgkm::key_mark(words);
    const std::uint32_t zeroes[] = {static_cast<std::uint32_t>(mark), 0 - static_cast<std::uint32_t>(mark >> 32)};
    if (element == PGKM_FLOAT64) {
        const std::uint64_t bits = std::uint64_t{0x3ff00000} << 32 | zeroes[left];
        double value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
    float values[2];
    std::memcpy(values, zeroes, sizeof values);
    const bool ordinary = std::all_of(values, values + 2,
                                      [](float value) { return std::fabs(value) > 1e-9f && std::fabs(value) < 1e9f; });
    return ordinary ? static_cast<double>(values[left]) : 0.0;
}

// The points of rows whose vectors are filled.
void show(const Case &c, Rows &rows)
{
    rows.points = {c.element == PGKM_FLOAT32 ? static_cast<const void *>(rows.f32.data()) : rows.f64.data(), c.element,
                   c.n, c.d, c.weighted ? rows.weights.data() : nullptr};
}

template <typename V>
std::vector<V> reversed(const std::vector<V> &rows, std::size_t width)
{
    std::vector<V> result;
    for (std::size_t end = rows.size(); end > 0; end -= width)
        result.insert(result.end(), rows.begin() + static_cast<long>(end - width),
                      rows.begin() + static_cast<long>(end));
    return result;
}

} // namespace

Rows reversed(const Case &c, const Rows &rows)
{
    Rows result;
    result.f32 = reversed(rows.f32, static_cast<std::size_t>(c.d));
    result.f64 = reversed(rows.f64, static_cast<std::size_t>(c.d));
    result.weights = reversed(rows.weights, 1);
    show(c, result);
    return result;
}

Rows make_rows(const Case &c, unsigned seed)
{
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_int_distribution<int> blob(0, c.blobs - 1);
    Rows rows;
    std::vector<double> centres(static_cast<std::size_t>(c.blobs) * static_cast<std::size_t>(c.d));
    for (double &centre : centres)
        centre = c.apart * c.spread * normal(random);
    const auto d = static_cast<std::size_t>(c.d);
    for (std::int64_t i = 0; i < c.n; ++i) {
        const std::size_t from = static_cast<std::size_t>(blob(random)) * d;
        for (std::size_t f = 0; f < d; ++f) {
            double value = c.offset + centres[from + f] + c.spread * normal(random);
            if (c.mixed_scale)
                value *= std::pow(10.0, static_cast<double>(i % 13) - 3.0);
            if (c.step > 0.0)
                value = std::round(value / c.step) * c.step;
            if (f + static_cast<std::size_t>(c.constants) >= d)
                value = 7.25;
            if (c.far_row && i + 1 == c.n)
                value = 1e12;
            rows.f64.push_back(static_cast<double>(static_cast<float>(value)));
            if (c.minus_zeros && rows.f64.back() == 0.0)
                rows.f64.back() = rows.f64.size() % 2 == 0 ? -0.0 : 0.0;
            if (c.same_keys)
                rows.f64.back() = keyless_value(c.element, static_cast<int>(f), blob(random) % 2 == 0);
        }
    }
    const auto repeats = [&](std::int64_t i) { return i >= c.distinct && (i < c.single_from || i >= c.single_to); };
    for (std::int64_t i = 0; c.distinct > 0 && i < c.n; ++i)
        if (repeats(i))
            std::copy_n(rows.f64.begin() + (i % c.distinct) * c.d, d, rows.f64.begin() + i * c.d);
    if (c.metric == PGKM_COSINE)
        for (std::int64_t i = 0; i < c.n; ++i)
            pgkm::normalise(rows.f64.data() + i * c.d, c.d);
    if (c.weighted)
        for (std::int64_t i = 0; i < c.n; ++i)
            rows.weights.push_back((0.25 + std::fabs(normal(random))) *
                                   std::pow(10.0, -c.decades * static_cast<double>(i % 11) / 10.0));
    for (std::int64_t i = 0; c.like_weights && i < c.n; ++i)
        if (repeats(i))
            rows.weights[static_cast<std::size_t>(i)] = rows.weights[static_cast<std::size_t>(i % c.distinct)];
    if (c.element == PGKM_FLOAT32)
        rows.f32.assign(rows.f64.begin(), rows.f64.end());
    for (std::size_t last = d - 1; c.last_bit && last < rows.f64.size(); last += 3 * d)
        if (c.element == PGKM_FLOAT32)
            rows.f32[last] = std::nextafter(rows.f32[last], INFINITY);
        else
            rows.f64[last] = std::nextafter(rows.f64[last], static_cast<double>(INFINITY));
    show(c, rows);
    return rows;
}

} // namespace plugin_check
