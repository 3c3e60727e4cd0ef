// A fit whose rows lie on several servers has the bits of one server that holds them all.
#include "nodes_fixture.hpp"

#include "cpu/cpu_backend.hpp"
#include "engine/job/algorithm.hpp"

namespace {

using namespace in_process;

TEST(Nodes, HaveTheBitsOfOneServer)
{
    each_way_to_begin(expect_same);
}

TEST(Nodes, TakeOptions)
{
    each_option(expect_same);
}

TEST(Nodes, GoOnFromModels)
{
    each_model_of_another_k(expect_same);
}

TEST(Nodes, FillEmptyClusters)
{
    each_with_empty_clusters(expect_same);
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
            DeviceServer server({&device, -1, 0}, rows.points(2000, 3000));
            const PgkmNode node = server.node("device");
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
                request.kmeans.max_iter = iterations(40);
                request.kmeans.n_init = 2;
            },
            k);
}

// An answer: how many bytes; of each row its square, weight and label, of 8 bytes each; then their values.
TEST(Nodes, RefuseForgedFarRows)
{
    const auto rows =
        make_rows<double>(300, 2, true, [](auto &random) { return std::normal_distribution<double>()(random); });
    const auto put = [](std::vector<std::byte> &bytes, std::size_t at, auto value) {
        ASSERT_LE(at + sizeof value, bytes.size());
        std::memcpy(bytes.data() + at, &value, sizeof value);
    };
    const double nan = std::nan(""), infinity = HUGE_VAL;
    const auto square = [&](double value) { return [=](auto &bytes) { put(bytes, 8, value); }; };
    const auto weight = [&](double value) { return [=](auto &bytes) { put(bytes, 16, value); }; };
    const auto label = [&](std::int64_t value) { return [=](auto &bytes) { put(bytes, 24, value); }; };
    const auto value = [&](double value) { return [=](auto &bytes) { put(bytes, bytes.size() - 8, value); }; };
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
        const Said said = run(request);
        EXPECT_EQ(said.status, i == forgeries.size() ? PGKM_OK : PGKM_INVALID) << i;
        EXPECT_EQ(said.text.find("forger: "), i == forgeries.size() ? std::string::npos : 0) << said.text;
    }
}

using Forge = std::function<void(std::vector<std::byte> &)>;

