// nodes_fixture.hpp - servers in this process, and fits of rows that are cut among them.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/api.h"
#include "engine/nodes/share.hpp"
#include "support/sanitized.hpp"

namespace in_process {

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

// A server in this process: what pgkm_node_call does, without SQL.
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
    std::function<void()> on_call;  // when it is asked
    std::int32_t threads = 0;       // that its jobs may have; 0: one for each processor
    std::uint64_t memory_limit = 0; // of its jobs; 0: none
    int calls_left = -1;            // before it dies; -1: it does not
    bool hangs = false;             // where it would die; it dies at last
    std::atomic<bool> is_hanging = false;
    int cancels = 0;
    std::int64_t calls = 0, bytes_there = 0, bytes_back = 0;
    std::vector<std::uint32_t> operations;               // that it was asked for, in order
    std::function<void(std::vector<std::byte> &)> forge; // changes its answers to this operation: the farthest rows
    std::uint32_t forged_operation = 4;
    std::uint64_t forge_mark = 0; // what such an answer begins with

    // Bytes that a job about this request would need.
    std::uint64_t estimate(const std::vector<std::byte> &request) const
    {
        PgkmRequest asked = {};
        asked.algorithm = PGKM_SHARE;
        asked.points = points_;
        asked.share = {request.data(), request.size(), share_};
        return pgkm_request_estimate(&asked);
    }

  private:
    static int call(void *arg, const void *request, std::size_t bytes, PgkmError *error)
    {
        auto *const self = static_cast<Server *>(arg);
        if (self->on_call)
            self->on_call();
        if (self->calls_left == 0 && self->hangs) {
            self->hung_at_ = std::chrono::steady_clock::now();
            self->is_hanging.store(true);
            return 0;
        }
        if (self->calls_left == 0) {
            std::snprintf(error->text, sizeof error->text, "it is dead");
            std::snprintf(error->sqlstate, sizeof error->sqlstate, "57P01");
            return -1;
        }
        --self->calls_left;
        ++self->calls;
        self->bytes_there += static_cast<std::int64_t>(bytes);
        const auto *begin = static_cast<const std::byte *>(request);
        self->request_.assign(begin, begin + bytes);
        std::memcpy(&self->operations.emplace_back(), begin + 4, sizeof(std::uint32_t));
        PgkmRequest asked = {};
        asked.algorithm = PGKM_SHARE;
        asked.points = self->points_;
        asked.resident = self->resident_;
        asked.settings.backend = PGKM_BACKEND_CPU;
        asked.settings.cpu_threads = self->threads;
        asked.settings.memory_limit = self->memory_limit;
        asked.share = {self->request_.data(), bytes, self->share_};
        pgkm_job_free(self->job_);
        self->job_ = nullptr;
        return pgkm_job_start(&asked, &self->job_, error) == PGKM_OK ? 0 : -1;
    }
    static int reply(void *arg, int milliseconds, const void **bytes, std::size_t *size, PgkmError *error)
    {
        auto *const self = static_cast<Server *>(arg);
        if (self->is_hanging.load()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
            return std::chrono::steady_clock::now() - self->hung_at_ < std::chrono::seconds(20) ? 0 : -1;
        }
        if (pgkm_job_wait(self->job_, milliseconds) == 0)
            return 0;
        PgkmResult result;
        if (pgkm_job_result(self->job_, 0, &result, error) != PGKM_OK)
            return -1;
        *bytes = result.reply;
        *size = result.reply_bytes;
        const std::uint32_t operation = self->operations.back();
        if (self->forge_mark != 0 && operation == self->forged_operation) {
            *bytes = &self->forge_mark;
            *size = sizeof self->forge_mark;
        } else if (self->forge && operation == self->forged_operation) {
            const auto *begin = static_cast<const std::byte *>(result.reply);
            const auto *body = begin + sizeof(std::uint64_t); // nothing is held
            std::vector<std::byte> forged(body, begin + result.reply_bytes);
            self->forge(forged);
            self->forged_.assign(begin, body);
            self->forged_.insert(self->forged_.end(), forged.begin(), forged.end());
            *bytes = self->forged_.data();
            *size = self->forged_.size();
        }
        self->bytes_back += static_cast<std::int64_t>(*size);
        return 1;
    }
    static void cancel(void *arg) { ++static_cast<Server *>(arg)->cancels; }

    PgkmPoints points_;
    PgkmResident *resident_;
    PgkmShare *share_;
    PgkmJob *job_ = nullptr;
    std::vector<std::byte> request_, forged_;
    std::chrono::steady_clock::time_point hung_at_;
};

