// What calls between servers hold counts against the limit: at a server, and where you call, however many servers there
// are.
#include <algorithm>
#include <set>

#include "cpu/context.hpp"
#include "engine/nodes/fields.hpp"
#include "engine/nodes/node_set.hpp"
#include "nodes_fixture.hpp"

namespace in_process {
namespace {

constexpr std::int32_t d = 80, k = 8;
constexpr std::uint64_t answer_bytes = k * (d * (d + 1) / 2 + d + 1) * sizeof(double); // of an E step
constexpr std::uint64_t limit_of_parts = 8 << 20; // a sixteenth of it is less than an answer of each of three servers
constexpr std::uint64_t request_bytes = k * (d * d + d + 2) * sizeof(double);

PgkmRequest mixture_request(const PgkmPoints &points)
{
    PgkmRequest request = request_of(points, k);
    request.algorithm = PGKM_MIXTURE;
    pgkm_mixture_options_default(&request.mixture);
    request.mixture.max_iter = 2;
    return request;
}

const RowSet rows = make_rows<float>(900, d, false, normal);

struct Servers {
    explicit Servers(std::int64_t count)
    {
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t first = rows.n() * i / count;
            each.push_back(std::make_unique<Server>(rows, first, rows.n() * (i + 1) / count - first));
            nodes.push_back(each.back()->node("far"));
        }
    }
    void lend_to(PgkmRequest &request) const
    {
        request.nodes = nodes.data();
        request.n_nodes = std::ssize(nodes);
    }