template <typename Value>
void put(std::vector<std::byte> &bytes, std::size_t at, Value value)
{
    ASSERT_LE(at + sizeof value, bytes.size());
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

// A request that asks for the operation: what it comes to where the last server changes its answers.
Said run_with_forger(
    const RowSet &rows, pgkm::nodes::Operation operation, const Forge &forge,
    const Change &change = [](PgkmRequest &) {})
{
    using pgkm::nodes::Operation;
    Server good(rows, 100, 100), server(rows, 200, 100);
    server.forge = forge;
    server.forged_operation = static_cast<std::uint32_t>(operation);
    const PgkmNode nodes[] = {good.node("good"), server.node("forger")};
    PgkmRequest request = request_of(rows.points(0, 100), 20);
    request.kmeans.init = operation == Operation::seed_masses ? PGKM_INIT_KMEANS_PARALLEL : PGKM_INIT_KMEANS_PLUS_PLUS;
    request.kmeans.standardize = operation == Operation::moments ? 1 : 0;
    if (operation == Operation::cluster_sums)
        request.k_last = 21;
    request.nodes = nodes;
    request.n_nodes = 2;
    change(request);
    return run(request);
}

void expect_blamed(const Said &said, pgkm::nodes::Operation operation)
{
    EXPECT_EQ(said.status, PGKM_INVALID) << static_cast<int>(operation);
    EXPECT_EQ(said.text.find("forger: "), 0U) << static_cast<int>(operation) << ": " << said.text;
}

// Few rows differ, so that trials do as much as others.
RowSet forged_rows(pgkm::nodes::Operation operation)
{
    const bool few = operation == pgkm::nodes::Operation::seed_exact;
    return make_rows<double>(300, 2, !few,
                             [&](auto &random) { return few ? static_cast<double>(random() % 6) : normal(random); });
}

// Answers of another length, or that say so, to every operation of a fit: an error that names the server.
TEST(Nodes, RefuseForgedLengths)
{
    using pgkm::nodes::Operation;
    const auto set_first = [](std::int64_t value) {
        return [=](std::vector<std::byte> &bytes) { put(bytes, 0, value); };
    };
    const std::vector<Forge> forgeries = {[](std::vector<std::byte> &bytes) { bytes.pop_back(); },
                                          [](std::vector<std::byte> &bytes) { bytes.resize(bytes.size() + 1); },
                                          [](std::vector<std::byte> &bytes) { bytes.clear(); }, set_first(-1),
                                          set_first(1 << 20)};
    for (const Operation operation : {Operation::call, Operation::ranges, Operation::moments, Operation::cluster_sums,
                                      Operation::seed_masses, Operation::seed_weigh, Operation::seed_runs,
                                      Operation::seed_gains, Operation::seed_exact, Operation::seed_choose})
        for (std::size_t i = 0; i < forgeries.size(); ++i)
            if (i < 3 || operation != Operation::call) // which begins with another thing than a length
                expect_blamed(run_with_forger(forged_rows(operation), operation, forgeries[i]), operation);
    // How many rows each of the buckets has that were asked for.
    const auto many = [](std::vector<std::byte> &bytes) { put(bytes, 8, std::int64_t{1} << 20); };
    expect_blamed(run_with_forger(forged_rows(Operation::seed_runs), Operation::seed_runs, many), Operation::seed_runs);
}

// Integers that no rows come to, numbers that are none, masses of the wrong sign: an error that names the server.
TEST(Nodes, RefuseForgedSums)
{
    using pgkm::nodes::Operation;
    const auto at = [](std::size_t place, auto value) {
        return [=](std::vector<std::byte> &bytes) { put(bytes, place, value); };
    };
    const auto refused = [](
                             Operation operation, const Forge &forge, const Change &change = [](PgkmRequest &) {}) {
        expect_blamed(run_with_forger(forged_rows(operation), operation, forge, change), operation);
    };
    for (const std::int64_t upper : {INT64_MAX, INT64_MIN}) { // of the first integer, behind a length
        for (const Operation operation : {Operation::moments, Operation::seed_masses, Operation::seed_exact})
            refused(operation, at(16, upper));
        refused(Operation::call, at(17, upper));
    }
    for (const double number : {std::nan(""), HUGE_VAL}) {
        refused(Operation::seed_gains, at(8, number));
        refused(Operation::seed_gains, at(16, number));
        refused(Operation::cluster_sums, at(8, number));
        refused(Operation::call, at(9, number), [](PgkmRequest &request) {
            request.algorithm = PGKM_PCA;
            request.k = 0;
        });
        refused(Operation::call, at(9, number), [](PgkmRequest &request) {
            request.algorithm = PGKM_MIXTURE;
            request.k = 2;
            pgkm_mixture_options_default(&request.mixture);
        });
    }
    const auto first_difference = [](std::int64_t value) {
        return [=](std::vector<std::byte> &bytes) {
            std::uint64_t buckets = 0;
            std::memcpy(&buckets, bytes.data(), sizeof buckets);
            if (buckets > 0)
                put(bytes, 16 + 4 * buckets, value);
        };
    };
    refused(Operation::seed_weigh, first_difference(-1));
    refused(Operation::seed_choose, first_difference(1));
}

// Sums that may be, but lead to centroids that may not: the next server that is sent these is not blamed.
TEST(Nodes, DoNotBlameTheGoodServer)
{
    using pgkm::nodes::Operation;
    const auto rows = make_rows<double>(300, 2, false, [](auto &random) { return 0x1p490 * normal(random); });
    const Said said = run_with_forger(rows, Operation::call,
                                      [](std::vector<std::byte> &bytes) { put(bytes, 17, std::int64_t{1} << 60); });
    EXPECT_EQ(said.status, PGKM_INVALID);
    EXPECT_EQ(said.text.find("good: "), std::string::npos) << said.text;
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
        EXPECT_EQ(said.sqlstate, "57P01"); // with its text, whatever other jobs and threads were told
        EXPECT_EQ(good.cancels, 1);
    }
}

// Requests that a fit sends to a server, wherever one of them is not answered any more: a cancel ends the job, and all
// servers are told.
TEST(Nodes, HeedACancelInEachRequest)
{
    const auto rows = make_rows<double>(600, 2, true, normal);
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL})
        for (int calls = 0;; ++calls) {
            Server other(rows, 100, 200), hanging(rows, 300, 300);
            const PgkmNode nodes[] = {other.node("other"), hanging.node("hanging")};
            hanging.calls_left = calls;
            hanging.hangs = true;
            PgkmRequest request = request_of(rows.points(0, 100), 4);
            request.kmeans.init = init;
            request.kmeans.standardize = 1;
            request.kmeans.max_iter = 2;
            request.nodes = nodes;
            request.n_nodes = 2;
            PgkmJob *job = nullptr;
            PgkmError error = {};
            PgkmResult result = {};
            ASSERT_EQ(pgkm_job_start(&request, &job, &error), PGKM_OK);
            while (!hanging.is_hanging.load() && pgkm_job_wait(job, 1) == 0) {}
            const bool is_hanging = hanging.is_hanging.load();
            pgkm_job_stop(job);
            const PgkmStatus status = pgkm_job_result(job, 0, &result, &error);
            pgkm_job_free(job);
            ASSERT_EQ(status, is_hanging ? PGKM_CANCELLED : PGKM_OK) << calls;
            EXPECT_EQ(hanging.cancels + other.cancels, is_hanging ? 2 : 0) << calls;
            if (is_hanging)
                continue;
            EXPECT_GT(calls, 20);
            break;
        }
}

