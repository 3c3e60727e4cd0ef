// A fit whose rows lie on several servers has the bits of one server that holds them all.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cpu/cpu_backend.hpp"
#include "engine/api.h"
#include "engine/nodes/share.hpp"

namespace {

// Rows of one element type, as their bytes.
struct RowSet {
    PgkmElement element;
    std::int32_t d;
    std::vector<std::byte> values;
    std::vector<double> weights; // or empty

    std::size_t row_bytes() const { return static_cast<std::size_t>(d) * (element == PGKM_FLOAT32 ? 4 : 8); }
    std::int64_t n() const { return static_cast<std::int64_t>(values.size() / row_bytes()); }
    PgkmPoints points(std::int64_t first, std::int64_t count) const
    {
        return {values.data() + static_cast<std::size_t>(first) * row_bytes(), element, count, d,
                weights.empty() ? nullptr : weights.data() + first};
    }
};

// A server in this process: what kmeans_node_call does, without SQL.
class Server {
  public:
    Server(const RowSet &rows, std::int64_t first, std::int64_t count)
        : points_(rows.points(first, count)), resident_(pgkm_resident_create()), share_(pgkm_share_create())
    {
    }
    ~Server()
    {
        pgkm_job_free(job_);
        pgkm_share_free(share_);
        pgkm_resident_free(resident_);
    }
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;

    PgkmNode node(const char *name) { return {name, points_.n, this, call, reply, cancel}; }
    int calls_left = -1; // before it dies; -1: it does not
    int cancels = 0;
    std::function<void(std::vector<std::byte> &)> forge; // changes its answer about the farthest rows

  private:
    static int call(void *arg, const void *request, std::size_t bytes, PgkmError *error)
    {
        auto *const self = static_cast<Server *>(arg);
        if (self->calls_left == 0) {
            std::snprintf(error->text, sizeof error->text, "it is dead");
            return -1;
        }
        --self->calls_left;
        const auto *begin = static_cast<const std::byte *>(request);
        self->request_.assign(begin, begin + bytes);
        PgkmRequest asked = {};
        asked.algorithm = PGKM_SHARE;
        asked.points = self->points_;
        asked.resident = self->resident_;
        asked.settings.backend = PGKM_BACKEND_CPU;
        asked.share = {self->request_.data(), bytes, self->share_};
        pgkm_job_free(self->job_);
        self->job_ = nullptr;
        return pgkm_job_start(&asked, &self->job_, error) == PGKM_OK ? 0 : -1;
    }
    static int reply(void *arg, int milliseconds, const void **bytes, std::size_t *size, PgkmError *error)
    {
        auto *const self = static_cast<Server *>(arg);
        if (pgkm_job_wait(self->job_, milliseconds) == 0)
            return 0;
        PgkmResult result;
        if (pgkm_job_result(self->job_, 0, &result, error) != PGKM_OK)
            return -1;
        *bytes = result.reply;
        *size = result.reply_bytes;
        std::uint32_t operation = 0;
        std::memcpy(&operation, self->request_.data() + 4, sizeof operation);
        if (self->forge && operation == 4) {
            const auto *begin = static_cast<const std::byte *>(result.reply);
            self->forged_.assign(begin, begin + result.reply_bytes);
            self->forge(self->forged_);
            *bytes = self->forged_.data();
        }
        return 1;
    }
    static void cancel(void *arg) { ++static_cast<Server *>(arg)->cancels; }

    PgkmPoints points_;
    PgkmResident *resident_;
    PgkmShare *share_;
    PgkmJob *job_ = nullptr;
    std::vector<std::byte> request_, forged_;
};

// A server whose rows a device serves.
class DeviceServer {
  public:
    DeviceServer(const PgkmBackend &device, const PgkmPoints &points)
        : points_(points), open_{sizeof(PgkmOpen), -1, 2, 0, 0, {}, {}, 0, {}}, session_({&device, -1, 0}, open_)
    {
    }
    PgkmNode node()
    {
        return {"device", points_.n, this, call, reply, [](void *) {}};
    }

