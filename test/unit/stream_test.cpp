// A fit whose rows come chunk by chunk, pass after pass, has the bits of one that has them all.
#include "nodes_fixture.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "engine/nodes/stream.hpp"

namespace {

using namespace in_process;

// Gives the rows in chunks of these sizes, over and over. A chunk is overwritten when its time is over.
class Source {
  public:
    Source(const RowSet &rows, std::vector<std::int64_t> sizes)
        : rows_(rows), sizes_(std::move(sizes)),
          stream_(pgkm_stream_create(rows.n(), *std::max_element(sizes_.begin(), sizes_.end())))
    {
    }
    ~Source() { pgkm_stream_free(stream_); }
    Source(const Source &) = delete;
    Source &operator=(const Source &) = delete;

    void add_to(PgkmRequest &request) const
    {
        static const double none = 0.0;
        request.points = {&none, rows_.element, 0, rows_.d, rows_.weights.empty() ? nullptr : &none};
        request.stream = stream_;
    }

    void feed()
    {
        if (pgkm_stream_wait(stream_, 1) == 0)
            return;
        const std::int64_t size = std::min(sizes_[next_++ % sizes_.size()], rows_.n() - begin_);
        const PgkmPoints from = rows_.points(begin_, size);
        RowSet &chunk = chunks_[next_ % 2];
        std::fill(chunk.values.begin(), chunk.values.end(), std::byte{0xff});
        const auto *values = static_cast<const std::byte *>(from.values);
        chunk = {from.element, from.d, {values, values + static_cast<std::size_t>(size) * rows_.row_bytes()}, {}};
        if (from.weights != nullptr)
            chunk.weights.assign(from.weights, from.weights + size);
        const PgkmPoints points = chunk.points(0, size);
        pgkm_stream_give(stream_, &points);
        passes += size == 0 ? 1 : 0;
        begin_ = size == 0 ? 0 : begin_ + size;
    }
    int passes = 0;

  private:
    const RowSet &rows_;
    const std::vector<std::int64_t> sizes_;
    PgkmStream *const stream_;
    std::size_t next_ = 0;
    std::int64_t begin_ = 0;
    RowSet chunks_[2];
};

Said run_in_chunks(const RowSet &rows, PgkmRequest request, const std::vector<std::int64_t> &sizes)
{
    Source source(rows, sizes);
    source.add_to(request);
    return run(request, [&] { source.feed(); });
}

void expect_same_in_chunks(const RowSet &rows, const Change &change, std::int64_t k)
{
    PgkmRequest request = request_of(rows.points(0, rows.n()), k);
    change(request);
    const Said one = run(request);
    EXPECT_EQ(one.status, PGKM_OK) << one.text;
    for (const std::vector<std::int64_t> &sizes :
         std::vector<std::vector<std::int64_t>>{{1 << 20}, {rows.n() / 3 + 1}, {7, 1, rows.n() / 2, 333}}) {
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

// Without labels it is not at once known whether they rest.
TEST(Stream, FillsEmptyClusters)
{
    each_with_empty_clusters(expect_same_in_chunks);
}

// Masses are summed in float64 chunk by chunk.
TEST(Stream, SumsForMixturesAndComponents)
{
    const auto rows = make_rows<double>(5000, 4, false, normal);
    for (const PgkmAlgorithm algorithm : {PGKM_PCA, PGKM_MIXTURE})
        for (const PgkmCovariance type : {PGKM_COVARIANCE_FULL, PGKM_COVARIANCE_TIED, PGKM_COVARIANCE_DIAG}) {
            const auto figures = [&](PgkmRequest request, Source *source) {
                std::vector<double> said;
                request.algorithm = algorithm;
                if (algorithm == PGKM_MIXTURE) {
                    pgkm_mixture_options_default(&request.mixture);
                    request.mixture.covariance_type = type;
                } else {
                    request.pca = {};
                }
                PgkmJob *job = nullptr;
                PgkmError error = {};
                PgkmResult result = {};
                EXPECT_EQ(pgkm_job_start(&request, &job, &error), PGKM_OK) << error.text;
                while (pgkm_job_wait(job, source == nullptr ? 1000 : 0) == 0)
                    if (source != nullptr)
                        source->feed();
                EXPECT_EQ(pgkm_job_result(job, 0, &result, &error), PGKM_OK) << error.text;
                if (algorithm == PGKM_MIXTURE) {
                    said = {result.log_likelihood, static_cast<double>(result.n_iter)};
                    said.insert(said.end(), result.means, result.means + 12);
                } else {
                    said.insert(said.end(), result.components, result.components + 16);
                }
                pgkm_job_free(job);
                return said;
            };
            PgkmRequest request = request_of(rows.points(0, rows.n()), 3);
            const std::vector<double> one = figures(request, nullptr);
            Source source(rows, {1234, 2000});
            source.add_to(request);
            const std::vector<double> chunks = figures(request, &source);
            ASSERT_EQ(chunks.size(), one.size());
            for (std::size_t i = 0; i < one.size(); ++i)
                EXPECT_NEAR(chunks[i], one[i], 1e-9 * std::max(1.0, std::fabs(one[i])));
        }
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

} // namespace
