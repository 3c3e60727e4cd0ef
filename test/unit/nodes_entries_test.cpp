// Rows that repeat, on several servers: each goes by those of its rows that differ, and the bits stay.
#include <set>

#include "cpu/context.hpp"
#include "cpu/cpu_backend.hpp"
#include "nodes_fixture.hpp"

namespace in_process {
namespace {

using pgkm::nodes::Operation, pgkm::nodes::ShareState;

// Rows of few contents, the first of which has most of the copies. They differ in the last bit, or by the sign of a
// zero, which makes no difference.
template <typename T>
RowSet repeated(std::int64_t n, std::int32_t d, int contents, bool weighted, double share_of_first = 0.3,
                double shift = 0.0)
{
    std::mt19937_64 random(11);
    std::vector<T> known(static_cast<std::size_t>(contents * d));
    for (std::size_t i = 0; i < known.size(); ++i) {
        const auto value = static_cast<T>(static_cast<double>(random() % 5) - 2.0 + shift);
        known[i] = random() % 7 != 0 ? value : value == T(0) ? -value : std::nextafter(value, T(9));
    }
    RowSet rows = {sizeof(T) == 4 ? PGKM_FLOAT32 : PGKM_FLOAT64, d, {}, {}};
    rows.values.resize(static_cast<std::size_t>(n) * rows.row_bytes());
    for (std::int64_t i = 0; i < n; ++i) {
        const bool is_first = std::uniform_real_distribution<double>()(random) < share_of_first;
        const std::size_t which = is_first ? 0 : random() % static_cast<std::size_t>(contents);
        std::memcpy(rows.values.data() + static_cast<std::size_t>(i) * rows.row_bytes(),
                    known.data() + which * static_cast<std::size_t>(d), rows.row_bytes());
        if (weighted)
            rows.weights.push_back(std::vector<double>{0.3, 1.0, 1e-9}[random() % 3]);
    }
    return rows;
}

using Watch = std::function<void(Operation, pgkm::Session &, ShareState &)>;

// The rows of a fit: some here, the others on two servers.
Said run_watched(const RowSet &rows, PgkmRequest request, const Watch &before, const Watch &after,
                 std::uint64_t limit = 0)
{
    const std::int64_t n = rows.n(), first = n / 4, second = 3 * n / 5;
    DeviceServer servers[] = {{pgkm::cpu_choice(), rows.points(first, second - first), limit},
                              {pgkm::cpu_choice(), rows.points(second, n - second), limit}};
    servers[1].before = before;
    servers[1].after = after;
    const PgkmNode nodes[] = {servers[0].node("first"), servers[1].node("second")};
    request.points = rows.points(0, first);
    request.nodes = nodes;
    request.n_nodes = 2;
    return run(request);
}

void expect_by_entries(const RowSet &rows, const Change &change, std::int64_t k)
{
    PgkmRequest request = request_of(rows.points(0, rows.n()), k);
    change(request);
    int without = 0, with = 0;
    const Said several = run_watched(rows, request, nullptr, [&](Operation operation, pgkm::Session &, auto &state) {
        if (operation >= Operation::seed_begin || operation == Operation::call || operation == Operation::farthest)
            ++(state.entries == nullptr ? without : with);
    });
    const Said one = run(request);
    EXPECT_EQ(several.status, PGKM_OK) << several.text;
    EXPECT_EQ(several.numbers, one.numbers);
    EXPECT_GT(with, 0);
    EXPECT_EQ(without, 0);
    EXPECT_EQ(run_on_servers(rows, request, {0.3, 0.0, 0.4, 0.3}).numbers, one.numbers);
}

TEST(NodesEntries, HaveTheBitsOfOneServer)
{
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM})
        for (const bool weighted : {false, true})
            for (const std::int64_t k : {2, 30}) {
                SCOPED_TRACE(std::to_string(init) + (weighted ? " weighted" : "") + ", k " + std::to_string(k));
                const auto change = [&](PgkmRequest &request) {
                    request.kmeans.init = init;
                    request.kmeans.n_init = 2;
                    request.kmeans.max_iter = iterations(20);
                };
                expect_by_entries(repeated<float>(20000, 3, 200, weighted), change, k);
                expect_by_entries(repeated<double>(18000, 9, 40, weighted), change, k);
            }
}