  private:
    static int call(void *arg, const void *request, std::size_t bytes, PgkmError *error)
    {
        auto *const self = static_cast<DeviceServer *>(arg);
        return pgkm::guarded(error,
                             [&] {
                                 pgkm::nodes::Reader reader(request, bytes);
                                 self->reply_ = pgkm::nodes::Writer();
                                 pgkm::nodes::Share(self->session_, self->points_, self->state_, self->open_)
                                     .serve(reader, self->reply_);
                             }) == PGKM_OK
                   ? 0
                   : -1;
    }
    static int reply(void *arg, int, const void **bytes, std::size_t *size, PgkmError *)
    {
        const pgkm::nodes::Bytes &said = static_cast<DeviceServer *>(arg)->reply_.bytes();
        *bytes = said.data();
        *size = said.size();
        return 1;
    }

    PgkmPoints points_;
    PgkmOpen open_;
    pgkm::nodes::ShareState state_;
    pgkm::nodes::Writer reply_;
    pgkm::Session session_;
};

// What a fit has said, as bytes that can be compared.
struct Said {
    PgkmStatus status = PGKM_OK;
    std::string text;
    std::vector<double> numbers;
    bool operator==(const Said &) const = default;
};

Said run(const PgkmRequest &request)
{
    PgkmJob *job = nullptr;
    PgkmError error = {};
    PgkmResult result = {};
    Said said;
    if (pgkm_job_start(&request, &job, &error) == PGKM_OK) {
        while (pgkm_job_wait(job, 1000) == 0) {}
        pgkm_job_result(job, 0, &result, &error);
    }
    said.status = error.status;
    said.text = error.text;
    if (error.status == PGKM_OK) {
        said.numbers = {static_cast<double>(result.k), static_cast<double>(result.n),
                        static_cast<double>(result.n_iter), static_cast<double>(result.converged), result.inertia};
        const std::ptrdiff_t values = std::ptrdiff_t{result.k} * result.d;
        said.numbers.insert(said.numbers.end(), result.centroids, result.centroids + values);
        said.numbers.insert(said.numbers.end(), result.sizes, result.sizes + result.k);
        said.numbers.insert(said.numbers.end(), result.within_ss, result.within_ss + result.k);
        if (result.scale != nullptr) {
            said.numbers.insert(said.numbers.end(), result.center, result.center + result.d);
            said.numbers.insert(said.numbers.end(), result.scale, result.scale + result.d);
        }
    }
    pgkm_job_free(job);
    return said;
}

PgkmRequest request_of(const PgkmPoints &points, std::int64_t k)
{
    PgkmRequest request = {};
    request.points = points;
    request.k = k;
    pgkm_options_default(&request.kmeans);
    request.settings.backend = PGKM_BACKEND_CPU;
    request.settings.cpu_threads = 2;
    return request;
}

// The rows cut at these shares, the first of which stays here.
Said run_on_servers(const RowSet &rows, PgkmRequest request, const std::vector<double> &shares)
{
    std::vector<std::unique_ptr<Server>> servers;
    std::vector<PgkmNode> nodes;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
        const auto end = i + 1 == shares.size()
                             ? rows.n()
                             : begin + static_cast<std::int64_t>(shares[i] * static_cast<double>(rows.n()));
        if (i == 0) {
            request.points = rows.points(begin, end - begin);
        } else {
            servers.push_back(std::make_unique<Server>(rows, begin, end - begin));
            nodes.push_back(servers.back()->node("node"));
        }
        begin = end;
    }
    request.nodes = nodes.data();
    request.n_nodes = static_cast<std::int64_t>(nodes.size());
    return run(request);
}

template <typename T>
RowSet make_rows(std::int64_t n, std::int32_t d, bool weighted, const std::function<T(std::mt19937_64 &)> &value)
{
    std::mt19937_64 random(static_cast<std::uint64_t>(n * 31 + d));
    RowSet rows = {sizeof(T) == 4 ? PGKM_FLOAT32 : PGKM_FLOAT64, d, {}, {}};
    rows.values.resize(static_cast<std::size_t>(n * d) * sizeof(T));
    for (std::int64_t i = 0; i < n * d; ++i) {
        const T one = value(random);
        std::memcpy(rows.values.data() + static_cast<std::size_t>(i) * sizeof(T), &one, sizeof one);
    }
    for (std::int64_t i = 0; weighted && i < n; ++i)
        rows.weights.push_back(std::exp(std::normal_distribution<double>(0.0, 3.0)(random)));
    return rows;
}

