// check.cpp - a small driver of a backend plugin against the reference, without a test
// framework, so that it runs on a bare GPU host and under compute-sanitizer.
//
//   check PLUGIN [quick|full] [seed] [first-last]    the cases by number; all without it
//
// Every case is compared bit for bit. Prints one line per failure and a summary.
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engine/contract.hpp"
#include "engine/reference.hpp"

namespace {

using namespace pgkm;

int failures = 0;
int cases = 0;

void expect(bool good, const std::string &what)
{
    ++cases;
    if (good)
        return;
    ++failures;
    if (failures <= 40)
        std::printf("FAIL %s\n", what.c_str());
}

struct Case {
    std::string  name;
    std::int64_t n;
    int          d;
    int          k;
    PgkmElement  element = PGKM_FLOAT32;
    bool         weighted = false;
    double       offset = 0.0;
    double       spread = 1.0;
    int          distinct = 0; // rows are drawn from so many values; 0: all differ
    PgkmInit     init = PGKM_INIT_RANDOM;
    PgkmMetric   metric = PGKM_L2;
    int          groups = 1;
    bool         far_start = false; // centroids that leave clusters empty
    double       tol = 0.0;
    bool         mixed_scale = false;
};

struct Rows {
    std::vector<float>  f32;
    std::vector<double> f64;
    std::vector<double> weights;
    PgkmPoints          points{};
};

Rows make_rows(const Case &c, unsigned seed)
{
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_int_distribution<int> blob(0, 4);
    Rows rows;
    std::vector<double> centres(5 * static_cast<std::size_t>(c.d));
    for (double &centre : centres)
        centre = 10.0 * c.spread * normal(random);
    const auto d = static_cast<std::size_t>(c.d);
    for (std::int64_t i = 0; i < c.n; ++i) {
        const std::size_t from = static_cast<std::size_t>(blob(random)) * d;
        for (std::size_t f = 0; f < d; ++f) {
            double value = c.offset + centres[from + f] + c.spread * normal(random);
            if (c.mixed_scale)
                value *= std::pow(10.0, static_cast<double>(i % 13) - 3.0);
            rows.f64.push_back(static_cast<double>(static_cast<float>(value)));
        }
    }
    for (std::int64_t i = c.distinct; c.distinct > 0 && i < c.n; ++i)
        std::copy_n(rows.f64.begin() + (i % c.distinct) * c.d, d, rows.f64.begin() + i * c.d);
    if (c.metric == PGKM_COSINE)
        for (std::int64_t i = 0; i < c.n; ++i)
            normalise(rows.f64.data() + i * c.d, c.d);
    if (c.weighted)
        for (std::int64_t i = 0; i < c.n; ++i)
            rows.weights.push_back(0.25 + std::fabs(normal(random)));
    if (c.element == PGKM_FLOAT32)
        rows.f32.assign(rows.f64.begin(), rows.f64.end());
    rows.points = {c.element == PGKM_FLOAT32 ? static_cast<const void *>(rows.f32.data()) : rows.f64.data(), c.element, c.n,
                   c.d, c.weighted ? rows.weights.data() : nullptr};
    return rows;
}

// All that a backend answers for one case.
struct Answer {
    PgkmStatus               status = PGKM_OK;
    std::string              text;
    std::vector<double>      summary;
    std::vector<int>         integers; // k found, n_iter, converged per group
    std::vector<double>      shifts;
    std::vector<char>        seeds, centroids;
    std::vector<std::int32_t> labels;
    std::vector<double>      distances;
    std::vector<PgkmInt128>  sums;
    std::vector<std::int64_t> sizes;
};

struct Group {
    std::vector<double>       stats;
    std::vector<std::int32_t> exponents;
    std::vector<char>         centroids;
};

template <typename Range>
void append(std::vector<char> &to, const Range &from) { to.insert(to.end(), from.begin(), from.end()); }

Answer run(const PgkmBackend *backend, const Case &c, const Rows &rows, const PgkmTuning &tuning, std::uint64_t limit,
           int max_iter)
{
    Answer answer;
    PgkmError error{};
    PgkmOpen open{};
    open.struct_size = sizeof open;
    open.device = -1;
    open.device_memory_limit = limit;
    open.tuning = tuning;
    PgkmContext *context = nullptr;
    PgkmData *data = nullptr;
    const auto failed = [&](PgkmStatus status) {
        answer.status = status;
        answer.text = error.text;
        return status != PGKM_OK;
    };
    const std::size_t width = c.element == PGKM_FLOAT32 ? 4 : 8;
    const auto d = static_cast<std::size_t>(c.d);
    std::vector<Group> groups(static_cast<std::size_t>(c.groups));
    std::vector<PgkmProblem> problems(groups.size());
    std::vector<PgkmSummary> summaries(groups.size());
    std::int64_t first = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
        groups[g].stats.resize(5 * d);
        groups[g].exponents.resize(d);
        groups[g].centroids.resize(static_cast<std::size_t>(c.k) * d * width);
        double *s = groups[g].stats.data();
        summaries[g] = {s, s + d, s + 2 * d, s + 3 * d, s + 4 * d, 0.0};
        const std::int64_t left = c.n - first;
        const std::int64_t share = g + 1 == groups.size() ? left : std::max<std::int64_t>(1, c.groups > 20 ? left / static_cast<std::int64_t>(groups.size() - g) : left / (2 + static_cast<std::int64_t>(g) % 3));
        problems[g] = {first, share, c.k, groups[g].centroids.data(), groups[g].exponents.data(), 0, 0, c.tol, 0, 0, 0.0};
        first += share;
    }
    const auto count = static_cast<std::int64_t>(groups.size());
    const PgkmSeedParams seed = {c.init, 17, 1};
    const PgkmFitParams fit = {c.metric, max_iter};
    if (!failed(backend->open(&open, &context, &error)) && !failed(backend->load(context, &rows.points, &data, &error)) &&
        !failed(backend->summarise(data, problems.data(), count, 1, summaries.data(), &error))) {
        for (std::size_t g = 0; g < groups.size(); ++g) {
            double bound = 0.0;
            for (std::size_t f = 0; f < d; ++f) {
                groups[g].exponents[f] = scale_exponent(summaries[g].max_abs[f]);
                const double range = summaries[g].max[f] - summaries[g].min[f];
                bound += 4 * range * range;
            }
            problems[g].weight_exponent = c.weighted ? scale_exponent(summaries[g].max_weight) : 0;
            problems[g].distance_exponent = square_exponent(bound * summaries[g].max_weight * 1.01);
            answer.summary.insert(answer.summary.end(), groups[g].stats.begin(), groups[g].stats.end());
            answer.summary.push_back(summaries[g].max_weight);
        }
        if (!failed(backend->seed(data, problems.data(), count, &seed, &error))) {
            for (std::size_t g = 0; g < groups.size(); ++g) {
                answer.integers.push_back(problems[g].k);
                const std::size_t bytes = static_cast<std::size_t>(problems[g].k) * d * width;
                answer.seeds.insert(answer.seeds.end(), groups[g].centroids.begin(), groups[g].centroids.begin() + static_cast<long>(bytes));
                if (c.far_start)
                    for (std::size_t j = bytes / 2 / width; j < bytes / width; ++j) {
                        if (c.element == PGKM_FLOAT32)
                            reinterpret_cast<float *>(groups[g].centroids.data())[j] += 1e4f;
                        else
                            reinterpret_cast<double *>(groups[g].centroids.data())[j] += 1e4;
                    }
            }
            if (!failed(backend->fit(data, problems.data(), count, &fit, &error))) {
                std::vector<PgkmAssignment> out(groups.size());
                std::vector<std::vector<PgkmInt128>> sums(groups.size());
                answer.labels.resize(static_cast<std::size_t>(c.n));
                answer.distances.resize(static_cast<std::size_t>(c.n));
                std::vector<std::vector<std::int64_t>> sizes(groups.size());
                for (std::size_t g = 0; g < groups.size(); ++g) {
                    const auto k = static_cast<std::size_t>(problems[g].k);
                    answer.integers.push_back(problems[g].n_iter);
                    answer.integers.push_back(problems[g].converged);
                    answer.shifts.push_back(problems[g].shift);
                    answer.centroids.insert(answer.centroids.end(), groups[g].centroids.begin(),
                                            groups[g].centroids.begin() + static_cast<long>(k * d * width));
                    sums[g].resize(k * (d + 2));
                    sizes[g].resize(k);
                    out[g] = {answer.labels.data() + problems[g].first_row, answer.distances.data() + problems[g].first_row,
                              sums[g].data(), sums[g].data() + k * d, sums[g].data() + k * (d + 1), sizes[g].data()};
                }
                failed(backend->assign(data, problems.data(), count, out.data(), &error));
                for (std::size_t g = 0; g < groups.size(); ++g) {
                    answer.sums.insert(answer.sums.end(), sums[g].begin(), sums[g].end());
                    answer.sizes.insert(answer.sizes.end(), sizes[g].begin(), sizes[g].end());
                }
            }
        }
    }
    backend->unload(data);
    backend->close(context);
    return answer;
}

