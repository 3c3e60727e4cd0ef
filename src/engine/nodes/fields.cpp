// fields.cpp - a call as a server was asked for it.
#include "engine/nodes/fields.hpp"

namespace pgkm::nodes {

AskedCall::AskedCall(Reader &request, const PgkmPoints &points) : reader_(Leg::read_call, shape_of(points), request)
{
    Call &call = room_.call;
    call.function = request.get<Function>();
    reader_.require(call.function == Function::assign || call.function == Function::moments ||
                    call.function == Function::em_step);
    room_.make(1);
    fields(reader_, call);
    // Labels stay where the rows are; those of a request would have to be checked.
    if (call.function == Function::assign)
        reader_.require(call.assignments->labels == nullptr && call.assignments->distances == nullptr);
    if (call.function == Function::em_step)
        reader_.require(call.mixtures->labels == nullptr && call.sums->labels == nullptr);
}

void AskedCall::reply(Writer &reply)
{
    MessageFields writer(Leg::write_results, reader_.rows(), reply);
    fields(writer, room_.call);
}

} // namespace pgkm::nodes
