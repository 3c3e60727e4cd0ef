// Rows that repeat: calls that go by the rows that differ have the bits of the reference, and of all rows.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../reference/reference.hpp"
#include "backend/update.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/entries/entries.hpp"
#include "draws.hpp"
#include "engine/job/algorithm.hpp"
#include "fit_run.hpp"
#include "numeric/contract.hpp"

namespace pgkm {
namespace {

// Where a call goes.
enum class By { reference, rows, entries };

template <typename T>
struct Table {
    std::vector<T> values;
    std::int32_t d;
    std::vector<double> weights = {};
    std::int64_t n() const { return static_cast<std::int64_t>(values.size()) / d; }
};

template <typename T>
struct Outcome {
    PgkmStatus status = PGKM_OK;
    std::int32_t k = 0, n_iter = 0, converged = 0;
    double shift = 0.0;
    std::vector<T> seeds, centroids;
    std::vector<std::int32_t> labels;
    std::vector<double> distances;
    std::vector<Int128> sums;
    std::vector<std::int64_t> sizes;
    bool operator==(const Outcome &) const = default;
};

struct Options {
    std::int32_t k = 7;
    PgkmInit init = PGKM_INIT_KMEANS_PLUS_PLUS;
    std::uint64_t seed = 1;
    double tol = 0.0;
    std::int32_t max_iter = 6;
    std::int32_t threads = 3;
    std::uint64_t limit = 0;
    const char *instruction_set = nullptr;
    bool same_centroids = false; // in place of seeds: one row, so that all clusters but one are empty
};

// Rows in an open backend. `looks` counts down to a cancel.
template <typename T>
class Loaded {
  public:
    Loaded(const Table<T> &table, By by, const Options &options) : rows_(table), by_(by), options_(options)
    {
        PgkmOpen open = {};
        open.struct_size = sizeof open;
        open.threads = options.threads;
        open.memory_limit = options.limit;
        open.tuning.instruction_set = options.instruction_set;
        open.host.cancelled = [](void *arg) { return --static_cast<Loaded *>(arg)->looks < 0 ? 1 : 0; };
        open.host.arg = this;
        const PgkmPoints points = {rows_.values.data(), sizeof(T) == 4 ? PGKM_FLOAT32 : PGKM_FLOAT64, rows_.n(),
                                   rows_.d, rows_.weights.empty() ? nullptr : rows_.weights.data()};
        EXPECT_EQ(backend_->open(&open, &context_, &error_), PGKM_OK);
        EXPECT_EQ(backend_->load(context_, &points, &data_, &error_), PGKM_OK);
        if (by_ == By::rows)
            cpu::self(data_)->may_repeat = false;
    }
    ~Loaded()
    {
        backend_->unload(data_);
        backend_->close(context_);
    }
    Loaded(const Loaded &) = delete;

