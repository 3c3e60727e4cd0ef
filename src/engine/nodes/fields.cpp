// fields.cpp - a call as a server was asked for it.
#include "engine/nodes/fields.hpp"

namespace pgkm::nodes {

AskedCall::AskedCall(Reader &request, const PgkmPoints &points) : reader_(Leg::read_call, shape_of(points), request)
{
    call_.function = static_cast<Function>(request.get<std::uint32_t>());
    reader_.require(call_.function == Function::assign || call_.function == Function::moments ||
                    call_.function == Function::em_step);
    call_.n_problems = 1;
    call_.problems = &problem;
    call_.assignments = &assignment;
    call_.moments = &moments;
    call_.mixtures = &mixture;
    call_.sums = &sums;
    fields(reader_, call_);
    // Labels stay where the rows are; those of a request would have to be checked.
    reader_.require(assignment.labels == nullptr && assignment.distances == nullptr && mixture.labels == nullptr &&
                    sums.labels == nullptr);
}

void AskedCall::reply(Writer &reply)
{
    MessageFields writer(Leg::write_results, reader_.rows(), reply);
    fields(writer, call_);
}

} // namespace pgkm::nodes