// A server that takes the request slowly, and a cancel meanwhile: the others are not asked any more.
TEST(Nodes, HeedACancelBetweenTheServers)
{
    const auto rows = make_rows<double>(600, 2, false, normal);
    Server slow(rows, 100, 200), other(rows, 300, 300);
    const PgkmNode nodes[] = {slow.node("slow"), other.node("other")};
    PgkmRequest request = request_of(rows.points(0, 100), 4);
    request.nodes = nodes;
    request.n_nodes = 2;
    pgkm::Monitor monitor;
    slow.on_call = [&] { monitor.cancel(); };
    PgkmError error = {};
    const auto fit = [&] { pgkm::run_request(pgkm::algorithm_of(request), request, monitor); };
    EXPECT_EQ(pgkm::guarded(&error, fit), PGKM_CANCELLED);
    EXPECT_EQ(slow.calls, 1);
    EXPECT_EQ(other.calls, 0);
}

// Rows here that cannot be clustered end the job, while a server is at work for long: it is told.
TEST(Nodes, EndWithAFailureHere)
{
    const auto rows = make_rows<double>(600, 2, false, normal);
    RowSet zeros = rows;
    std::fill(zeros.values.begin(), zeros.values.end(), std::byte{0});
    Server hanging(rows, 100, 500);
    const PgkmNode node = hanging.node("hanging");
    hanging.calls_left = 1; // the second request transforms the rows
    hanging.hangs = true;
    PgkmRequest request = request_of(zeros.points(0, 100), 4);
    request.kmeans.metric = PGKM_COSINE;
    request.nodes = &node;
    request.n_nodes = 1;
    const Said said = run(request);
    EXPECT_EQ(said.status, PGKM_INVALID) << said.text;
    EXPECT_EQ(said.text.find("row 1 is a zero vector"), 0U) << said.text;
    EXPECT_EQ(hanging.cancels, 1);
}

// What docs/scale-out.md says of round trips and bytes.
TEST(Nodes, MoveWhatTheDocumentSays)
{
    constexpr std::int64_t k = 16, d = 8, header = 128; // of a request, or an answer, at most
    const auto rows = make_rows<float>(4000, d, false, normal);
    std::vector<float> start(static_cast<std::size_t>(k * d));
    std::memcpy(start.data(), rows.values.data(), start.size() * sizeof(float));
    const std::vector<double> centroids(start.begin(), start.end());
    struct Moved {
        std::int64_t calls, there, back;
    };
    const auto moved = [&](const Change &change) {
        Server server(rows, 2000, 2000);
        const PgkmNode node = server.node("server");
        PgkmRequest request = request_of(rows.points(0, 2000), k);
        request.kmeans.tol = 0.0;
        change(request);
        request.nodes = &node;
        request.n_nodes = 1;
        EXPECT_EQ(run(request).status, PGKM_OK);
        return Moved{server.calls, server.bytes_there, server.bytes_back};
    };
    const auto given = [&](std::int32_t iterations) {
        return moved([&](PgkmRequest &request) {
            request.kmeans.init_centroids = {centroids.data(), 2, {k, d, 0}};
            request.kmeans.max_iter = iterations;
        });
    };
    const Moved one = given(1), two = given(2);
    EXPECT_EQ(one.calls, 3); // ranges, an iteration, sizes
    EXPECT_LE(one.there, 2 * (k * d * 4 + 12 * d) + 3 * header);
    EXPECT_LE(one.back, 16 * d + 16 * k * (d + 1) + 24 * k + 3 * header);
    EXPECT_EQ(two.calls - one.calls, 1);
    EXPECT_LE(two.there - one.there, k * d * 4 + 12 * d + header);
    EXPECT_LE(two.back - one.back, 16 * k * (d + 1) + header);
    const auto seeded = [&](PgkmInit init) {
        return moved([&](PgkmRequest &request) {
            request.kmeans.init = init;
            request.kmeans.max_iter = 1;
        });
    };
    EXPECT_LE(seeded(PGKM_INIT_RANDOM).calls - one.calls, 4);
    EXPECT_LE(seeded(PGKM_INIT_KMEANS_PLUS_PLUS).calls - one.calls, 4 + 5 * k);
    EXPECT_LE(seeded(PGKM_INIT_KMEANS_PARALLEL).calls - one.calls, 6 + 4 * 5);
}

} // namespace
