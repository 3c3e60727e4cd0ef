// serve.cpp - one request about the rows of this server, from its bytes to the answer's.
#include <algorithm>
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

// Rows that each row is compared with.
double compared(const PgkmRequest &request)
{
    try {
        nodes::Reader reader(request.share.request, request.share.bytes);
        const Operation operation = reader.operation();
        if (operation == Operation::seed_add) {
            reader.get<std::int32_t>();
            return static_cast<double>(reader.get<std::uint64_t>()) / std::max(request.points.d, 1);
        }
        auto function = Function::assign;
        if (operation == Operation::call)
            function = reader.get<Function>();
        else if (operation != Operation::cluster_sums)
            return 1.0;
        if (function == Function::moments)
            return request.points.d;
        return reader.get<std::int32_t>() * (function == Function::em_step ? double(request.points.d) : 1.0);
    } catch (const Error &) {
        return 1.0; // which is found out when it is served
    }
}

Work work_of_answer(const PgkmRequest &request, const PgkmGroup &group)
{
    const double each = static_cast<double>(group.n) * (compared(request) * request.points.d + 10.0);
    return {time_of(usual_iterations * each), time_of(each + fixed_operations)};
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