// A server whose rows a backend serves, at work while others are.
class DeviceServer {
  public:
    DeviceServer(const pgkm::BackendChoice &device, const PgkmPoints &points, std::uint64_t memory_limit = 0)
        : points_(points), open_{sizeof(PgkmOpen), -1, 2, 0, memory_limit, 0, {}, {}, 0, {}, nullptr, 0},
          session_(device, open_), other_({&other_table_, -1, 0}, open_)
    {
    }
    // Around each request.
    std::function<void(pgkm::nodes::Operation, pgkm::Session &, pgkm::nodes::ShareState &)> before, after;
    // Which requests another backend serves: the CPU's functions, in another table.
    std::function<bool(pgkm::nodes::Operation)> by_other = [](pgkm::nodes::Operation) { return false; };
    PgkmNode node(const char *name)
    {
        return {name, points_.n, this, call, reply, [](void *) {}};
    }

  private:
    static int call(void *arg, const void *request, std::size_t bytes, PgkmError *)
    {
        auto *const self = static_cast<DeviceServer *>(arg);
        const auto *begin = static_cast<const std::byte *>(request);
        self->answer_ = std::async(std::launch::async, [self, asked = pgkm::nodes::Bytes(begin, begin + bytes)] {
            const pgkm::nodes::Operation operation = pgkm::nodes::Reader(asked).asked().operation;
            pgkm::Session &session = self->by_other(operation) ? self->other_ : self->session_;
            if (self->before)
                self->before(operation, session, self->state_);
            pgkm::nodes::serve_rows(session, self->points_, self->state_, self->open_, [&](auto &share) {
                pgkm::nodes::Reader reader(asked);
                self->reply_ = pgkm::nodes::Writer();
                self->reply_.put(std::uint64_t{0}); // nothing is held
                share.serve(reader, self->reply_);
            });
            if (self->after)
                self->after(operation, session, self->state_);
        });
        return 0;
    }
    static int reply(void *arg, int milliseconds, const void **bytes, std::size_t *size, PgkmError *error)
    {
        auto *const self = static_cast<DeviceServer *>(arg);
        if (self->answer_.wait_for(std::chrono::milliseconds(milliseconds)) != std::future_status::ready)
            return 0;
        if (pgkm::guarded(error, [&] { self->answer_.get(); }) != PGKM_OK)
            return -1;
        *bytes = self->reply_.bytes().data();
        *size = self->reply_.bytes().size();
        return 1;
    }

    PgkmPoints points_;
    PgkmOpen open_;
    pgkm::nodes::ShareState state_;
    pgkm::nodes::Writer reply_;
    pgkm::Session session_;
    const PgkmBackend other_table_ = *pgkm::cpu_backend();
    pgkm::Session other_;
    std::future<void> answer_; // the last: it waits for its thread
};

// What a fit has said, as bytes that can be compared.
struct Said {
    PgkmStatus status = PGKM_OK;
    std::string text;
    std::string sqlstate;
    std::vector<double> numbers;
    bool operator==(const Said &) const = default;
};

inline std::vector<double> numbers_of(const PgkmResult &result)
{
    std::vector<double> numbers = {static_cast<double>(result.k), static_cast<double>(result.n),
                                   static_cast<double>(result.n_iter), static_cast<double>(result.converged),
                                   result.inertia};
    const std::ptrdiff_t values = std::ptrdiff_t{result.k} * result.d;
    if (result.centroids == nullptr && result.means == nullptr) { // one of a sweep
        numbers.insert(numbers.end(), {result.quality.davies_bouldin, result.quality.calinski_harabasz,
                                       result.quality.simplified_silhouette, result.quality.bic});
        return numbers;
    }
    if (result.means != nullptr) { // a mixture
        numbers.push_back(result.log_likelihood);
        numbers.insert(numbers.end(), result.weights, result.weights + result.k);
        numbers.insert(numbers.end(), result.means, result.means + values);
        return numbers;
    }
    numbers.insert(numbers.end(), result.centroids, result.centroids + values);
    numbers.insert(numbers.end(), result.sizes, result.sizes + result.k);
    numbers.insert(numbers.end(), result.within_ss, result.within_ss + result.k);
    if (result.scale != nullptr) {
        numbers.insert(numbers.end(), result.center, result.center + result.d);
        numbers.insert(numbers.end(), result.scale, result.scale + result.d);
    }
    return numbers;
}

// meanwhile: done again and again while the job runs; it waits a little.
inline Said run(const PgkmRequest &request, const std::function<void()> &meanwhile = nullptr)
{
    PgkmJob *job = nullptr;
    PgkmError error = {};
    PgkmResult result = {};
    Said said;
    if (pgkm_job_start(&request, &job, &error) == PGKM_OK) {
        while (pgkm_job_wait(job, meanwhile ? 0 : 1000) == 0)
            if (meanwhile)
                meanwhile();
        pgkm_job_result(job, 0, &result, &error);
    }
    said.status = error.status;
    said.text = error.text;
    said.sqlstate = error.sqlstate;
    if (error.status == PGKM_OK)
        said.numbers = numbers_of(result);
    pgkm_job_free(job);
    return said;
}

inline PgkmRequest request_of(const PgkmPoints &points, std::int64_t k)
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
inline Said run_on_servers(const RowSet &rows, PgkmRequest request, const std::vector<double> &shares)
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

