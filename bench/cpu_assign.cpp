// cpu_assign - what an iteration of the CPU backend takes, per shape and strategy.
//
//   cpu_assign [--threads N] [--assignment NAME] [--instruction-set NAME] [--repeats N]
//              [--points FILE --centroids FILE --n N --d N --k N]
//
// Without files: blobs (10 centres uniform in [-100, 100]^d, normal spread 10 / sqrt(d) per
// coordinate, k random rows as centroids) in the five shapes of docs/benchmarks.md. With
// files (raw float32, row-major): that one set; compare_sklearn.py uses it. Output: CSV, the
// median over the repeats, milliseconds. first_ms is a fit of one iteration, fit10_ms one of
// ten (fewer if it converges), iteration_ms the latter per iteration; the cpu columns are the processor
// time of all threads, which is steadier on a machine that does other work too.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.hpp"
#include "engine/contract.hpp"

namespace {

struct Options {
    int threads = 0;
    const char *assignment = "auto";
    const char *instruction_set = "auto";
    int repeats = 3;
    const char *points = nullptr;
    const char *centroids = nullptr;
    std::int64_t n = 0;
    std::int32_t d = 0;
    std::int32_t k = 0;
};

struct Set {
    std::int64_t n;
    std::int32_t d;
    std::int32_t k;
    std::vector<float> points;
    std::vector<float> centroids;
};

[[noreturn]] void fail(const std::string &text)
{
    std::fprintf(stderr, "cpu_assign: %s\n", text.c_str());
    std::exit(1);
}

void check(PgkmStatus status, const PgkmError &error)
{
    if (status != PGKM_OK)
        fail(error.text);
}

Set blobs(std::int64_t n, std::int32_t d, std::int32_t k)
{
    Set set = {n, d, k, {}, {}};
    std::mt19937_64 random(42);
    std::uniform_real_distribution<float> uniform(-100.0f, 100.0f);
    std::normal_distribution<float> normal(0.0f, 10.0f / std::sqrt(static_cast<float>(d)));
    std::vector<float> centres(static_cast<std::size_t>(10 * d));
    std::generate(centres.begin(), centres.end(), [&] { return uniform(random); });
    for (std::int64_t i = 0; i < n; ++i) {
        const auto centre = static_cast<std::size_t>(random() % 10) * static_cast<std::size_t>(d);
        for (std::int32_t f = 0; f < d; ++f)
            set.points.push_back(centres[centre + static_cast<std::size_t>(f)] + normal(random));
    }
    for (std::int32_t j = 0; j < k; ++j) {
        const auto row = static_cast<std::ptrdiff_t>(random() % static_cast<std::uint64_t>(n));
        set.centroids.insert(set.centroids.end(), set.points.begin() + row * d, set.points.begin() + (row + 1) * d);
    }
    return set;
}

std::vector<float> read_floats(const char *path, std::int64_t count)
{
    std::vector<float> values(static_cast<std::size_t>(count));
    std::ifstream file(path, std::ios::binary);
    if (!file.read(reinterpret_cast<char *>(values.data()), count * static_cast<std::streamsize>(sizeof(float))))
        fail(std::string("cannot read ") + path);
    return values;
}

struct Times {
    double wall;
    double processor;
};

// Milliseconds.
Times measure(const std::function<void()> &body)
{
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t processor = std::clock();
    body();
    return {std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count(),
            1e3 * static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC};
}

void measure_set(const PgkmBackend &backend, PgkmContext *context, const Set &set, const Options &options)
{
    PgkmError error;
    const PgkmPoints points = {set.points.data(), PGKM_FLOAT32, set.n, set.d, nullptr};
    PgkmData *data = nullptr;
    check(backend.load(context, &points, &data, &error), error);
    std::vector<double> low(static_cast<std::size_t>(set.d)), high(low), largest(low);
    PgkmSummary summary = {low.data(), high.data(), largest.data(), nullptr, nullptr, 1.0};
    PgkmProblem problem = {};
    problem.n_rows = set.n;
    problem.k = set.k;
    check(backend.summarise(data, &problem, 1, 0, &summary, &error), error);
    std::vector<std::int32_t> exponents;
    for (const double value : largest)
        exponents.push_back(pgkm::scale_exponent(value));
    problem.feature_exponent = exponents.data();

    std::vector<double> first, first_processor, ten, processor;
    std::vector<float> centroids;
    std::int32_t iterations = 0;
    for (int repeat = 0; repeat < options.repeats; ++repeat) {
        for (const std::int32_t max_iter : {1, 10}) {
            centroids = set.centroids;
            problem.centroids = centroids.data();
            const PgkmFitParams params = {PGKM_L2, max_iter};
            PgkmStatus status = PGKM_OK;
            const Times times = measure([&] { status = backend.fit(data, &problem, 1, &params, &error); });
            check(status, error);
            (max_iter == 1 ? first : ten).push_back(times.wall);
            (max_iter == 1 ? first_processor : processor).push_back(times.processor);
        }
        iterations = problem.n_iter;
    }
    const auto median = [](std::vector<double> &times) {
        std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
        return times[times.size() / 2];
    };
    const double fit = median(ten);
    std::printf("%lld,%d,%d,%s,%s,%d,%.3f,%.3f,%.3f,%d,%.3f,%.3f\n", static_cast<long long>(set.n), set.d, set.k,
                options.assignment, options.instruction_set, options.threads, median(first), median(first_processor),
                fit, iterations, fit / iterations, median(processor) / iterations);
    std::fflush(stdout);
    backend.unload(data);
}

Options parse(int argc, char **argv)
{
    Options options;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            fail(std::string("no value for ") + argv[i]);
        const std::string name = argv[i];
        const char *value = argv[i + 1];
        if (name == "--threads")
            options.threads = std::atoi(value);
        else if (name == "--assignment")
            options.assignment = value;
        else if (name == "--instruction-set")
            options.instruction_set = value;
        else if (name == "--repeats")
            options.repeats = std::max(1, std::atoi(value));
        else if (name == "--points")
            options.points = value;
        else if (name == "--centroids")
            options.centroids = value;
        else if (name == "--n")
            options.n = std::atoll(value);
        else if (name == "--d")
            options.d = std::atoi(value);
        else if (name == "--k")
            options.k = std::atoi(value);
        else
            fail("unknown option " + name);
    }
    return options;
}

} // namespace

