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

} // namespace
} // namespace pgkm::service