    // Seeds, fits, and assigns.
    Outcome<T> run()
    {
        Outcome<T> out;
        const auto d = static_cast<std::size_t>(rows_.d), k = static_cast<std::size_t>(options_.k);
        const std::vector<PgkmFeatureScale> scales = summarise(&out);
        std::vector<T> &centroids = out.centroids;
        centroids.resize(k * d);
        PgkmProblem problem = {};
        problem.n_rows = rows_.n();
        problem.k = options_.k;
        problem.centroids = centroids.data();
        problem.feature_scales = scales.data();
        problem.tol = options_.tol;
        if (!rows_.weights.empty())
            problem.weight_exponent = scale_exponent(*std::max_element(rows_.weights.begin(), rows_.weights.end()));
        problem.distance_exponent = square_exponent(1e9);
        const PgkmSeedParams seeding = {options_.init, options_.seed, 0, 0};
        const PgkmFitParams fitting = {PGKM_L2, options_.max_iter};
        if (options_.same_centroids)
            for (std::size_t i = 0; i < centroids.size(); ++i)
                centroids[i] = rows_.values[i % d];
        else
            out.status = backend_->seed(data_, &problem, 1, &seeding, &error_);
        out.seeds = centroids;
        if (out.status == PGKM_OK) {
            out.status = backend_->fit(data_, &problem, 1, &fitting, &error_);
            left_as_it_was = out.status == PGKM_OK || (centroids == out.seeds && problem.n_iter == 0);
        }
        out.k = problem.k;
        out.n_iter = problem.n_iter;
        out.converged = problem.converged;
        out.shift = problem.shift;
        out.labels.resize(static_cast<std::size_t>(rows_.n()));
        out.distances.resize(out.labels.size());
        out.sizes.resize(k);
        std::vector<PgkmInt128> totals(k * d), masses(k), within(k);
        PgkmAssignment wanted = {out.labels.data(), out.distances.data(), totals.data(),
                                 masses.data(),     within.data(),        out.sizes.data()};
        if (out.status == PGKM_OK)
            out.status = backend_->assign(data_, &problem, 1, &wanted, &error_);
        for (const auto *each : {&totals, &masses, &within})
            for (const PgkmInt128 sum : *each)
                out.sums.push_back(join(sum));
        return out.status == PGKM_OK ? out : Outcome<T>{out.status, 0, 0, 0, 0.0, {}, {}, {}, {}, {}, {}};
    }

    bool has_entries() const { return by_ == By::entries && cpu::self(data_)->entries != nullptr; }

    std::atomic<int> looks{std::numeric_limits<int>::max()};
    bool left_as_it_was = true; // the problem, by a fit that failed

  private:
    std::vector<PgkmFeatureScale> summarise(Outcome<T> *out)
    {
        const auto d = static_cast<std::size_t>(rows_.d);
        std::vector<double> least(d), most(d), mean(d), variance(d);
        PgkmSummary summary = {least.data(), most.data(), mean.data(), variance.data(), 1.0};
        PgkmProblem all = {};
        all.n_rows = rows_.n();
        out->status = backend_->summarise(data_, &all, 1, 1, &summary, &error_);
        std::vector<PgkmFeatureScale> scales;
        for (std::size_t f = 0; f < d && out->status == PGKM_OK; ++f)
            scales.push_back(sum_scale(least[f], most[f], summary.max_weight));
        scales.resize(d);
        return scales;
    }