const std::vector<std::vector<double>> all_shares = {
    {0.5, 0.5}, {0.0, 1.0}, {0.1, 0.0, 0.9}, {0.25, 0.25, 0.25, 0.25}, {0.0, 0.01, 0.9, 0.0, 0.09}};

void expect_same(const RowSet &rows, const std::function<void(PgkmRequest &)> &change, std::int64_t k)
{
    PgkmRequest request = request_of(rows.points(0, rows.n()), k);
    change(request);
    const Said one = run(request);
    for (const std::vector<double> &shares : all_shares) {
        const Said several = run_on_servers(rows, request, shares);
        EXPECT_EQ(several.status, one.status) << several.text;
        EXPECT_EQ(several.numbers, one.numbers) << shares.size() << " servers";
    }
}

TEST(Nodes, HaveTheBitsOfOneServer)
{
    const auto normal = [](auto &random) { return std::normal_distribution<double>()(random); };
    const auto few = [](auto &random) { return static_cast<double>(random() % 4); };
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM})
        for (const bool weighted : {false, true}) {
            const auto change = [&](PgkmRequest &request) {
                request.kmeans.init = init;
                request.kmeans.n_init = 2;
                request.kmeans.max_iter = 20;
            };
            expect_same(make_rows<double>(3000, 3, weighted, normal), change, 17);
            expect_same(make_rows<float>(20000, 8, weighted, normal), change, 60);
            expect_same(make_rows<double>(500, 3, weighted, few), change, 70); // equal rows, fewer than k of them
            expect_same(make_rows<float>(40, 2, weighted, normal), change, 40);
        }
}

// More equal rows than a 64-bit sum of masses holds: on one server, or on two.
TEST(Nodes, DrawAmongManyEqualRows)
{
    int next = 0;
    const auto rows = make_rows<float>(1 << 20, 1, false, [&](auto &) { return static_cast<float>(next++ % 2); });
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL}) {
        PgkmRequest request = request_of(rows.points(0, rows.n()), 3);
        request.kmeans.init = init;
        const Said one = run(request);
        EXPECT_EQ(one.status, PGKM_OK) << one.text;
        EXPECT_EQ(run_on_servers(rows, request, {0.0, 1.0}).numbers, one.numbers);
        EXPECT_EQ(run_on_servers(rows, request, {0.4, 0.6}).numbers, one.numbers);
    }
}

// Of wide rows no whole buckets travel, but keys first.
TEST(Nodes, DrawAmongWideRows)
{
    const auto rows =
        make_rows<double>(2000, 400, true, [](auto &random) { return std::normal_distribution<double>()(random); });
    PgkmRequest request = request_of(rows.points(0, rows.n()), 100);
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL}) {
        request.kmeans.init = init;
        request.kmeans.max_iter = 2;
        EXPECT_EQ(run_on_servers(rows, request, {0.3, 0.1, 0.6}).numbers, run(request).numbers);
    }
}

// A node that has a device asks it for distances. Here that is the CPU by another name.
TEST(Nodes, WorkWithADevice)
{
    const PgkmBackend device = *pgkm::cpu_backend();
    for (const bool weighted : {false, true}) {
        const auto rows =
            make_rows<float>(5000, 4, weighted, [](auto &random) { return std::normal_distribution<float>()(random); });
        for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM}) {
            PgkmRequest request = request_of(rows.points(0, rows.n()), 25);
            request.kmeans.init = init;
            request.kmeans.n_init = 2;
            const Said one = run(request);
            DeviceServer server(device, rows.points(2000, 3000));
            const PgkmNode node = server.node();
            request.points = rows.points(0, 2000);
            request.nodes = &node;
            request.n_nodes = 1;
            const Said several = run(request);
            EXPECT_EQ(several.numbers, one.numbers) << several.text;
        }
    }
}

// Later iterations go on from the one before: in bounds, labels and sums.
TEST(Nodes, GoOnFromTheIterationBefore)
{
    const auto rows =
        make_rows<float>(30000, 6, false, [](auto &random) { return std::normal_distribution<float>()(random); });
    for (const std::int64_t k : {40, 300})
        expect_same(
            rows,
            [&](PgkmRequest &request) {
                request.kmeans.init = PGKM_INIT_RANDOM;
                request.kmeans.tol = 0.0;
                request.kmeans.max_iter = 40;
                request.kmeans.n_init = 2;
            },
            k);
}

