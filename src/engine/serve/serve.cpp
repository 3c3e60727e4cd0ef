// serve.cpp - one request about the rows of this server, from its bytes to the answer's.
#include <algorithm>
#include <cmath>
#include <new>

#include "engine/job/algorithm.hpp"
#include "engine/job/resident.hpp"
#include "backend/calls.hpp"
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
    explicit Answer(const nodes::Bytes &bytes) : bytes_(bytes) {}
    void get(std::int64_t, PgkmResult *result) const override
    {
        result->reply = bytes_.data();
        result->reply_bytes = bytes_.size();
    }

  private:
    nodes::Bytes bytes_;
};

// What is done for each row: the rows that it is compared with, and operations beside, for which no other backend is
// worth taking than for the rest of a step.
struct RowWork {
    double compared = 1.0;
    double beside = 0.0;
};

RowWork work_of_row(const PgkmRequest &request)
{
    const double d = std::max(request.points.d, 1);
    nodes::Reader reader(request.share.request, request.share.bytes);
    switch (reader.operation()) {
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

double bytes_of_rows(const PgkmRequest &request, double rows)
{
    const double size = request.points.element == PGKM_FLOAT32 ? 4.0 : 8.0;
    return 1e6 + rows * (static_cast<double>(nodes::state_bytes_per_row) + size * request.points.d);
}

std::unique_ptr<Models> answer(const PgkmRequest &request, Workplace *place, Monitor &)
{
    nodes::Reader reader(request.share.request, request.share.bytes);
    nodes::Writer reply;
    // The transformed rows go away: no backend may keep them, whichever served the last request.
    if (nodes::Reader(reader).operation() == Operation::transform)
        request.resident->unload();
    const PgkmOpen open = open_options(request, place->threads, request.resident->relay.host());
    nodes::Share(place->session, request.points, request.share.share->state, open).serve(reader, reply);
    return std::make_unique<Answer>(reply.bytes());
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
