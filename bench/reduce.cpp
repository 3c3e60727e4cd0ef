// reduce - users' reductions on the CPU backend beside the kernels written for them by hand.
//
//   reduce [--threads N] [--repeats N] [--only NAME]
//
// histogram: 16,777,216 numbers into 100 cells; mean: count, sum and sum of squares of y by 100 cells of x; k-means:
// one step of 4,000,000 x 8, k = 100, beside one assignment with its sums by `direct` (exact distances to all
// centroids); moments: sums of products of 262,144 x 80 as a full matrix, beside moments(), which takes a triangle;
// softmax: sums of responsibilities of 1,000,000 x 8 for 16 centres; plain: the loop that a user would write in C++,
// one thread. Output: CSV; medians of processor time over the repeats, in ms, and of wall-clock time. Runs alternate.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "../test/support/program.hpp"
#include "cpu/cpu_backend.hpp"
#include "numeric/contract.hpp"

namespace {

using conformance::Program;
using conformance::Reduced;
using pgkm::cpu_backend;

int threads = 2;
int repeats = 5;
std::string only;

void check(PgkmStatus status, const PgkmError &error)
{
    if (status == PGKM_OK)
        return;
    std::fprintf(stderr, "reduce: %s\n", error.text);
    std::exit(1);
}

double seconds(clockid_t clock)
{
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<float> uniform(std::int64_t n)
{
    std::mt19937_64 random(7);
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float &value : values)
        value = static_cast<float>(random() >> 40) * 0x1p-24f;
    return values;
}

// Rows loaded into the CPU backend.
struct Loaded {
    Loaded(const std::vector<float> &values, std::int32_t d, const char *assignment = nullptr)
    {
        PgkmOpen open = {};
        open.struct_size = sizeof open;
        open.device = -1;
        open.threads = threads;
        open.tuning.assignment = assignment;
        const PgkmPoints points = {values.data(), PGKM_FLOAT32, static_cast<std::int64_t>(values.size()) / d, d,
                                   nullptr};
        check(cpu_backend()->open(&open, &context, &error), error);
        check(cpu_backend()->load(context, &points, &data, &error), error);
        all.n_rows = points.n;
    }
    ~Loaded()
    {
        cpu_backend()->unload(data);
        cpu_backend()->close(context);
    }
    void reduce(const Program &program)
    {
        Reduced out(program);
        const PgkmReduction view = program.view();
        check(cpu_backend()->reduce(data, &all, 1, &view, &out.view, &error), error);
    }

