// A fit whose rows come chunk by chunk, pass after pass, has the bits of one that has them all.
#include "stream_source.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include "cpu/cpu_backend.hpp"
#include "engine/job/algorithm.hpp"
#include "engine/nodes/nodes.hpp"
#include "engine/nodes/stream.hpp"

namespace {

using namespace in_process;

void expect_same_in_chunks(const RowSet &rows, const Change &change, std::int64_t k)
{
    PgkmRequest request = request_of(rows.points(0, rows.n()), k);
    change(request);
    const Said one = run(request);
    EXPECT_EQ(one.status, PGKM_OK) << one.text;
    for (const std::vector<std::int64_t> &sizes :
         cuts<std::vector<std::int64_t>>({{1 << 20}, {rows.n() / 3 + 1}, {7, 1, rows.n() / 2, 333}})) {
        const Said chunks = run_in_chunks(rows, request, sizes);
        EXPECT_EQ(chunks.status, PGKM_OK) << chunks.text;
        EXPECT_EQ(chunks.numbers, one.numbers) << sizes[0] << " rows in the first chunk";
    }
}

TEST(Stream, HasTheBitsOfAllRowsInMemory)
{
    each_way_to_begin(expect_same_in_chunks);
}

TEST(Stream, TakesOptions)
{
    each_option(expect_same_in_chunks);
}

TEST(Stream, GoesOnFromModels)
{
    each_model_of_another_k(expect_same_in_chunks);
}

// Without labels it is not at once known whether they rest.
TEST(Stream, FillsEmptyClusters)
{
    each_with_empty_clusters(expect_same_in_chunks);
}

// Rows of few contents; of weights as well, where they have some.
template <typename T>
RowSet few_contents(std::int64_t n, std::int32_t d, bool weighted)
{
    RowSet rows = make_rows<T>(n, d, false, [](auto &random) {
        return T(std::vector<double>{-0.0, 0.0, 0.1, 3.0}[random() % 4]);
    });
    for (std::int64_t i = 0; weighted && i < n; ++i)
        rows.weights.push_back(0.3 + static_cast<double>(i * i % 3));
    return rows;
}

// The first pass gathers the rows that differ. The others are for statistics, whatever the fit needs.
TEST(Stream, GathersRowsThatRepeat)
{
    const RowSet tables[] = {few_contents<float>(20000, 4, false), few_contents<double>(20000, 3, true)};
    for (const RowSet &rows : tables)
        for (int option = 0; option < 7; ++option) {
            PgkmRequest request = request_of(rows.points(0, rows.n()), option == 3 ? 60 : 9);
            request.kmeans.init = std::vector<PgkmInit>{PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL,
                                                        PGKM_INIT_RANDOM}[static_cast<std::size_t>(option) % 3];
            request.kmeans.n_init = option == 0 ? 3 : 1;
            request.kmeans.standardize = option == 4 ? 1 : 0;
            request.kmeans.refine = option == 5 ? 1 : 0;
            std::vector<double> far(static_cast<std::size_t>(9 * rows.d), 1e6);
            if (option == 6)
                request.kmeans.init_centroids = {far.data(), 2, {9, rows.d}};
            const Said one = run(request);
            for (const std::vector<std::int64_t> &sizes :
                 cuts<std::vector<std::int64_t>>({{1 << 20}, {7000}, {7, 1, 5000, 333}})) {
                SCOPED_TRACE("option " + std::to_string(option) + ", " + std::to_string(sizes[0]));
                Source source(rows, sizes);
                PgkmRequest streamed = request;
                source.add_to(streamed);
                const Said chunks = run(streamed, [&] { source.feed(); });
                EXPECT_EQ(chunks.numbers, one.numbers) << chunks.text;
                EXPECT_LE(source.passes, 6);
            }
        }
}

// Memory that does not hold what was gathered is enough for passes.
TEST(Stream, GathersNoMoreThanMemoryHolds)
{
    int next = 0; // of 2000 rows
    const RowSet rows = make_rows<double>(20000, 24, false, [&](auto &) {
        const int row = next / 24 * 7919 % 2000, feature = next++ % 24;
        return std::sin(static_cast<double>(row * (feature + 1)));
    });
    PgkmRequest request = request_of(rows.points(0, rows.n()), 9);
    request.settings.cpu_threads = 1;
    const Said one = run(request);
    bool was_enough = false, by_passes = false, by_entries = false;
    for (std::uint64_t limit = 1000000; limit < 30000000; limit += limit / 8) {
        request.settings.memory_limit = limit;
        Source source(rows, {500});
        PgkmRequest streamed = request;
        source.add_to(streamed);
        const Said chunks = run(streamed, [&] { source.feed(); });
        was_enough = was_enough || chunks.status == PGKM_OK;
        EXPECT_EQ(chunks.status, was_enough ? PGKM_OK : PGKM_LIMIT) << limit << " " << chunks.text;
        if (chunks.status != PGKM_OK)
            continue;
        EXPECT_EQ(chunks.numbers, one.numbers) << limit;
        (source.passes <= 6 ? by_entries : by_passes) = true;
    }
    EXPECT_TRUE(by_passes);
    EXPECT_TRUE(by_entries);
}

// All figures of a mixture or of components.
std::vector<double> figures_of(PgkmRequest request, Source *source)
{
    if (source != nullptr)
        source->add_to(request);
    PgkmJob *job = nullptr;
    PgkmError error = {};
    PgkmResult result = {};
    EXPECT_EQ(pgkm_job_start(&request, &job, &error), PGKM_OK) << error.text;
    while (pgkm_job_wait(job, source == nullptr ? 1000 : 0) == 0)
        if (source != nullptr)
            source->feed();
    EXPECT_EQ(pgkm_job_result(job, 0, &result, &error), PGKM_OK) << error.text;
    std::vector<double> said;
    const auto add = [&](const double *values, std::int64_t count) { said.insert(said.end(), values, values + count); };
    const std::int64_t d = result.d;
    if (request.algorithm == PGKM_MIXTURE) {
        said = {result.log_likelihood, static_cast<double>(result.n_iter)};
        add(result.means, result.k * d);
        add(result.weights, result.k);
        add(result.covariances,
            pgkm_covariance_size(request.mixture.covariance_type, static_cast<int>(result.k), result.d));
    } else {
        add(result.mean, d);
        add(result.components, d * d);
        add(result.explained_variance, d);
    }
    pgkm_job_free(job);
    return said;
}

// apart: how far clusters lie from one another.
template <typename T>
void expect_same_sums(bool weighted, std::int64_t n, T apart = 0)
{
    auto rows = make_rows<T>(n, 4, weighted, normal);
    T *const values = reinterpret_cast<T *>(rows.values.data());
    for (std::int64_t i = 0; i < 4 * n; ++i)
        values[i] += static_cast<T>(i / 4 % 3) * apart;
    const auto expect_same = [&](const PgkmRequest &request) {
        const std::vector<double> one = figures_of(request, nullptr);
        for (const std::vector<std::int64_t> &sizes :
             cuts<std::vector<std::int64_t>>({{1 << 20}, {1234, 2000}, {7, 1, 384, n / 2, 333}})) {
            Source source(rows, sizes);
            EXPECT_EQ(figures_of(request, &source), one) << sizes[0] << " rows in the first chunk";
        }
    };
    PgkmRequest request = request_of(rows.points(0, rows.n()), 3);
    request.algorithm = PGKM_PCA;
    request.pca = {};
    expect_same(request);
    request.algorithm = PGKM_MIXTURE;
    for (const PgkmCovariance type :
         {PGKM_COVARIANCE_FULL, PGKM_COVARIANCE_TIED, PGKM_COVARIANCE_DIAG, PGKM_COVARIANCE_SPHERICAL})
        for (const std::int32_t standardize : {0, 1}) {
            SCOPED_TRACE(std::to_string(type) + (standardize != 0 ? " standardized" : ""));
            pgkm_mixture_options_default(&request.mixture);
            request.mixture.covariance_type = type;
            request.mixture.standardize = standardize;
            expect_same(request);
        }
}

TEST(Stream, SumsForMixturesAndComponents)
{
    expect_same_sums<double>(false, 5000);
    expect_same_sums<double>(true, 3001);
    expect_same_sums<float>(false, 383);
    expect_same_sums<float>(true, 30000);
    expect_same_sums<double>(true, 5000, 1e7);
}

// A job that waits for a chunk heeds a cancel.
TEST(Stream, StopsWhileItWaits)
{
    const auto rows = make_rows<double>(1000, 2, false, normal);
    Source source(rows, {100});
    PgkmRequest request = request_of(rows.points(0, 0), 3);
    source.add_to(request);
    PgkmJob *job = nullptr;
    PgkmError error = {};
    ASSERT_EQ(pgkm_job_start(&request, &job, &error), PGKM_OK);
    for (int i = 0; i < 5; ++i)
        source.feed();
    const auto begin = std::chrono::steady_clock::now();
    pgkm_job_stop(job);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
    PgkmResult result;
    EXPECT_EQ(pgkm_job_result(job, 0, &result, &error), PGKM_CANCELLED);
    pgkm_job_free(job);
}

// What an attempt on a device has left of a pass is passed over by the next one.
TEST(Stream, BeginsAtTheBeginning)
{
    PgkmStream stream(3, 1);
    const double rows[] = {1.0, 2.0};
    const PgkmPoints chunks[] = {{&rows[0], PGKM_FLOAT64, 1, 1, nullptr},
                                 {&rows[1], PGKM_FLOAT64, 1, 1, nullptr},
                                 {nullptr, PGKM_FLOAT64, 0, 1, nullptr}};
    std::thread giver([&] {
        for (const int i : {0, 1, 2, 0}) {
            while (pgkm_stream_wait(&stream, 1) == 0) {}
            pgkm_stream_give(&stream, &chunks[i]);
        }
    });
    PgkmPoints taken;
    stream.begin_pass({});
    EXPECT_TRUE(stream.take({}, taken));
    stream.begin_pass({});
    EXPECT_TRUE(stream.take({}, taken));
    EXPECT_EQ(taken.values, &rows[0]);
    giver.join();
}

// The first model of a request whose chunks a device serves. Here that is the CPU by another name.
template <typename Body>
void with_model_of_device(PgkmRequest request, Source &source, const pgkm::Algorithm &algorithm, Body &&body)
{
    static const PgkmBackend device = *pgkm::cpu_backend();
    source.add_to(request);
    pgkm::Monitor monitor;
    const PgkmOpen open = pgkm::open_options(request, 2, monitor.host());
    PgkmContext *const all = pgkm::nodes::open_nodes(request, {&device, -1, 0}, open);
    pgkm::Workplace place(pgkm::nodes::nodes_choice(), all, 2, [all] { return pgkm::nodes::cpu_of(all); });
    auto models = std::async(std::launch::async, [&] { return algorithm.fit(request, &place, monitor); });
    while (models.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
        source.feed();
    PgkmResult result = {};
    const auto fitted = models.get();
    fitted->get(0, &result);
    body(result);
}

// Integer sums of chunks add up to the same bits. Those in float64 are added chunk by chunk.
TEST(Stream, WorksWithADevice)
{
    for (const bool weighted : {false, true}) {
        const auto rows = make_rows<float>(4000, 4, weighted, normal);
        const std::vector<std::int64_t> sizes = {1111, 7, 900};
        for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM}) {
            PgkmRequest request = request_of(rows.points(0, rows.n()), 9);
            request.kmeans.init = init;
            const Said one = run(request);
            Source source(rows, sizes);
            with_model_of_device(request, source, pgkm::kmeans,
                                 [&](const PgkmResult &result) { EXPECT_EQ(numbers_of(result), one.numbers) << init; });
        }
        PgkmRequest request = request_of(rows.points(0, rows.n()), 3);
        request.algorithm = PGKM_MIXTURE;
        pgkm_mixture_options_default(&request.mixture);
        request.mixture.max_iter = 5;
        const std::vector<double> one = figures_of(request, nullptr);
        Source source(rows, sizes);
        with_model_of_device(request, source, pgkm::mixtures, [&](const PgkmResult &result) {
            EXPECT_NEAR(result.log_likelihood, one[0], 1e-10 * std::fabs(one[0]));
        });
    }
}

} // namespace