TEST(Nodes, TransformTheirRows)
{
    const auto rows = make_rows<float>(
        2000, 5, false, [](auto &random) { return std::normal_distribution<float>(3.0F, 2.0F)(random); });
    for (const PgkmMetric metric : {PGKM_L2, PGKM_COSINE})
        for (const int standardize : {0, 1})
            expect_same(
                rows,
                [&](PgkmRequest &request) {
                    request.kmeans.metric = metric;
                    request.kmeans.standardize = standardize;
                },
                9);
}

// Heavy tails empty clusters; given centroids far away do at once.
TEST(Nodes, FillEmptyClusters)
{
    const auto rows = make_rows<double>(
        1500, 2, true, [](auto &random) { return std::exp(std::normal_distribution<double>(0, 2)(random)); });
    std::vector<double> start(2 * 30, -1e6);
    start[0] = start[1] = 1.0;
    expect_same(
        rows,
        [&](PgkmRequest &request) {
            request.kmeans.init_centroids = {start.data(), 2, {30, 2, 0}};
            request.kmeans.tol = 0.0;
        },
        30);
}

// An answer: a number of rows, their squares; the number, their labels; the number, their weights; then their values.
TEST(Nodes, RefuseForgedFarRows)
{
    const auto rows =
        make_rows<double>(300, 2, true, [](auto &random) { return std::normal_distribution<double>()(random); });
    const auto put = [](std::vector<std::byte> &bytes, std::size_t at, auto value) {
        ASSERT_LE(at + sizeof value, bytes.size());
        std::memcpy(bytes.data() + at, &value, sizeof value);
    };
    const auto count = [](const std::vector<std::byte> &bytes) {
        std::uint64_t n = 0;
        std::memcpy(&n, bytes.data(), sizeof n);
        return static_cast<std::size_t>(n);
    };
    const double nan = std::nan(""), infinity = HUGE_VAL;
    const auto square = [&](double value) { return [=](auto &bytes) { put(bytes, 8, value); }; };
    const auto label = [&](std::int32_t value) {
        return [=](auto &bytes) { put(bytes, 16 + 8 * count(bytes), value); };
    };
    const auto weight = [&](double value) { return [=](auto &bytes) { put(bytes, 24 + 12 * count(bytes), value); }; };
    const auto value = [&](double value) { return [=](auto &bytes) { put(bytes, 32 + 20 * count(bytes), value); }; };
    const std::vector<std::function<void(std::vector<std::byte> &)>> forgeries = {
        square(0.0), square(nan), square(infinity), label(-1),  label(30),      label(INT32_MAX),
        weight(-1),  weight(nan), weight(infinity), value(nan), value(infinity)};
    std::vector<double> start(2 * 30, -1e6);
    start[0] = start[1] = 1.0;
    for (std::size_t i = 0; i <= forgeries.size(); ++i) {
        Server server(rows, 100, 200);
        server.forge = i == forgeries.size() ? [](std::vector<std::byte> &) {} : forgeries[i];
        const PgkmNode node = server.node("forger");
        PgkmRequest request = request_of(rows.points(0, 100), 30);
        request.kmeans.init_centroids = {start.data(), 2, {30, 2, 0}};
        request.nodes = &node;
        request.n_nodes = 1;
        EXPECT_EQ(run(request).status, i == forgeries.size() ? PGKM_OK : PGKM_INVALID) << i;
    }
}

TEST(Nodes, NameTheOneThatFails)
{
    const auto rows =
        make_rows<double>(600, 2, false, [](auto &random) { return std::normal_distribution<double>()(random); });
    for (int calls = 0; calls < 60; calls += 7) {
        Server good(rows, 100, 200), bad(rows, 300, 300);
        const std::vector<PgkmNode> nodes = {good.node("good"), bad.node("bad")};
        bad.calls_left = calls;
        PgkmRequest request = request_of(rows.points(0, 100), 20);
        request.nodes = nodes.data();
        request.n_nodes = 2;
        const Said said = run(request);
        EXPECT_EQ(said.status, PGKM_NODE_FAILED);
        EXPECT_EQ(said.text, "bad: it is dead");
        EXPECT_EQ(good.cancels, 1);
    }
}

} // namespace