int main(int argc, char **argv)
{
    const Options options = parse(argc, argv);
    const PgkmBackend &backend = *pgkm::cpu_backend();
    PgkmOpen open = {};
    open.struct_size = sizeof open;
    open.device = -1;
    open.threads = options.threads;
    open.tuning.assignment = options.assignment;
    open.tuning.instruction_set = options.instruction_set;
    PgkmError error;
    PgkmContext *context = nullptr;
    check(backend.open(&open, &context, &error), error);
    std::puts("n,d,k,assignment,instruction_set,threads,first_ms,first_cpu_ms,fit10_ms,iterations,iteration_ms,cpu_ms");
    if (options.points != nullptr && options.centroids != nullptr) {
        const Set set = {options.n, options.d, options.k, read_floats(options.points, options.n * options.d),
                         read_floats(options.centroids, std::int64_t{options.k} * options.d)};
        measure_set(backend, context, set, options);
    } else {
        const struct {
            std::int64_t n;
            std::int32_t d, k;
        } shapes[] = {{1000000, 2, 100}, {1000000, 8, 100}, {1000000, 34, 32}, {500000, 54, 64}, {100000, 128, 256}};
        for (const auto &shape : shapes)
            if (options.d == 0 || options.d == shape.d)
                measure_set(backend, context, blobs(shape.n, shape.d, shape.k), options);
    }
    backend.close(context);
}
