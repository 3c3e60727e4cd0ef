// Servers of a fit whose rows one GPU service has, with one device and one turn: who waits for the others holds none.
#include "nodes_fixture.hpp"

#include "service_fixture.hpp"

namespace pgkm::service {
namespace {

using namespace in_process;

TEST_F(Service, ServesTwoServersOfAFitByTurns)
{
    server_.set_limits({1, std::uint64_t{1} << 30});
    const auto rows = make_rows<float>(3000, 4, true, normal);
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM}) {
        PgkmRequest request = in_process::request_of(rows.points(0, 3000), 20);
        request.kmeans.init = init;
        request.kmeans.standardize = 1;
        request.kmeans.max_iter = 5;
        const Said one = run(request);
        DeviceServer first({client_backend(), -1, connect()}, rows.points(500, 1500)),
            second({client_backend(), -1, connect()}, rows.points(2000, 1000));
        const PgkmNode nodes[] = {first.node("first"), second.node("second")};
        request.points = rows.points(0, 500);
        request.nodes = nodes;
        request.n_nodes = 2;
        const Said several = run(request);
        EXPECT_EQ(several.numbers, one.numbers) << several.text;
    }
}

// A limit where you call is the same for every backend: the fit does not begin again on the next one.
TEST_F(Service, AsksServersOnceWhereTheCallerHasNoRoom)
{
    const auto rows = make_rows<float>(50'000, 4, true, normal);
    std::int64_t on_cpu = 0;
    for (const ::PgkmBackendChoice backend : {PGKM_BACKEND_CPU, PGKM_BACKEND_AUTO}) {
        in_process::Server far(rows, 500, rows.n() - 500);
        far.forged_operation = 0; // sums of an iteration, which it says to hold
        far.forge_mark = std::uint64_t{1} << 29;
        const PgkmNode node = far.node("far");
        PgkmRequest request = in_process::request_of(rows.points(0, 500), 500); // work that a device is worth
        request.kmeans.init = PGKM_INIT_RANDOM;
        request.settings.memory_limit = 64 << 20;
        request.settings.backend = backend;
        request.settings.channel = connect();
        request.settings.device_ready = 1;
        request.nodes = &node;
        request.n_nodes = 1;
        const Said refused = run(request);
        EXPECT_EQ(refused.status, PGKM_LIMIT) << refused.text;
        EXPECT_EQ(refused.text.find("far: where you call, "), 0U) << refused.text;
        EXPECT_EQ(far.calls, backend == PGKM_BACKEND_CPU ? on_cpu = far.calls : on_cpu);
    }
}

} // namespace
} // namespace pgkm::service