    std::vector<std::unique_ptr<Server>> each;
    std::vector<PgkmNode> nodes;
};

Said fit_mixture(const Servers &servers, std::uint64_t limit)
{
    PgkmRequest request = mixture_request(rows.points(0, 0));
    servers.lend_to(request);
    request.settings.memory_limit = limit;
    return run(request);
}

// A mixture, as it is asked about.
struct Mixture {
    Mixture()
    {
        mixture.k = k;
        mixture.covariance_type = PGKM_COVARIANCE_FULL;
        mixture.means = means.data();
        mixture.factors = factors.data();
        mixture.log_weights = log_weights.data();
        mixture.log_determinants = log_determinants.data();
        for (std::size_t j = 0; j < k; ++j)
            for (std::size_t f = 0; f < d; ++f)
                factors[(j * d + f) * d + f] = 1.0;
        sums = {0.0, masses.data(), first.data(), second.data(), nullptr};
        call.function = pgkm::Function::em_step;
        call.n_problems = 1;
        call.problems = &problem;
        call.mixtures = &mixture;
        call.sums = &sums;
    }
    std::vector<double> means = std::vector<double>(k * d), factors = std::vector<double>(k * d * d),
                        log_weights = std::vector<double>(k, -2.0), log_determinants = std::vector<double>(k);
    std::vector<double> masses = std::vector<double>(k), first = std::vector<double>(k * d),
                        second = std::vector<double>(k * d * (d + 1) / 2);
    PgkmProblem problem = {};
    PgkmMixture mixture = {};
    PgkmMixtureSums sums = {};
    pgkm::Call call = {};
};

// What an E step over so many servers took of the limit at most, as the budget counts it; and what it has found.
std::uint64_t most_taken(std::int64_t count, std::uint64_t limit, std::vector<double> &found)
{
    const Servers servers(count);
    PgkmRequest request = request_of(rows.points(0, 0), k);
    servers.lend_to(request);
    PgkmOpen open = {};
    open.threads = 1;
    open.memory_limit = limit;
    pgkm::nodes::NodeSet nodes(request, pgkm::cpu_choice(), open);
    nodes.load(request.points);
    const std::shared_ptr<PgkmContext> cpu = nodes.cpu();
    const pgkm::cpu::Budget &budget = pgkm::cpu::self(cpu.get())->budget;
    std::uint64_t left = limit;
    for (const auto &server : servers.each)
        server->on_call = [&] {
            while (!budget.allows(left))
                left -= 1024;
        };
    Mixture asked;
    asked.problem.n_rows = rows.n();
    nodes.call(asked.call, pgkm::nodes::Iteration::none);
    found = asked.second;
    return limit - left;
}

TEST(NodesMemory, IsThatOfOneAnswerHoweverManyServersThereAre)
{
    constexpr std::uint64_t limit = 4 << 20;
    std::vector<double> of_two, of_many;
    const std::uint64_t two = most_taken(2, limit, of_two), many = most_taken(16, limit, of_many);
    EXPECT_GT(two, request_bytes + 2 * answer_bytes); // the request itself, and an answer with what it is read to
    EXPECT_NEAR(static_cast<double>(two), static_cast<double>(many), 1 << 14);
    EXPECT_LT(many, 16 * answer_bytes);
    for (std::size_t i = 0; i < of_two.size(); ++i)
        ASSERT_NEAR(of_two[i], of_many[i], 1e-9 * std::fabs(of_two[i]) + 1e-9);
}

// The same bits whether messages come at once or in parts.
TEST(NodesMemory, PartsChangeNothing)
{
    const Servers servers(3);
    std::vector<double> at_once, in_parts;
    most_taken(3, std::uint64_t{1} << 40, at_once);
    most_taken(3, 4 << 20, in_parts);
    EXPECT_EQ(at_once, in_parts);
    EXPECT_EQ(fit_mixture(servers, 0).numbers, fit_mixture(servers, 16 << 20).numbers);
}

// Whether a request is one of those that long messages need.
bool is_of_parts(std::uint32_t operation)
{
    using pgkm::nodes::Operation;
    const auto is = static_cast<Operation>(operation);
    return is == Operation::part || is == Operation::whole || is == Operation::held;
}

// Servers of a fit whose messages go in parts, there and back. fails(servers, calls): for each request of a part, and
// of what comes in parts, that the second server gets after so many others.
void each_part(const std::function<void(const Servers &, int)> &fails)
{
    const Servers all(3);
    EXPECT_EQ(fit_mixture(all, limit_of_parts).status, PGKM_OK);
    const std::vector<std::uint32_t> &asked = all.each[1]->operations;
    std::set<std::uint32_t> met;
    for (std::size_t calls = 0; calls < asked.size(); ++calls)
        if (is_of_parts(asked[calls])) {
            met.insert(asked[calls]);
            const Servers servers(3);
            servers.each[1]->calls_left = static_cast<int>(calls);
            fails(servers, static_cast<int>(calls));
        }
    EXPECT_EQ(met.size(), 3U);
}

TEST(NodesMemory, TheServerIsNamedThatDiesAtAPart)
{
    each_part([](const Servers &servers, int calls) {
        const Said said = fit_mixture(servers, limit_of_parts);
        EXPECT_EQ(said.status, PGKM_NODE_FAILED) << calls;
        EXPECT_EQ(said.text, "far: it is dead") << calls;
        EXPECT_EQ(servers.each[0]->cancels, 1) << calls;
    });
}

TEST(NodesMemory, ACancelEndsAFitThatWaitsForAPart)
{
    each_part([](const Servers &servers, int calls) {
        servers.each[1]->hangs = true;
        PgkmRequest request = mixture_request(rows.points(0, 0));
        servers.lend_to(request);
        request.settings.memory_limit = limit_of_parts;
        PgkmJob *job = nullptr;
        PgkmError error = {};
        PgkmResult result = {};
        ASSERT_EQ(pgkm_job_start(&request, &job, &error), PGKM_OK);
        while (!servers.each[1]->is_hanging.load() && pgkm_job_wait(job, 1) == 0) {}
        pgkm_job_stop(job);
        EXPECT_TRUE(servers.each[1]->is_hanging.load()) << calls;
        EXPECT_EQ(pgkm_job_result(job, 0, &result, &error), PGKM_CANCELLED) << calls;
        pgkm_job_free(job);
        EXPECT_EQ(servers.each[0]->cancels + servers.each[1]->cancels + servers.each[2]->cancels, 3) << calls;
    });
}

TEST(NodesMemory, AnAnswerWithoutRoomIsRefused)
{
    std::vector<double> found;
    try {
        most_taken(2, 700 << 10, found);
        ADD_FAILURE() << "an E step without room";
    } catch (const pgkm::Error &error) {
        EXPECT_EQ(error.status(), PGKM_LIMIT);
        EXPECT_EQ(std::string(error.what()).find("far: where you call, "), 0U) << error.what();
        EXPECT_NE(std::string(error.what()).find("pg_kmeans.memory_limit"), std::string::npos);
    }
}

// Before any server is asked.
TEST(NodesMemory, IsEstimatedWhereYouCall)
{
    for (const std::int64_t count : {1, 2, 9}) {
        const Servers servers(count);
        PgkmRequest request = mixture_request(rows.points(0, 0));
        request.settings.memory_limit = 16 << 20;
        const std::uint64_t alone = pgkm_request_estimate(&request);
        servers.lend_to(request);
        const std::uint64_t need = pgkm_request_estimate(&request);
        EXPECT_GT(need, alone + 3 * answer_bytes);
        EXPECT_EQ(fit_mixture(servers, need).status, PGKM_OK) << count;
        const std::int64_t calls = servers.each[0]->calls;
        const Said refused = fit_mixture(servers, need / 2);
        EXPECT_EQ(refused.status, PGKM_LIMIT);
        EXPECT_EQ(servers.each[0]->calls, calls);
    }
}

TEST(NodesMemory, AServerRefusesWhatItHasNoRoomFor)
{
    const Servers servers(2);
    servers.each[1]->memory_limit = 1'000'000 + 450 * (56 + 4 * d) + 2 * answer_bytes; // rows, and k-means
    const Said refused = fit_mixture(servers, 0);
    EXPECT_EQ(refused.status, PGKM_NODE_FAILED);
    EXPECT_EQ(refused.text.find("far: "), 0U) << refused.text;
    EXPECT_NE(refused.text.find("pg_kmeans.memory_limit"), std::string::npos);
    servers.each[1]->memory_limit += 20 * answer_bytes;
    EXPECT_EQ(fit_mixture(servers, 0).status, PGKM_OK);
}

// A request, the arrays that it is read to, and the answer as arrays, as a message and as a value in SQL; be it that
// the request has come in parts.
TEST(NodesMemory, IsEstimatedAtAServer)
{
    using pgkm::nodes::Operation, pgkm::nodes::Writer;
    Mixture asked;
    Writer message(Operation::call, pgkm::Function::em_step);
    pgkm::nodes::MessageFields fields(pgkm::Leg::write_call, {rows.n(), d, PGKM_FLOAT32}, message);
    pgkm::fields(fields, asked.call);
    message.put(pgkm::nodes::Iteration::none);
    Writer ranges(Operation::ranges);

    Server server(rows, 0, rows.n());
    const PgkmNode node = server.node("far");
    const auto estimate = [&](const Writer &request) { return server.estimate(request.bytes()); };
    const std::uint64_t without = estimate(ranges);
    const auto more = static_cast<double>(estimate(message) - without), messages = 1e6 + more - 2e5;
    EXPECT_NEAR(messages, static_cast<double>(2 * message.bytes().size() + 3 * answer_bytes), 1000);

    const Writer part(Operation::part, std::uint64_t{message.bytes().size()}, std::uint64_t{0}, message.bytes());
    const void *reply = nullptr;
    std::size_t size = 0;
    PgkmError error = {};
    ASSERT_EQ(node.call(node.arg, part.bytes().data(), part.bytes().size(), &error), 0);
    while (node.reply(node.arg, 100, &reply, &size, &error) == 0) {}
    EXPECT_EQ(estimate(Writer(Operation::whole)), estimate(message));
}

// The room was looked for when the first part came.
TEST(NodesMemory, PartsOfALongerRequestThanTheFirstSaidAreRefused)
{
    using pgkm::nodes::Operation, pgkm::nodes::Writer;
    Server server(rows, 0, rows.n());
    const PgkmNode node = server.node("far");
    const auto answer = [&](std::uint64_t all, std::uint64_t first) {
        const Writer part(Operation::part, all, first, pgkm::nodes::Bytes(16));
        const void *reply = nullptr;
        std::size_t size = 0;
        PgkmError error = {};
        EXPECT_EQ(node.call(node.arg, part.bytes().data(), part.bytes().size(), &error), 0);
        int state = 0;
        while ((state = node.reply(node.arg, 100, &reply, &size, &error)) == 0) {}
        return state > 0 ? PGKM_OK : error.status;
    };
    EXPECT_EQ(answer(64, 0), PGKM_OK);
    EXPECT_EQ(answer(64, 16), PGKM_OK);
    EXPECT_NE(answer(1 << 20, 32), PGKM_OK);
}

// An answer that says to be held, and is not there or is too long.
TEST(NodesMemory, ForgedLengthsAreRefused)
{
    for (const std::uint64_t held : {std::uint64_t{1}, std::uint64_t{1} << 29, std::uint64_t{1} << 62, UINT64_MAX}) {
        const Servers servers(2);
        servers.each[1]->forged_operation = 0;
        servers.each[1]->forge_mark = held;
        const Said refused = fit_mixture(servers, 64 << 20);
        EXPECT_TRUE(refused.status == PGKM_INVALID || refused.status == PGKM_LIMIT) << refused.text;
        EXPECT_EQ(refused.text.find("far: "), 0U) << refused.text;
    }
}

} // namespace
} // namespace in_process