// A seeding of entries has the answers of one of their rows, of which some have several entries.
TEST(NodesEntries, AnswerAsTheirRows)
{
    using pgkm::cpu::Mass;
    for (const bool weighted : {false, true}) {
        const auto rows = repeated<float>(30000, 2, 20, weighted);
        PgkmOpen open = {};
        open.threads = 2;
        pgkm::Session session(pgkm::cpu_choice(), open);
        const std::shared_ptr<PgkmContext> context = session.cpu();
        pgkm::cpu::Data data = {*pgkm::cpu::self(context.get()), rows.points(0, rows.n())};
        const auto entries = pgkm::cpu::make_entries(data, {rows.n()});
        ASSERT_NE(entries, nullptr);
        constexpr std::int32_t bits = 2; // several contents a bucket
        std::vector<std::unique_ptr<pgkm::cpu::Seeding<float>>> both;
        for (pgkm::cpu::Data *each : {&data, &entries->data}) {
            both.push_back(std::make_unique<pgkm::cpu::Seeding<float>>(each->points, each->counts, context, bits, true,
                                                                       [](std::uint64_t) {}));
            both.back()->serve_by(
                [each](std::int32_t k, float *to, PgkmAssignment &wanted) {
                    PgkmProblem problem = {};
                    problem.n_rows = each->points.n;
                    problem.k = k;
                    problem.centroids = to;
                    pgkm::cpu::assign(*each, &problem, 1, &wanted);
                },
                true);
            both.back()->begin();
        }
        const auto expect_equal = [&](auto &&ask) {
            std::vector<pgkm::nodes::Bytes> answers;
            for (const auto &seeding : both) {
                pgkm::nodes::Writer answer;
                answer.put(ask(*seeding));
                answers.push_back(answer.bytes());
            }
            EXPECT_EQ(answers[0], answers[1]);
        };
        const auto expect_equal_masses = [&](Mass kind) {
            expect_equal([&](auto &seeding) { return seeding.weigh(kind, 20); });
            expect_equal([](auto &seeding) { return seeding.runs(bits, 1, {0, 1, 2, 3}); });
        };
        expect_equal_masses(Mass::one);
        if (weighted)
            expect_equal_masses(Mass::weight);
        const std::vector<float> chosen = {0.0F, 1.0F, 2.0F, 2.0F}, trials = {-2.0F, 1.0F, 1.0F, -1.0F};
        expect_equal([&](auto &seeding) { return seeding.add(0, chosen); });
        expect_equal_masses(Mass::square);
        expect_equal([](auto &seeding) { return seeding.masses_of_chosen(2, 20); });
        for (const auto &seeding : both)
            seeding->gains(trials);
        expect_equal([](auto &seeding) { return seeding.exact_gains({0, 1}); });
        expect_equal([](auto &seeding) { return seeding.choose(1); });
        expect_equal_masses(Mass::square);
    }
}

TEST(NodesEntries, TakeOptions)
{
    const auto rows = repeated<double>(20000, 4, 150, true, 0.3, 3.0);
    for (const PgkmMetric metric : {PGKM_L2, PGKM_COSINE})
        expect_by_entries(
            rows,
            [&](PgkmRequest &request) {
                request.kmeans.metric = metric;
                request.kmeans.standardize = metric == PGKM_COSINE ? 0 : 1;
                request.kmeans.init = PGKM_INIT_KMEANS_PARALLEL;
                request.kmeans.refine = 1;
            },
            9);
    PgkmRequest sweep = request_of(rows.points(0, rows.n()), 7);
    sweep.k_last = 9;
    EXPECT_EQ(run_on_servers(rows, sweep, {0.3, 0.4, 0.3}).numbers, run(sweep).numbers);
}