    const Table<T> &rows_;
    const By by_;
    const Options options_;
    const PgkmBackend *backend_ = by_ == By::reference ? reference_backend() : cpu_backend();
    PgkmContext *context_ = nullptr;
    PgkmData *data_ = nullptr;
    PgkmError error_ = {};
};

template <typename T>
void expect_same(const Table<T> &table, const Options &options, bool rows_repeat = true)
{
    // Without a draw, few clusters are not worth making entries.
    const bool drawn = options.init != PGKM_INIT_FIRST && !options.same_centroids;
    const bool with_entries = rows_repeat && (drawn || options.k * std::min(options.max_iter, 10) >= 128);
    const Outcome<T> expected = Loaded<T>(table, By::reference, options).run();
    ASSERT_EQ(expected.status, PGKM_OK);
    EXPECT_TRUE(Loaded<T>(table, By::rows, options).run() == expected);
    Loaded<T> loaded(table, By::entries, options);
    EXPECT_TRUE(loaded.run() == expected);
    EXPECT_EQ(loaded.has_entries(), with_entries);
    EXPECT_TRUE(loaded.run() == expected) << "again";
}

// --- tables ---

// n rows, most of them one of `few`; the others are their own.
template <typename T>
Table<T> repeated(std::int64_t n, std::int32_t d, std::int64_t few, double share, std::uint64_t seed = 3)
{
    Draws draws(seed);
    const Values known =
        draws.fill(static_cast<std::size_t>(few * d), [](Draws &next) { return 10.0 * next.normal(); });
    Table<T> table = {{}, d};
    for (std::int64_t i = 0; i < n; ++i) {
        const bool repeats = draws.uniform() < share;
        const auto which = static_cast<std::int64_t>(draws.uniform() * static_cast<double>(few));
        for (std::int32_t f = 0; f < d; ++f)
            table.values.push_back(
                static_cast<T>(repeats ? known[static_cast<std::size_t>(which * d + f)] : 10.0 * draws.normal()));
    }
    return table;
}

template <typename T>
Table<T> lattice(std::int64_t n, std::int32_t d, int values)
{
    Draws draws(5);
    Table<T> table = {{}, d};
    for (std::int64_t i = 0; i < n * d; ++i)
        table.values.push_back(static_cast<T>(std::floor(values * draws.uniform())));
    return table;
}

// Equal rows have some equal weights, too.
template <typename T>
Table<T> weighted(Table<T> table)
{
    for (std::int64_t i = 0; i < table.n(); ++i)
        table.weights.push_back(std::vector<double>{0.3, 1.0, 1e-9}[static_cast<std::size_t>(i) % 3]);
    return table;
}

constexpr PgkmInit inits[] = {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM, PGKM_INIT_FIRST};

template <typename T>
class EntriesOf : public testing::Test {
};
using Elements = testing::Types<float, double>;
TYPED_TEST_SUITE(EntriesOf, Elements);

TYPED_TEST(EntriesOf, HaveTheBitsOfTheirRows)
{
    using T = TypeParam;
    const Table<T> tables[] = {repeated<T>(4500, 9, 300, 0.99), weighted(repeated<T>(4500, 9, 300, 0.99)),
                               lattice<T>(5000, 3, 3), weighted(lattice<T>(5000, 3, 3)),
                               repeated<T>(4500, 70, 700, 1.0)};
    for (const Table<T> &table : tables)
        for (const PgkmInit init : inits)
            for (const std::int32_t k : {2, 40}) {
                SCOPED_TRACE(std::to_string(&table - tables) + ", init " + std::to_string(init) + ", k " +
                             std::to_string(k));
                Options options;
                options.k = k;
                options.init = init;
                options.seed = static_cast<std::uint64_t>(k);
                options.tol = k == 40 ? 0.5 : 0.0;
                options.threads = k == 2 ? 1 : 3;
                expect_same(table, options);
            }
}

TYPED_TEST(EntriesOf, AreTheSameWithEveryInstructionSet)
{
    using T = TypeParam;
    for (const Table<T> &table : {repeated<T>(5000, 11, 200, 0.98), weighted(repeated<T>(5000, 11, 200, 0.98))})
        for (const char *const *set = cpu_backend()->strategies("instruction_set"); *set != nullptr; ++set) {
            SCOPED_TRACE(*set);
            Options options;
            options.instruction_set = *set;
            expect_same(table, options);
        }
}

TYPED_TEST(EntriesOf, GiveEmptyClustersOneCopyEach)
{
    using T = TypeParam;
    for (const Table<T> &table : {lattice<T>(5000, 2, 4), weighted(lattice<T>(5000, 2, 4))})
        for (const std::int32_t k : {3, 13, 30}) { // 16 rows differ
            SCOPED_TRACE(k);
            Options options;
            options.k = k;
            options.same_centroids = true;
            options.max_iter = 20;
            expect_same(table, options);
        }
}

// Of two rows there are so many copies that, once one is chosen, the mass of the other is just above 2^64: what 64 bits
// would leave of it is less than that of the few rows between.
TYPED_TEST(EntriesOf, HoldManyCopies)
{
    using T = TypeParam;
    Table<T> table = lattice<T>(3000, 3, 3);
    const T far(127.9); // whose square, almost 2^14, is drawn by as an integer of almost 2^46
    const double copies = 0x1p18 / (static_cast<double>(far) * static_cast<double>(far) * 0x1p-14);
    for (int i = 0; i <= static_cast<int>(copies); ++i)
        table.values.insert(table.values.end(), {T(0), T(0), T(0), far, T(0), T(0)});
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM})
        for (const std::int32_t k : {2, 7}) {
            SCOPED_TRACE(std::to_string(init) + ", k " + std::to_string(k));
            Options options;
            options.init = init;
            options.k = k;
            options.max_iter = 3;
            expect_same(k == 7 && init == PGKM_INIT_KMEANS_PARALLEL ? weighted(table) : table, options);
        }
}

