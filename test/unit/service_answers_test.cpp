// What the GPU service says is checked, too, before a client believes it.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "service_fixture.hpp"
#include "support/problem_call.hpp"

namespace pgkm::service {
namespace {

TEST(ServiceAnswers, ThatCannotBeAreRefused)
{
    const RowShape rows = {100, 2, PGKM_FLOAT32};
    std::vector<float> centroids(2 * 2);
    PgkmProblem problem = {};
    problem.n_rows = 100;
    problem.k = 2;
    problem.centroids = centroids.data();
    Call call = test::problem_call(Function::seed, problem);
    std::vector<std::int64_t> arena(1024);
    // Of an answer whose number so many from the last is this one.
    const auto status_of = [&](std::uint64_t from_last, std::int64_t value) {
        auto *base = reinterpret_cast<char *>(arena.data());
        ArenaFields sizes(rows);
        fields(sizes, call);
        ArenaFields writer(Leg::write_call, rows, base, sizes.numbers(), sizes.bytes());
        fields(writer, call);
        arena[sizes.numbers() - 1 - from_last] = value;
        ArenaFields reader(Leg::read_results, rows, base, sizes.numbers(), sizes.bytes());
        PgkmError error;
        return guarded(&error, [&] { fields(reader, call); });
    };
    const auto takes = [&](std::int64_t found) {
        const PgkmStatus status = status_of(0, found);
        problem.k = 2;
        return status;
    };
    EXPECT_EQ(takes(1), PGKM_OK);
    EXPECT_EQ(takes(2), PGKM_OK);
    EXPECT_EQ(takes(0), PGKM_INVALID);
    EXPECT_EQ(takes(-1), PGKM_INVALID);
    EXPECT_EQ(takes(3), PGKM_INVALID) << "more centroids than were asked for";
    PgkmReduced reduced = {};
    call.function = Function::reduce;
    call.reduced = &reduced;
    const auto fault = [&](std::int64_t of) { return status_of(3, of); };
    EXPECT_EQ(fault(PGKM_FAULT_TOTAL), PGKM_OK);
    EXPECT_EQ(fault(PGKM_FAULT_TOTAL + 1), PGKM_INVALID) << "no such fault";
    EXPECT_EQ(fault(-1), PGKM_INVALID);
}

// A service that answers one request: what it says, and what it writes into the arena.
template <typename Client>
void with_answer(std::int32_t status, const PgkmServiceCounts &counts, Client &&client)
{
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    const Waiter service([&] {
        Request request;
        File passed;
        ASSERT_EQ(receive_message(ends[1], &request, sizeof request, 5000, &passed), Received::message);
        if (passed.is_open()) {
            Arena arena(std::move(passed));
            arena.follow(request.arena_bytes);
            std::memcpy(arena.get(), &counts, sizeof counts);
        }
        Reply reply = {};
        reply.magic = magic;
        reply.serial = request.serial;
        std::memcpy(&reply.error.status, &status, sizeof status);
        ASSERT_TRUE(send_message(ends[1], &reply, sizeof reply));
    });
    client(ends[0]);
    pgkm_service_disconnect(ends[0]);
    close(ends[1]);
}

TEST(ServiceAnswers, HaveAStatusThatIsOne)
{
    for (const std::int32_t status : {-1, PGKM_NODE_FAILED + 1, INT32_MAX})
        with_answer(status, {}, [&](int channel) {
            Link link(channel, {}, {}, 0);
            PgkmError error;
            EXPECT_EQ(guarded(&error, [&] { link.ask(request_of(Op::call)); }), PGKM_DEVICE_ERROR) << status;
        });
}

TEST(ServiceAnswers, TellOfNoMoreDevicesThanThereMayBe)
{
    for (const std::int32_t told : {-1, 2, INT32_MAX}) {
        PgkmServiceCounts counts = {}, found = {};
        counts.n_devices = told;
        with_answer(PGKM_OK, counts, [&](int channel) { devices(channel, milliseconds(5000), &found); });
        EXPECT_EQ(found.n_devices, std::clamp(told, 0, PGKM_SERVICE_DEVICES));
    }
}

} // namespace
} // namespace pgkm::service