    PgkmError error = {};
    PgkmContext *context = nullptr;
    PgkmData *data = nullptr;
    PgkmProblem all = {};
};

using Runs = std::vector<std::pair<std::string, std::function<void()>>>;

void measure(const char *name, const Runs &runs)
{
    std::map<std::string, std::vector<double>> processor, wall;
    for (int repeat = 0; repeat < repeats + 1; ++repeat)
        for (const auto &[what, run] : runs) {
            const double begin = seconds(CLOCK_PROCESS_CPUTIME_ID), start = seconds(CLOCK_MONOTONIC);
            run();
            if (repeat > 0) {
                processor[what].push_back(seconds(CLOCK_PROCESS_CPUTIME_ID) - begin);
                wall[what].push_back(seconds(CLOCK_MONOTONIC) - start);
            }
        }
    const auto median = [](std::vector<double> list) {
        std::sort(list.begin(), list.end());
        return 1e3 * list[list.size() / 2];
    };
    for (const auto &[what, run] : runs)
        std::printf("%s,%s,%.1f,%.1f\n", name, what.c_str(), median(processor[what]), median(wall[what]));
    std::fflush(stdout);
}

// least(99, floor(x * 100))
std::int32_t cell_of(Program &program)
{
    const std::int32_t hundredfold = program.add(PGKM_MULTIPLY, {program.column(0), program.constant(100.0)});
    return program.add(PGKM_LEAST, {program.constant(99.0), program.add(PGKM_FLOOR, {hundredfold})});
}

Runs both(Loaded &rows, Program &program)
{
    Program exact = program;
    exact.exact = true;
    return {{"reduce", [&rows, program] { rows.reduce(program); }}, {"exact", [&rows, exact] { rows.reduce(exact); }}};
}

void histogram()
{
    const std::vector<float> values = uniform(1 << 24);
    Loaded rows(values, 1);
    Program program;
    program.item(-1, PGKM_COMBINE_COUNT);
    program.object(100, cell_of(program));
    Runs runs = both(rows, program);
    runs.emplace_back("plain", [&] {
        std::vector<std::int64_t> counts(100);
        for (const float value : values)
            ++counts[static_cast<std::size_t>(std::fmin(99.0, std::floor(static_cast<double>(value) * 100.0)))];
        if (counts[0] < 0)
            std::abort();
    });
    measure("histogram", runs);
}

void mean()
{
    const std::vector<float> values = uniform(1 << 24);
    Loaded rows(values, 2);
    Program program;
    const std::int32_t y = program.column(1);
    program.item(-1, PGKM_COMBINE_COUNT);
    program.item(y);
    program.item(program.add(PGKM_MULTIPLY, {y, y}));
    program.object(100, cell_of(program));
    Runs runs = both(rows, program);
    runs.emplace_back("plain", [&] {
        std::vector<double> sums(300);
        for (std::size_t i = 0; i < values.size(); i += 2) {
            const double x = static_cast<double>(values[i]), v = static_cast<double>(values[i + 1]);
            const auto cell = static_cast<std::size_t>(std::fmin(99.0, std::floor(x * 100.0))) * 3;
            sums[cell] += 1.0;
            sums[cell + 1] += v;
            sums[cell + 2] += v * v;
        }
        if (sums[0] < 0.0)
            std::abort();
    });
    measure("mean", runs);
}

void kmeans()
{
    constexpr std::int32_t d = 8, k = 100;
    const std::vector<float> values = uniform(4000000 * d);
    Loaded rows(values, d), direct(values, d, "direct");
    Program program;
    std::vector<float> centroids(values.begin(), values.begin() + k * d);
    program.parameters.assign(centroids.begin(), centroids.end());
    const std::int32_t cell = program.nearest(k, d, 0), i = program.loop(d);
    program.item(-1, PGKM_COMBINE_COUNT);
    program.item(program.column(0, program.index(i), d), PGKM_COMBINE_SUM, i);
    program.object(k, cell);
    Runs runs = both(rows, program);
    const std::vector<PgkmFeatureScale> scales(d, pgkm::sum_scale(0.0, 1.0, 1.0));
    PgkmProblem problem = direct.all;
    problem.k = k;
    problem.centroids = centroids.data();
    problem.feature_scales = scales.data();
    runs.emplace_back("direct", [&] {
        std::vector<PgkmInt128> totals(k * d), masses(k);
        PgkmAssignment out = {nullptr, nullptr, totals.data(), masses.data(), nullptr, nullptr};
        check(cpu_backend()->assign(direct.data, &problem, 1, &out, &direct.error), direct.error);
    });
    measure("k-means", runs);
}

void moments()
{
    constexpr std::int32_t d = 80;
    const std::vector<float> values = uniform(262144 * d);
    Loaded rows(values, d);
    Program program;
    const std::int32_t e = program.loop(d * d), at = program.index(e), width = program.constant(d);
    const std::int32_t a = program.add(PGKM_FLOOR, {program.add(PGKM_DIVIDE, {at, width})});
    const std::int32_t b = program.add(PGKM_MODULO, {at, width});
    program.item(program.add(PGKM_MULTIPLY, {program.column(0, a, d), program.column(0, b, d)}), PGKM_COMBINE_SUM, e);
    program.object(1, -1);
    Runs runs = both(rows, program);
    runs.emplace_back("moments", [&] {
        std::vector<double> shift(d), sums(d), cross(d * (d + 1) / 2);
        PgkmMoments out = {shift.data(), sums.data(), cross.data()};
        check(cpu_backend()->moments(rows.data, &rows.all, 1, &out, &rows.error), rows.error);
    });
    measure("moments", runs);
}

// value: exp(-s[j]) / sum(l, k, exp(-s[l])), s[j] = sum(i, d, power(f[i] - c[j][i], 2)), for each j
void softmax()
{
    constexpr std::int32_t d = 8, k = 16;
    const std::vector<float> values = uniform(1000000 * d);
    Loaded rows(values, d);
    Program program;
    program.parameters.assign(values.begin(), values.begin() + k * d);
    const std::int32_t j = program.loop(k), l = program.loop(k);
    const auto density = [&](std::int32_t loop) {
        const std::int32_t i = program.loop(d), at = program.index(i);
        const std::int32_t difference =
            program.add(PGKM_SUBTRACT, {program.column(0, at, d), program.parameter(0, program.index(loop), k, at, d)});
        const std::int32_t square = program.add(PGKM_POWER, {difference, program.constant(2.0)});
        return program.add(PGKM_EXP, {program.add(PGKM_NEGATE, {program.add(PGKM_SUM, {square}, i)})});
    };
    const std::int32_t own = density(j), all = program.add(PGKM_SUM, {density(l)}, l);
    program.item(program.add(PGKM_DIVIDE, {own, all}), PGKM_COMBINE_SUM, j);
    program.object(1, -1);
    measure("softmax", both(rows, program));
}

} // namespace

int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        if (name == "--threads")
            threads = std::atoi(argv[i + 1]);
        else if (name == "--repeats")
            repeats = std::atoi(argv[i + 1]);
        else if (name == "--only")
            only = argv[i + 1];
    }
    std::printf("case,by,cpu_ms,wall_ms\n");
    const std::pair<const char *, void (*)()> cases[] = {
        {"histogram", histogram}, {"mean", mean}, {"k-means", kmeans}, {"moments", moments}, {"softmax", softmax}};
    for (const auto &[name, run] : cases)
        if (only.empty() || only == name)
            run();
}