TYPED_TEST(EntriesOf, TellRowsApartByTheLastBitAndNotBySignsOfZero)
{
    using T = TypeParam;
    Table<T> table = lattice<T>(6000, 3, 2);
    for (std::size_t i = 0; i < table.values.size(); ++i) {
        T &value = table.values[i];
        if (value == T(0) && i % 5 == 0)
            value = -value;
        if (value == T(1) && i % 7 == 0)
            value = std::nextafter(value, T(2));
    }
    for (const PgkmInit init : inits) {
        SCOPED_TRACE(init);
        Options options;
        options.init = init;
        options.k = 20;
        expect_same(table, options);
    }
}

TEST(Entries, AreGuessedFromASample)
{
    const auto guess = [](const std::vector<std::uint32_t> &times) { // that each content comes
        DistinctGuess guess;
        for (const std::uint32_t all : times)
            for (std::uint32_t before = 0; before < all; ++before)
                guess.add(before);
        return guess.distinct();
    };
    std::vector<std::uint32_t> times(10, 1);
    times.insert(times.end(), 7, 2);
    EXPECT_EQ(guess(times), std::numeric_limits<double>::infinity()); // seven rows equal another one
    times.push_back(2);
    EXPECT_EQ(guess(times), 18 + 10 * 9 / (2.0 * 9));
    times.push_back(5);
    EXPECT_EQ(guess(times), 19 + 10 * 9 / (2.0 * 9));
    EXPECT_EQ(guess(std::vector<std::uint32_t>(3, 100)), 3.0);
}

TEST(Entries, AreNotMadeOfRowsThatDiffer)
{
    Options options;
    expect_same(repeated<float>(6000, 5, 6000, 0.0), options, false);
    expect_same(repeated<float>(6000, 5, 10, 0.5), options, false);
    Table<float> table = lattice<float>(6000, 2, 2); // which repeat, but for their weights
    for (int i = 0; i < 6000; ++i)
        table.weights.push_back(1.0 + i);
    expect_same(table, options, false);
}

TEST(Entries, NeedNoMoreMemoryThanRows)
{
    const Table<double> table = repeated<double>(5000, 8, 1100, 1.0); // which take about as much to find as to fit
    Options options;
    options.threads = 1;
    const Outcome<double> expected = Loaded<double>(table, By::reference, options).run();
    bool was_enough = false, with = false, without = false;
    for (options.limit = 20000; options.limit < 4000000; options.limit += options.limit / 16) {
        const Outcome<double> by_rows = Loaded<double>(table, By::rows, options).run();
        Loaded<double> loaded(table, By::entries, options);
        const Outcome<double> found = loaded.run();
        was_enough = was_enough || by_rows.status == PGKM_OK || found.status == PGKM_OK;
        EXPECT_EQ(found.status, was_enough ? PGKM_OK : PGKM_LIMIT) << options.limit;
        EXPECT_TRUE(found.status != PGKM_OK || found == expected) << options.limit;
        with = with || (found.status == PGKM_OK && loaded.has_entries());
        without = without || (found.status == PGKM_OK && !loaded.has_entries());
    }
    EXPECT_TRUE(with) << "no entries under any limit";
    EXPECT_TRUE(without);
}

TEST(Entries, EndWithACancel)
{
    const Table<double> table = repeated<double>(50000, 3, 50, 1.0);
    Options options;
    options.threads = 1;
    const Outcome<double> expected = Loaded<double>(table, By::reference, options).run();
    int cancelled = 0;
    for (int looks = 0;; looks += 1 + looks / 8) {
        Loaded<double> loaded(table, By::entries, options);
        loaded.looks = looks;
        const Outcome<double> found = loaded.run();
        EXPECT_EQ(found.status, loaded.looks < 0 ? PGKM_CANCELLED : PGKM_OK) << looks;
        EXPECT_TRUE(loaded.left_as_it_was) << looks;
        cancelled += found.status == PGKM_CANCELLED ? 1 : 0;
        loaded.looks = std::numeric_limits<int>::max();
        EXPECT_TRUE(loaded.run() == expected) << looks;
        if (found.status == PGKM_OK)
            break;
    }
    EXPECT_GT(cancelled, 10);
}

