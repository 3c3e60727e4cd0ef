// operations.cpp - one request about the rows of this server, and its answer.
#include "engine/nodes/operations.hpp"

#include <utility>

#include "engine/nodes/fields.hpp"

namespace pgkm::nodes {
namespace {

template <typename Function>
void answer(Share &share, Reader &request, Writer &reply)
{
    const auto values = Function::read(request);
    request.finish();
    reply.put(Function::call(share, values));
}

// Whether there is such an operation.
template <typename T, std::size_t... numbers>
bool answer_to(Operation operation, std::index_sequence<numbers...>, Share &share, Reader &request, Writer &reply)
{
    return ((static_cast<std::size_t>(operation) == numbers + 1 &&
             (answer<NumberedFunction<T, numbers>>(share, request, reply), true)) ||
            ...);
}

// Runs a call of the table as a server was asked for it.
void answer_call(Share &share, Reader &request, Writer &reply)
{
    CallRoom room;
    Call &call = room.call;
    MessageFields reader(Leg::read_call, shape_of(share.points()), request);
    call.function = request.get<Function>();
    require_shape(call.function == Function::assign || call.function == Function::moments ||
                  call.function == Function::em_step);
    room.make(1);
    fields(reader, call);
    // Labels stay where the rows are; those of a request would have to be checked.
    if (call.function == Function::assign)
        require_shape(call.assignments->labels == nullptr && call.assignments->distances == nullptr);
    if (call.function == Function::em_step)
        require_shape(call.mixtures->labels == nullptr && call.sums->labels == nullptr);
    const auto iteration = request.get<Iteration>();
    request.finish();
    require_shape(iteration <= Iteration::next);
    reply.put(static_cast<std::uint8_t>(share.call(call, iteration)));
    MessageFields writer(Leg::write_results, reader.rows(), reply);
    fields(writer, call);
}

} // namespace

void Share::serve(Reader &request, Writer &reply)
{
    const Operation operation = request.asked().operation;
    if (operation != Operation::held)
        state_.held = {};
    if (operation == Operation::call)
        return answer_call(*this, request, reply);
    with_element(points_, [&](auto element) {
        using T = decltype(element);
        constexpr std::size_t count = std::tuple_size_v<std::decay_t<decltype(functions<T>)>>;
        if (!answer_to<T>(operation, std::make_index_sequence<count>(), *this, request, reply))
            throw Error(PGKM_INVALID, "a node was asked for something it does not know");
    });
}

} // namespace pgkm::nodes