template <typename V>
bool same(const std::vector<V> &a, const std::vector<V> &b)
{
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(V)) == 0);
}

void compare(const std::string &name, const Answer &want, const Answer &got)
{
    if (got.status != PGKM_OK) {
        expect(false, name + ": status " + std::to_string(got.status) + " " + got.text);
        return;
    }
    expect(want.summary == got.summary, name + ": summary");
    expect(want.integers == got.integers, name + ": k, n_iter, converged");
    expect(same(want.seeds, got.seeds), name + ": seeds");
    expect(same(want.shifts, got.shifts), name + ": shift");
    expect(same(want.centroids, got.centroids), name + ": centroids");
    expect(same(want.labels, got.labels), name + ": labels");
    expect(same(want.distances, got.distances), name + ": distances");
    expect(same(want.sums, got.sums), name + ": sums");
    expect(same(want.sizes, got.sizes), name + ": sizes");
}

std::vector<Case> make_cases(bool full)
{
    std::vector<Case> cases;
    const auto add = [&](Case c) {
        for (const PgkmElement element : {PGKM_FLOAT32, PGKM_FLOAT64}) {
            c.element = element;
            cases.push_back(c);
        }
    };
    const PgkmInit inits[] = {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM, PGKM_INIT_FIRST};
    int i = 0;
    for (const int d : {1, 2, 3, 4, 7, 8, 16, 17, 32, 34, 41, 54, 64, 100, 128})
        add({.name = "d", .n = 3001, .d = d, .k = 7 + d % 5, .weighted = d % 3 == 0, .init = inits[i++ % 4]});
    add({.name = "one cluster", .n = 777, .d = 5, .k = 1, .init = PGKM_INIT_KMEANS_PLUS_PLUS});
    add({.name = "n clusters", .n = 65, .d = 3, .k = 65, .init = PGKM_INIT_KMEANS_PLUS_PLUS});
    add({.name = "n below k", .n = 9, .d = 3, .k = 20, .init = PGKM_INIT_KMEANS_PARALLEL});
    add({.name = "many clusters", .n = 5000, .d = 4, .k = 400, .init = PGKM_INIT_RANDOM});
    add({.name = "duplicates", .n = 2000, .d = 4, .k = 16, .distinct = 9, .init = PGKM_INIT_KMEANS_PLUS_PLUS});
    add({.name = "duplicates random", .n = 2000, .d = 20, .k = 16, .distinct = 9, .init = PGKM_INIT_RANDOM});
    add({.name = "offset", .n = 4000, .d = 6, .k = 12, .offset = 1e6, .init = PGKM_INIT_KMEANS_PLUS_PLUS});
    add({.name = "offset 40", .n = 4000, .d = 40, .k = 12, .offset = 1e6, .init = PGKM_INIT_RANDOM});
    add({.name = "mixed scale", .n = 3000, .d = 3, .k = 10, .weighted = true, .init = PGKM_INIT_KMEANS_PARALLEL, .mixed_scale = true});
    add({.name = "mixed scale 33", .n = 3000, .d = 33, .k = 10, .init = PGKM_INIT_RANDOM, .mixed_scale = true});
    add({.name = "tiny", .n = 3000, .d = 5, .k = 10, .spread = 1e-40, .init = PGKM_INIT_RANDOM});
    add({.name = "huge", .n = 3000, .d = 5, .k = 10, .spread = 1e36, .init = PGKM_INIT_RANDOM});
    add({.name = "huge 40", .n = 1000, .d = 40, .k = 10, .spread = 1e36, .init = PGKM_INIT_RANDOM});
    add({.name = "empty clusters", .n = 3000, .d = 4, .k = 12, .init = PGKM_INIT_RANDOM, .far_start = true});
    add({.name = "empty clusters 48", .n = 1500, .d = 48, .k = 12, .weighted = true, .init = PGKM_INIT_RANDOM, .far_start = true});
    add({.name = "negative tol", .n = 1500, .d = 3, .k = 6, .init = PGKM_INIT_RANDOM, .tol = -1.0});
    add({.name = "tol", .n = 1500, .d = 3, .k = 6, .init = PGKM_INIT_RANDOM, .tol = 1e-3});
    add({.name = "cosine", .n = 3000, .d = 12, .k = 9, .init = PGKM_INIT_KMEANS_PLUS_PLUS, .metric = PGKM_COSINE});
    add({.name = "cosine 64", .n = 3000, .d = 64, .k = 9, .weighted = true, .init = PGKM_INIT_KMEANS_PARALLEL, .metric = PGKM_COSINE});
    add({.name = "groups", .n = 4000, .d = 4, .k = 6, .weighted = true, .init = PGKM_INIT_KMEANS_PLUS_PLUS, .groups = 12});
    add({.name = "groups 2", .n = 4000, .d = 9, .k = 6, .init = PGKM_INIT_KMEANS_PARALLEL, .groups = 7, .far_start = true});
    add({.name = "groups 80", .n = 6000, .d = 5, .k = 5, .init = PGKM_INIT_KMEANS_PLUS_PLUS, .groups = 80, .tol = 1e-3});
    add({.name = "groups cosine", .n = 6000, .d = 10, .k = 7, .weighted = true, .init = PGKM_INIT_KMEANS_PLUS_PLUS, .metric = PGKM_COSINE, .groups = 9});
    add({.name = "groups duplicates", .n = 3000, .d = 3, .k = 12, .distinct = 11, .init = PGKM_INIT_KMEANS_PLUS_PLUS, .groups = 6});
    if (full) {
        add({.name = "large d", .n = 500, .d = 1536, .k = 12, .init = PGKM_INIT_KMEANS_PLUS_PLUS});
        add({.name = "k 1100", .n = 6000, .d = 24, .k = 1100, .init = PGKM_INIT_RANDOM});
        add({.name = "k 2000", .n = 9000, .d = 2, .k = 2000, .init = PGKM_INIT_RANDOM});
        add({.name = "longer", .n = 200000, .d = 4, .k = 8, .init = PGKM_INIT_KMEANS_PLUS_PLUS});
        add({.name = "longer 40", .n = 60000, .d = 40, .k = 20, .weighted = true, .init = PGKM_INIT_RANDOM});
        add({.name = "longer 2", .n = 300000, .d = 2, .k = 40, .init = PGKM_INIT_RANDOM});
    }
    return cases;
}