// --- whole jobs ---

std::atomic<int> loads_with_entries;

// The CPU backend, which counts loads that had entries; or without them.
const PgkmBackend *watched(bool with_entries)
{
    static PgkmBackend with = *cpu_backend(), without = *cpu_backend();
    with.unload = [](PgkmData *data) {
        loads_with_entries += data != nullptr && cpu::self(data)->entries != nullptr ? 1 : 0;
        cpu_backend()->unload(data);
    };
    without.load = [](PgkmContext *context, const PgkmPoints *points, PgkmData **data, PgkmError *error) {
        const PgkmStatus status = cpu_backend()->load(context, points, data, error);
        if (*data != nullptr)
            cpu::self(*data)->may_repeat = false;
        return status;
    };
    return with_entries ? &with : &without;
}

std::vector<double> numbers_of(const PgkmRequest &request, const PgkmBackend *table, std::uint64_t limit = 0)
{
    Monitor monitor;
    PgkmOpen open = {};
    open.threads = 2;
    open.memory_limit = limit;
    open.host = monitor.host();
    Workplace place({table, -1, 0}, open);
    const std::unique_ptr<Models> models = kmeans.fit(request, &place, monitor);
    std::vector<double> found;
    for (std::int64_t i = 0; i < models->size(); ++i) {
        PgkmResult one = {};
        models->get(i, &one);
        const auto add = [&](const auto *values, std::int64_t count) {
            if (values != nullptr)
                found.insert(found.end(), values, values + count);
        };
        found.insert(found.end(), {static_cast<double>(one.k), static_cast<double>(one.n_iter), one.inertia});
        add(one.centroids, std::int64_t{one.k} * one.d);
        add(one.sizes, one.k);
        add(one.within_ss, one.k);
        add(one.labels, one.n);
        add(one.distances, one.n);
    }
    return found;
}

TEST(Entries, ServeWholeJobs)
{
    const std::vector<double> rows = repeated<double>(6000, 4, 150, 0.99).values;
    std::vector<PgkmRequest> requests(7, request_for(rows, 4, 9));
    requests[1].kmeans.refine = 1;
    requests[2].kmeans.max_radius = 12.0;
    requests[3].kmeans.n_init = 4;
    requests[3].kmeans.init = PGKM_INIT_RANDOM;
    requests[4].k_last = 12;
    requests[4].silhouette_rows = 50;
    requests[5].kmeans.standardize = 1;
    requests[5].kmeans.metric = PGKM_COSINE;
    requests[6].kmeans.batch_size = 500;
    for (PgkmRequest &request : requests) {
        SCOPED_TRACE(&request - requests.data());
        const std::vector<double> expected = numbers_of(request, reference_backend());
        EXPECT_TRUE(numbers_of(request, watched(false)) == expected);
        loads_with_entries = 0;
        EXPECT_TRUE(numbers_of(request, watched(true)) == expected);
        EXPECT_EQ(loads_with_entries.load() > 0, request.kmeans.batch_size == 0);
    }
}

// Groups of these sizes, one behind the other.
std::vector<PgkmGroup> groups_of(const Table<double> &table, const std::vector<std::int64_t> &sizes, std::int64_t k)
{
    std::vector<PgkmGroup> groups;
    std::int64_t first = 0;
    for (const std::int64_t size : sizes) {
        groups.push_back({table.values.data() + first * table.d,
                          table.weights.empty() ? nullptr : table.weights.data() + first, size, k});
        first += size;
    }
    return groups;
}