// Under the sanitizers a few iterations and cuts of the rows do. The plain run has compared the answers of all; what is
// left to find are accesses and arithmetic, which later iterations and other cuts have in common with these.
using pgkm::test::sanitized;

inline std::int32_t iterations(std::int32_t many)
{
    return sanitized ? 5 : many;
}

// Of these cuts, the roughest last.
template <typename Cut>
std::vector<Cut> cuts(std::vector<Cut> all)
{
    if (sanitized)
        all.erase(all.begin(), all.end() - 1);
    return all;
}

inline const std::vector<std::vector<double>> all_shares = cuts<std::vector<double>>(
    {{0.5, 0.5}, {0.0, 1.0}, {0.25, 0.25, 0.25, 0.25}, {0.0, 0.01, 0.9, 0.0, 0.09}, {0.1, 0.0, 0.9}});

using Change = std::function<void(PgkmRequest &)>;

inline void expect_same(const RowSet &rows, const Change &change, std::int64_t k)
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

// Fits that are the same however their rows are cut: each goes to same(rows, change of the request, k).
using Same = std::function<void(const RowSet &, const Change &, std::int64_t)>;

inline double normal(std::mt19937_64 &random)
{
    return std::normal_distribution<double>()(random);
}

inline void each_way_to_begin(const Same &same)
{
    const auto few = [](auto &random) { return static_cast<double>(random() % 4); };
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM})
        for (const bool weighted : {false, true}) {
            const auto change = [&](PgkmRequest &request) {
                request.kmeans.init = init;
                request.kmeans.n_init = 2;
                request.kmeans.max_iter = iterations(20);
            };
            same(make_rows<double>(3000, 3, weighted, normal), change, 17);
            same(make_rows<float>(20000, 8, weighted, normal), change, 60);
            same(make_rows<double>(500, 3, weighted, few), change, 70); // equal rows, fewer than k of them
            same(make_rows<float>(40, 2, weighted, normal), change, 40);
        }
}

inline void each_option(const Same &same)
{
    const auto rows = make_rows<float>(4000, 5, false, [](auto &random) { return 3.0 + 2.0 * normal(random); });
    const auto weighted = make_rows<double>(4000, 5, true, normal);
    for (const RowSet *set : {&rows, &weighted}) {
        for (const PgkmMetric metric : {PGKM_L2, PGKM_COSINE})
            for (const bool standardize : {false, true})
                same(
                    *set,
                    [&](PgkmRequest &request) {
                        request.kmeans.metric = metric;
                        request.kmeans.standardize = standardize ? 1 : 0;
                        request.kmeans.init = PGKM_INIT_KMEANS_PARALLEL;
                        request.kmeans.tol = standardize ? 0.0 : 1e-4;
                    },
                    9);
        same(
            *set,
            [](PgkmRequest &request) {
                request.kmeans.refine = 1;
                request.kmeans.init = PGKM_INIT_RANDOM;
            },
            9);
    }
}

// From a model of fewer clusters, and of more.
inline void each_model_of_another_k(const Same &same)
{
    std::mt19937_64 random(3);
    std::vector<double> centroids(9 * 3);
    for (double &value : centroids)
        value = normal(random);
    for (const bool weighted : {false, true})
        for (const std::int32_t k : {4, 9, 30})
            same(
                make_rows<float>(5000, 3, weighted, normal),
                [&](PgkmRequest &request) {
                    request.kmeans.init_model = {.centroids = {centroids.data(), 2, {9, 3}},
                                                 .center = {},
                                                 .scale = {},
                                                 .metric = PGKM_L2,
                                                 .weights = {},
                                                 .covariances = {},
                                                 .covariance_type = {}};
                    request.kmeans.max_iter = iterations(20);
                },
                k);
}

// Heavy tails empty clusters; given centroids far away do at once. Empty ones take the farthest rows, be they equal,
// and stay empty where rows are the same to the precision of a centroid.
inline void each_with_empty_clusters(const Same &same)
{
    int next = 0;
    const auto near = [&](auto &) {
        return std::vector<double>{1e15, 1e15 + 1e-3, 2e15, 3e15, 3e15 + 0.5}[next++ % 5];
    };
    const auto heavy = [](auto &random) { return std::exp(2.0 * normal(random)); };
    const RowSet sets[] = {make_rows<double>(1000, 2, false, normal), make_rows<double>(1500, 2, true, heavy),
                           make_rows<double>(300, 1, false, near),
                           make_rows<double>(300, 1, false, [&](auto &) { return static_cast<double>(next++ % 6); })};
    for (const RowSet &rows : sets)
        for (const double tol : {0.0, 1e-4}) {
            const std::int32_t k = rows.n() > 1000 ? 30 : 9;
            std::vector<double> far(static_cast<std::size_t>(k * rows.d), 1e16);
            far[0] = 0.0;
            same(
                rows,
                [&](PgkmRequest &request) {
                    request.kmeans.tol = tol;
                    request.kmeans.init_centroids = {far.data(), 2, {k, rows.d}};
                },
                k);
        }
}

} // namespace in_process