// Centroids that are given far away: all clusters but one are empty, and take copies of the farthest rows.
TEST(NodesEntries, GiveEmptyClustersOneCopyEach)
{
    for (const bool weighted : {false, true})
        for (const std::int32_t k : {13, 30}) {
            const auto rows = repeated<double>(20000, 2, 12, weighted);
            std::vector<double> far(static_cast<std::size_t>(k * rows.d), 1e6);
            far[0] = 0.0;
            expect_by_entries(
                rows,
                [&](PgkmRequest &request) {
                    request.kmeans.init_centroids = {far.data(), 2, {k, rows.d}};
                },
                k);
        }
}

// Far more copies of one row than an entry may have.
TEST(NodesEntries, HoldManyCopies)
{
    const auto rows = repeated<float>(1000000, 1, 5, false, 0.9);
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM})
        expect_by_entries(
            rows, [&](PgkmRequest &request) { request.kmeans.init = init; }, 3);
}

// Rows that differ are served as they are.
TEST(NodesEntries, AreNotMadeOfRowsThatDiffer)
{
    const auto rows = make_rows<float>(20000, 3, false, normal);
    PgkmRequest request = request_of(rows.points(0, rows.n()), 20);
    bool any = false;
    const Said several = run_watched(rows, request, nullptr, [&](Operation, pgkm::Session &, auto &state) {
        any = any || state.entries != nullptr;
    });
    EXPECT_EQ(several.numbers, run(request).numbers) << several.text;
    EXPECT_FALSE(any);
}

// Fits whose rows repeat, but for `spoil` of the second server, at one request after the other.
void spoil_each(const RowSet &rows, PgkmRequest request, std::uint64_t limit, const Watch &spoil, const Watch &after)
{
    const Said one = run(request);
    int last = INT32_MAX;
    for (int at = 0; at < last; at += 1 + at / 8) {
        int asked = 0;
        const Said several = run_watched(
            rows, request,
            [&](Operation operation, pgkm::Session &session, auto &state) {
                if (asked++ == at && state.entries != nullptr)
                    spoil(operation, session, state);
            },
            after, limit);
        last = asked;
        ASSERT_EQ(several.status, PGKM_OK) << at << ": " << several.text;
        EXPECT_EQ(several.numbers, one.numbers) << at;
    }
    EXPECT_GT(last, 7);
}

PgkmRequest fallible(const RowSet &rows, PgkmInit init, std::int64_t k)
{
    PgkmRequest request = request_of(rows.points(0, rows.n()), k);
    request.kmeans.init = init;
    request.kmeans.n_init = 2;
    request.kmeans.tol = 0.0;
    request.kmeans.max_iter = 5;
    return request;
}

// Entries that go between two requests: the seeding is told anew what it was told, and labels are found anew.
TEST(NodesEntries, MayGoAtAnyTime)
{
    std::vector<double> far(16 * 2, 1e6); // all clusters but one are empty
    far[0] = 0.0;
    for (const bool weighted : {false, true}) {
        const auto rows = repeated<double>(12500, 2, 30, weighted);
        std::vector<PgkmRequest> requests = {fallible(rows, PGKM_INIT_KMEANS_PLUS_PLUS, 16),
                                             fallible(rows, PGKM_INIT_KMEANS_PARALLEL, 16),
                                             fallible(rows, PGKM_INIT_RANDOM, 16)};
        requests[2].kmeans.init_centroids = {far.data(), 2, {16, 2}};
        for (const PgkmRequest &request : requests)
            spoil_each(
                rows, request, 0,
                [&](Operation, pgkm::Session &, ShareState &state) { give_up_entries(state, rows.points(0, 1)); },
                nullptr);
    }
    // Rows that are relocated again and again: labels rest, and centroids do not.
    int next = 0;
    const auto near = make_rows<double>(12500, 1, false, [&](auto &) {
        return std::vector<double>{1e15, 1e15 + 1e-3, 2e15, 3e15, 3e15 + 0.5}[static_cast<std::size_t>(next++ % 5)];
    });
    PgkmRequest request = fallible(near, PGKM_INIT_RANDOM, 16);
    far.assign(16, 1e16);
    far[0] = 0.0;
    request.kmeans.init_centroids = {far.data(), 2, {16, 1}};
    request.kmeans.max_iter = 30;
    spoil_each(
        near, request, 0,
        [&](Operation, pgkm::Session &, ShareState &state) { give_up_entries(state, near.points(0, 1)); }, nullptr);
}

