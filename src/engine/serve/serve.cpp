// serve.cpp - one request about the rows of this server, from its bytes to the answer's.
#include <algorithm>
#include <cmath>
#include <new>
#include <optional>

#include "engine/job/algorithm.hpp"
#include "engine/job/resident.hpp"
#include "backend/calls.hpp"
#include "backend/covariance.hpp"
#include "cpu/cpu_backend.hpp"
#include "engine/nodes/message.hpp"
#include "engine/nodes/share.hpp"
#include "numeric/error.hpp"

struct PgkmShare {
    pgkm::nodes::ShareState state;
};

namespace pgkm {
namespace {

using nodes::Operation;

class Answer : public Models {
  public:
    explicit Answer(nodes::Bytes &&bytes) : bytes_(std::move(bytes)) {}
    void get(std::int64_t, PgkmResult *result) const override
    {
        result->reply = bytes_.data();
        result->reply_bytes = bytes_.size();
    }

  private:
    const nodes::Bytes bytes_;
};

// The request, which may have come in parts.
nodes::Reader reader_of(const PgkmRequest &request)
{
    const nodes::Reader reader(request.share.request, request.share.bytes);
    const bool in_parts = nodes::Reader(reader).asked().operation == Operation::whole;
    return in_parts ? nodes::Reader(request.share.share->state.parts) : reader;
}

// What is done for each row: the rows that it is compared with, and operations beside, for which no other backend is
// worth taking than for the rest of a step.
struct RowWork {
    double compared = 1.0;
    double beside = 0.0;
};

RowWork work_of_row(const PgkmRequest &request)
{
    const double d = std::max(request.points.d, 1);
    nodes::Reader reader = reader_of(request);
    switch (reader.asked().operation) {
    case Operation::call: {
        const auto function = reader.get<Function>();
        if (function == Function::moments)
            return {d};
        return {reader.get<std::int32_t>() * (function == Function::em_step ? d : 1.0)};
    }
    case Operation::cluster_sums:
        return {static_cast<double>(reader.get<std::int32_t>())};
    case Operation::farthest:
        return {static_cast<double>(request.share.share->state.centroids.k)};
    case Operation::seed_begin: // rows are sorted
        return {1.0, 4.0 * std::log2(static_cast<double>(request.points.n) + 1.0)};
    case Operation::seed_add:
        reader.get<std::int32_t>();
        return {static_cast<double>(reader.get<std::uint64_t>()) / d};
    case Operation::seed_gains: // trials
        return {1.0, static_cast<double>(reader.get<std::uint64_t>())};
    case Operation::seed_exact:
        return {1.0, static_cast<double>(reader.get<std::uint64_t>()) * d};
    default:
        return {};
    }
}

Work work_of_answer(const PgkmRequest &request, const PgkmGroup &group)
{
    RowWork row;
    try {
        row = work_of_row(request);
    } catch (const Error &) { // which is found out when it is served
    }
    const auto n = static_cast<double>(group.n);
    const double each = n * (row.compared * request.points.d + 10.0);
    return {time_of(usual_iterations * each), time_of(each + n * row.beside + fixed_operations)};
}

// What a call of the table finds. Other answers are short, or have room found for them when they are made.
double bytes_of_answer(nodes::Reader reader, std::int64_t d)
{
    if (reader.asked().operation != Operation::call)
        return 0.0;
    const auto function = reader.get<Function>();
    if (function == Function::moments)
        return 8.0 * static_cast<double>(triangle_size(d) + d);
    const auto k = reader.get<std::int32_t>();
    const double values = static_cast<double>(k) * static_cast<double>(d + 1);
    if (function != Function::em_step)
        return 16.0 * values;
    const std::int32_t type = std::clamp<std::int32_t>(reader.get<std::int32_t>(), 0, PGKM_COVARIANCE_SPHERICAL);
    return 8.0 * (values + static_cast<double>(second_size(static_cast<PgkmCovariance>(type), k, d)));
}

// The request came as a value in SQL, and is read to arrays. The answer is arrays, a message, and such a value.
double bytes_of_messages(const PgkmRequest &request)
{
    try {
        const nodes::Reader reader = reader_of(request);
        return 2.0 * static_cast<double>(reader.left()) + 3.0 * bytes_of_answer(reader, request.points.d);
    } catch (const Error &) { // which is found out when it is served
        return 0.0;
    }
}

// Up to so many bytes need no account of their own.
constexpr double small_messages = 1e6;

double bytes_of_rows(const PgkmRequest &request, double rows)
{
    const double size = request.points.element == PGKM_FLOAT32 ? 4.0 : 8.0;
    return std::max(small_messages, 2e5 + bytes_of_messages(request)) +
           rows * (static_cast<double>(nodes::state_bytes_per_row) + size * request.points.d);
}

// With what is held for later where it may not come at once.
nodes::Bytes finish(nodes::Bytes &&reply, std::uint64_t most_at_once, nodes::Bytes &held)
{
    if (reply.size() > nodes::most_message_bytes)
        throw Error(PGKM_LIMIT, "an answer to another server exceeds the maximum size of a value");
    if (reply.size() <= most_at_once)
        return std::move(reply);
    held = std::move(reply);
    nodes::Writer begun;
    begun.put(std::uint64_t{held.size()});
    return begun.take();
}

std::unique_ptr<Models> answer(const PgkmRequest &request, Workplace *place, Monitor &)
{
    nodes::Reader reader = reader_of(request);
    // How much of the answer may come at once says what has come last.
    const std::uint64_t most_at_once = nodes::Reader(request.share.request, request.share.bytes).asked().most_at_once;
    const Operation operation = nodes::Reader(reader).asked().operation;
    // The transformed rows go away: no backend may keep them, whichever served the last request.
    if (operation == Operation::transform)
        request.resident->unload();
    const PgkmOpen open = open_options(request, place->threads, request.resident->relay.host());
    nodes::ShareState &state = request.share.share->state;
    if (place->session.data() != nullptr)
        nodes::cpu_data(place->session); // what a job of this server's own keeps beside the rows goes
    std::optional<cpu::HeldMemory> room; // beside what the backend takes
    if (const double needed = bytes_of_messages(request); needed > small_messages) {
        const auto bytes = static_cast<std::uint64_t>(std::min(needed, 1e18));
        const std::shared_ptr<PgkmContext> context = place->session.cpu();
        nodes::make_room(state, request.points, context.get(), bytes);
        room.emplace(context.get(), bytes);
    }
    nodes::Writer reply;
    nodes::serve_rows(place->session, request.points, state, open, [&](nodes::Share &share) {
        reply = nodes::Writer();
        reply.put(std::uint64_t{0}); // nothing is held: the answer follows
        nodes::Reader own = reader;
        share.serve(own, reply);
    });
    if (operation != Operation::part)
        state.parts = {};
    return std::make_unique<Answer>(finish(reply.take(), most_at_once, state.held));
}

} // namespace

const Algorithm serving = {"work for another server",
                           [](const PgkmRequest &, const PgkmGroup &) {},
                           work_of_answer,
                           bytes_of_rows,
                           [](const PgkmRequest &, const PgkmGroup &) { return 0.0; },
                           nullptr,
                           answer};

} // namespace pgkm

PgkmShare *pgkm_share_create(void)
{
    return new (std::nothrow) PgkmShare();
}

void pgkm_share_free(PgkmShare *share)
{
    delete share;
}
