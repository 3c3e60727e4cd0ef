// mixture.cpp (reduce) - EM with one covariance for all components, in two passes as in the work's figure 9.
//
// Parameters: h[j], the logarithm of weight and density at the mean; m[j][i], means; w[a][b], the lower triangle of a
// root of the inverse covariance; c[j][i], the new means of the M phase.
#include <algorithm>
#include <cmath>
#include <memory>

#include "cases.hpp"
#include "measure.hpp"

namespace bench {
namespace {

constexpr std::int32_t d = 3, k = 8;
constexpr std::int64_t n = 1 << 20;
constexpr std::int64_t at_h = 0, at_m = k, at_w = at_m + k * d, at_c = at_w + d * d;
constexpr double own_h = -2.0, own_w = 4.0;

struct Mixture {
    explicit Mixture(const std::vector<float> &values) : means(values.begin(), values.begin() + k * d)
    {
        for (std::size_t i = 0; i < d; ++i)
            factors[i * d + i] = own_w;
    }
    std::vector<double> parameters() const
    {
        std::vector<double> all = log_weights;
        all.insert(all.end(), means.begin(), means.end());
        all.insert(all.end(), factors.begin(), factors.end());
        for (const double mean : means)
            all.push_back(mean + 0.01);
        return all;
    }
    std::vector<double> means, log_weights = std::vector<double>(k, own_h), factors = std::vector<double>(d * d);
};

// Of e = a * width + b: a and b.
struct Pair {
    Pair(Program &program, std::int32_t e, std::int32_t width)
    {
        const std::int32_t at = program.index(e), by = program.constant(width);
        first = program.add(PGKM_FLOOR, {program.add(PGKM_DIVIDE, {at, by})});
        second = program.add(PGKM_MODULO, {at, by});
    }
    std::int32_t first, second;
};

// h[j] - 0.5 * sum(a, d, power(sum(b, d, w[a][b] * (f[b] - m[j][b])), 2))
std::int32_t logarithm(Program &program, std::int32_t j)
{
    const std::int32_t a = program.loop(d), b = program.loop(d), at = program.index(b);
    const std::int32_t difference =
        program.add(PGKM_SUBTRACT, {program.column(0, at, d), program.parameter(at_m, j, k, at, d)});
    const std::int32_t product =
        program.add(PGKM_MULTIPLY, {program.parameter(at_w, program.index(a), d, at, d), difference});
    const std::int32_t inner = program.add(PGKM_SUM, {product}, b);
    const std::int32_t square = program.add(PGKM_POWER, {inner, program.constant(2.0)});
    const std::int32_t half = program.add(PGKM_MULTIPLY, {program.constant(0.5), program.add(PGKM_SUM, {square}, a)});
    return program.add(PGKM_SUBTRACT, {program.parameter(at_h, j, k), half});
}

// Of the row: the greatest logarithm, and the sum of the densities over that of the greatest.
struct Row {
    explicit Row(Program &program)
    {
        const std::int32_t j = program.loop(k), l = program.loop(k);
        most = program.add(PGKM_MAX, {logarithm(program, program.index(j))}, j);
        const std::int32_t less = program.add(PGKM_SUBTRACT, {logarithm(program, program.index(l)), most});
        sum = program.add(PGKM_SUM, {program.add(PGKM_EXP, {less})}, l);
    }
    // The responsibility of component j.
    std::int32_t share(Program &program, std::int32_t j) const
    {
        const std::int32_t less = program.add(PGKM_SUBTRACT, {logarithm(program, j), most});
        return program.add(PGKM_DIVIDE, {program.add(PGKM_EXP, {less}), sum});
    }
    std::int32_t most, sum;
};

// What both phases of a sequential program do with a row: body(x, responsibilities).
template <typename Body>
void plain_rows(const std::vector<float> &values, const Mixture &mixture, Body &&body)
{
    double x[d], share[k];
    for (const float *row = values.data(); row != values.data() + values.size(); row += d) {
        double most = -INFINITY, sum = 0.0;
        std::copy_n(row, d, x);
        for (int j = 0; j < k; ++j) {
            double square = 0.0;
            for (int a = 0; a < d; ++a) {
                double inner = 0.0;
                for (int b = 0; b < d; ++b)
                    inner += mixture.factors[a * d + b] * (x[b] - mixture.means[j * d + b]);
                square += inner * inner;
            }
            share[j] = own_h - 0.5 * square;
            most = std::fmax(most, share[j]);
        }
        for (double &each : share)
            sum += each = std::exp(each - most);
        for (double &each : share)
            each /= sum;
        body(x, share);
    }
}

Run by_hand(const std::vector<float> &values, const Mixture &mixture)
{
    const auto rows = std::make_shared<Loaded>(values, d);
    return {"em_step", [rows, mixture] {
                // h holds the weight's logarithm and, already, the constant of the density.
                const std::vector<double> determinants(k);
                const PgkmMixture view = {k,
                                          PGKM_COVARIANCE_TIED,
                                          mixture.log_weights.data(),
                                          mixture.means.data(),
                                          mixture.factors.data(),
                                          determinants.data(),
                                          nullptr};
                std::vector<double> masses(k), first(k * d), second(d * (d + 1) / 2);
                PgkmMixtureSums sums = {0.0, masses.data(), first.data(), second.data(), nullptr};
                check(options.backend->em_step(rows->data, &rows->all, 1, &view, &sums, &rows->error), rows->error);
                std::vector<double> all(masses);
                for (std::size_t i = 0; i < first.size(); ++i)
                    all.push_back(first[i] + masses[i / d] * mixture.means[i]);
                return all;
            }};
}

} // namespace

// v = (p[j] for each j, p[j] * f[i] for each j and i)
void figure10_e()
{
    const std::vector<float> values = uniform(n * d);
    const Mixture mixture(values);
    Program program;
    program.parameters = mixture.parameters();
    const Row row(program);
    const std::int32_t j = program.loop(k), e = program.loop(k * d);
    const Pair place(program, e, d);
    program.item(row.share(program, program.index(j)), PGKM_COMBINE_SUM, j);
    const std::int32_t share = row.share(program, place.first);
    program.item(program.add(PGKM_MULTIPLY, {share, program.column(0, place.second, d)}), PGKM_COMBINE_SUM, e);
    program.object(1, -1);
    std::vector<Run> runs = runs_of(values, d, program);
    runs.insert(runs.begin(), by_hand(values, mixture));
    add_plain(runs, [&] {
        std::vector<double> sums(k + k * d);
        plain_rows(values, mixture, [&](const double *x, const double *share) {
            for (int j = 0; j < k; ++j) {
                sums[j] += share[j];
                for (int i = 0; i < d; ++i)
                    sums[k + j * d + i] += share[j] * x[i];
            }
        });
        return sums;
    });
    measure("figure-10-e", runs);
}

// v = sum(j, k, p[j] * (f[a] - c[j][a]) * (f[b] - c[j][b])) for each a and b
void figure10_m()
{
    const std::vector<float> values = uniform(n * d);
    const Mixture mixture(values);
    Program program;
    program.parameters = mixture.parameters();
    const Row row(program);
    const std::int32_t e = program.loop(d * d), l = program.loop(k), j = program.index(l);
    const Pair place(program, e, d);
    const auto less = [&](std::int32_t i) {
        return program.add(PGKM_SUBTRACT, {program.column(0, i, d), program.parameter(at_c, j, k, i, d)});
    };
    const std::int32_t weighted = program.add(PGKM_MULTIPLY, {row.share(program, j), less(place.first)});
    const std::int32_t product = program.add(PGKM_MULTIPLY, {weighted, less(place.second)});
    program.item(program.add(PGKM_SUM, {product}, l), PGKM_COMBINE_SUM, e);
    program.object(1, -1);
    std::vector<Run> runs = runs_of(values, d, program);
    const auto rows = std::make_shared<Loaded>(values, d);
    runs.push_back({"moments", [rows] {
                        std::vector<double> shift(d), sums(d), cross(d * (d + 1) / 2);
                        PgkmMoments out = {shift.data(), sums.data(), cross.data(), 0.0};
                        check(options.backend->moments(rows->data, &rows->all, 1, &out, &rows->error), rows->error);
                        return std::vector<double>();
                    }});
    add_plain(runs, [&] {
        std::vector<double> sums(d * d);
        plain_rows(values, mixture, [&](const double *x, const double *share) {
            for (int j = 0; j < k; ++j)
                for (int a = 0; a < d; ++a)
                    for (int b = 0; b < d; ++b) {
                        const double *const c = mixture.means.data() + j * d;
                        sums[a * d + b] += share[j] * (x[a] - c[a] - 0.01) * (x[b] - c[b] - 0.01);
                    }
        });
        return sums;
    });
    measure("figure-10-m", runs);
}

} // namespace bench