// A server takes another backend from one request to the next: a device has no entries, and a seeding by rows gets
// none.
TEST(NodesEntries, AreTheCpus)
{
    const auto rows = repeated<float>(25000, 2, 40, false);
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL}) {
        PgkmRequest request = fallible(rows, init, 16);
        request.kmeans.n_init = 3;
        const Said one = run(request);
        int asked = 0;
        const std::function<bool(Operation)> patterns[] = {
            [](Operation operation) { return operation >= Operation::seed_begin; },
            [](Operation operation) { return operation < Operation::seed_begin; },
            [&](Operation) { return asked++ < 12; }, [&](Operation) { return asked++ % 2 == 0; },
            [&](Operation) { return asked++ % 7 == 3; }};
        for (const auto &by_other : patterns) {
            DeviceServer far(pgkm::cpu_choice(), rows.points(5000, 20000));
            bool any = false;
            far.by_other = by_other;
            far.after = [&](Operation, pgkm::Session &session, auto &state) {
                EXPECT_TRUE(state.entries == nullptr || session.table() == pgkm::cpu_backend());
                any = any || state.entries != nullptr;
            };
            const PgkmNode node = far.node("far");
            request.points = rows.points(0, 5000);
            request.nodes = &node;
            request.n_nodes = 1;
            asked = 0;
            const Said several = run(request);
            EXPECT_EQ(several.numbers, one.numbers) << several.text << " " << &by_other - patterns;
            EXPECT_TRUE(any);
        }
    }
}

// A request that finds no room beside entries goes by the rows, which find it where the entries were.
TEST(NodesEntries, GoWhereMemoryIsShort)
{
    constexpr std::uint64_t limit = 64 << 20;
    const auto rows = repeated<double>(12500, 100, 900, false);
    std::set<Operation> short_of;
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL}) {
        std::uint64_t held = 0;
        spoil_each(
            rows, fallible(rows, init, 6), limit,
            [&](Operation, pgkm::Session &session, ShareState &) { // takes all that is left but a little
                pgkm::cpu::Budget &budget = pgkm::cpu::self(session.cpu().get())->budget;
                for (std::uint64_t bytes = limit; bytes > 1024; bytes /= 2)
                    try {
                        budget.take(bytes); // for which what is spare goes
                        held += bytes;
                    } catch (const pgkm::Error &) {
                    }
            },
            [&](Operation operation, pgkm::Session &session, ShareState &state) {
                if (held != 0 && state.entries == nullptr)
                    short_of.insert(operation);
                pgkm::cpu::self(session.cpu().get())->budget.give_back(std::exchange(held, 0));
            });
    }
    for (const Operation operation : {Operation::call, Operation::seed_add, Operation::seed_gains})
        EXPECT_TRUE(short_of.contains(operation)) << static_cast<int>(operation);
}

// Whatever the limit of this server is: where rows do with it, so do entries, and messages find room.
TEST(NodesEntries, NeedNoMoreMemoryThanRows)
{
    const auto rows = repeated<double>(24000, 40, 1200, false, 0.0);
    PgkmRequest request = fallible(rows, PGKM_INIT_KMEANS_PARALLEL, 20);
    request.settings.cpu_threads = 1;
    const Said one = run(request);
    bool was_enough = false;
    int refused = 0;
    for (std::uint64_t limit = 100000; limit < 12000000; limit += limit / 12) {
        request.settings.memory_limit = limit;
        const Said several = run_watched(rows, request, nullptr, nullptr, 0);
        was_enough = was_enough || several.status == PGKM_OK;
        EXPECT_EQ(several.status, was_enough ? PGKM_OK : PGKM_LIMIT) << limit << ": " << several.text;
        EXPECT_TRUE(several.status != PGKM_OK || several.numbers == one.numbers) << limit;
        refused += several.status == PGKM_OK ? 0 : 1;
    }
    EXPECT_TRUE(was_enough);
    EXPECT_GT(refused, 0);
}

} // namespace
} // namespace in_process