// All groups have the same rows, which are told apart; a small one, and one whose rows differ, go with the others.
Table<double> rows_of_groups(std::int64_t few)
{
    Table<double> table = repeated<double>(15000, 4, few, 1.0);
    const Values apart = repeated<double>(500, 4, 1, 0.0).values;
    table.values.insert(table.values.end(), apart.begin(), apart.end());
    return table;
}
const std::vector<std::int64_t> sizes_of_groups = {5000, 30, 4170, 5800, 500};

TEST(Entries, ServeGroups)
{
    const Table<double> plain = rows_of_groups(150), with_weights = weighted(plain);
    for (const Table<double> *table : {&plain, &with_weights}) {
        const std::vector<PgkmGroup> groups = groups_of(*table, sizes_of_groups, 14);
        std::vector<PgkmRequest> requests(6, request_for(table->values, 4, 14));
        requests[1].kmeans.refine = 1;
        requests[2].kmeans.max_radius = 12.0;
        requests[3].kmeans.n_init = 3;
        requests[3].kmeans.init = PGKM_INIT_RANDOM;
        requests[4].kmeans.init = PGKM_INIT_KMEANS_PARALLEL;
        requests[4].kmeans.standardize = 1;
        requests[5].kmeans.init = PGKM_INIT_FIRST;
        for (PgkmRequest &request : requests) {
            SCOPED_TRACE(&request - requests.data());
            request.points.n = 0;
            request.points.weights = groups[0].weights;
            request.groups = groups.data();
            request.n_groups = std::ssize(groups);
            const std::vector<double> expected = numbers_of(request, reference_backend());
            EXPECT_TRUE(numbers_of(request, watched(false)) == expected);
            loads_with_entries = 0;
            EXPECT_TRUE(numbers_of(request, watched(true)) == expected);
            EXPECT_GT(loads_with_entries.load(), 0);
        }
    }
}

TEST(Entries, AreNotMadeOfSmallGroups)
{
    const Table<double> table = repeated<double>(16000, 4, 50, 1.0);
    for (const std::int64_t size : {200, 4000, 8000}) {
        const std::vector<PgkmGroup> groups =
            groups_of(table, std::vector<std::int64_t>(static_cast<std::size_t>(16000 / size), size), 3);
        PgkmRequest request = request_for(table.values, 4, 3);
        request.groups = groups.data();
        request.n_groups = std::ssize(groups);
        loads_with_entries = 0;
        EXPECT_TRUE(numbers_of(request, watched(true)) == numbers_of(request, reference_backend()));
        EXPECT_EQ(loads_with_entries.load() > 0, size == 8000) << size;
    }
}

TEST(Entries, NeedNoMoreMemoryOfGroups)
{
    const Table<double> table = rows_of_groups(1000); // which take about as much to find as to fit
    const std::vector<PgkmGroup> groups = groups_of(table, sizes_of_groups, 9);
    PgkmRequest request = request_for(table.values, 4, 9);
    request.groups = groups.data();
    request.n_groups = std::ssize(groups);
    const std::vector<double> expected = numbers_of(request, watched(false));
    bool was_enough = false, with = false, without = false;
    for (std::uint64_t limit = 50000; limit < 8000000; limit += limit / 16) {
        loads_with_entries = 0;
        PgkmStatus status[2] = {PGKM_OK, PGKM_OK};
        for (const bool by_entries : {false, true})
            try {
                EXPECT_TRUE(numbers_of(request, watched(by_entries), limit) == expected) << limit;
            } catch (const Error &error) {
                status[by_entries ? 1 : 0] = error.status();
            }
        was_enough = was_enough || status[0] == PGKM_OK || status[1] == PGKM_OK;
        EXPECT_EQ(status[1], was_enough ? PGKM_OK : PGKM_LIMIT) << limit;
        with = with || loads_with_entries > 0;
        without = without || (status[1] == PGKM_OK && loads_with_entries == 0);
    }
    EXPECT_TRUE(with) << "no entries under any limit";
    EXPECT_TRUE(without);
}

} // namespace
} // namespace pgkm