void check_strategies(const PgkmBackend *backend, const Case &c, const Rows &rows, const Answer &want, int max_iter)
{
    const char *const stages[] = {"assignment", "execution", "feature_sum", "mass_sum"};
    for (const char *stage : stages)
        for (const char *const *name = backend->strategies(stage); *name != nullptr; ++name) {
            PgkmTuning tuning{};
            (stage[0] == 'a' ? tuning.assignment : stage[0] == 'e' ? tuning.execution : stage[0] == 'f' ? tuning.feature_sum : tuning.mass_sum) = *name;
            compare(c.name + " d=" + std::to_string(c.d) + " " + stage + "=" + *name, want, run(backend, c, rows, tuning, 0, max_iter));
        }
}

} // namespace

int main(int argc, char **argv)
{
    const bool full = argc > 2 && std::strcmp(argv[2], "full") == 0;
    const unsigned seed = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 1;
    const PgkmBackend *backend = reference_backend();
    if (argc > 1 && std::strcmp(argv[1], "reference") != 0) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            std::printf("%s\n", dlerror());
            return 2;
        }
        using Entry = const PgkmBackend *(*)(std::uint32_t);
        backend = reinterpret_cast<Entry>(dlsym(library, PGKM_BACKEND_ENTRY))(PGKM_BACKEND_ABI);
    }
    PgkmDevice device{};
    std::int32_t devices = 0;
    PgkmError error{};
    if (backend->probe(&device, 1, &devices, &error) != PGKM_OK)
        std::printf("probe: %s\n", error.text);
    else
        std::printf("probe: %d device(s), %s usable %d %s\n", devices, device.name, device.usable, device.reason);
    int from = 0, to = 1 << 30, index = -1;
    if (argc > 4)
        std::sscanf(argv[4], "%d-%d", &from, &to);
    for (const Case &c : make_cases(full)) {
        if (++index < from || index > to)
            continue;
        const Rows rows = make_rows(c, seed * 1000 + static_cast<unsigned>(index));
        const int max_iter = c.n > 20000 ? 4 : 12;
        const Answer want = run(reference_backend(), c, rows, {}, 0, max_iter);
        const char *type = c.element == PGKM_FLOAT32 ? " f32" : " f64";
        const std::string name = c.name + type + " n=" + std::to_string(c.n) + " d=" + std::to_string(c.d) + " k=" + std::to_string(c.k);
        compare(name, want, run(backend, c, rows, {}, 0, max_iter));
        const std::uint64_t bytes = static_cast<std::uint64_t>(c.n) * static_cast<std::uint64_t>(c.d) * 4;
        if (bytes > 2000000 && c.d >= 4) // the rows do not fit: streamed
            compare(name + " streamed", want, run(backend, c, rows, {}, bytes * 3 / 4, max_iter));
        if (full || index % 5 == 0 || c.far_start)
            check_strategies(backend, c, rows, want, max_iter);
        if (failures > 40)
            break;
    }
    std::printf("check: %d comparisons, %d failures\n", cases, failures);
    return failures == 0 ? 0 : 1;
}
