// share_iterate.cpp - iterations of one server's rows, and the rows that may fill empty clusters.
//
// A CPU goes on from the iteration before, with its bounds and sums. A device begins anew each time.
#include "engine/nodes/share.hpp"

#include <algorithm>

#include "backend/host.hpp"
#include "backend/peers.hpp"

namespace pgkm::nodes {
namespace {

constexpr std::int64_t rows_per_poll = 1 << 14;

} // namespace

cpu::Data *cpu_data(Session &session)
{
    if (session.table() != cpu_backend())
        return nullptr;
    cpu::Data *const data = cpu::self(session.data());
    if (data != nullptr)
        data->entries.reset(); // the caller reads the rows, and may want the memory
    return data;
}

bool Share::iterate(Call &call, bool first)
{
    require_shape(call.function == Function::assign && call.assignments->totals != nullptr &&
                  call.assignments->masses != nullptr);
    if (first && state_.seeding != nullptr) // until the next restart
        with_element(points_, [&](auto element) {
            static_cast<cpu::Seeding<decltype(element)> *>(state_.seeding.get())->rest();
        });
    cpu::Data *const data = state_.passing ? nullptr : cpu_data(session_);
    const bool changed = data == nullptr
                             ? assign_rows(call, first)
                             : cpu::iterate_on(*data, *call.problems, first, state_.labels, *call.assignments);
    state_.centroids = centroids_of(*call.problems, shape_of(points_));
    return changed;
}

// Whether a label changed; where they are not kept, true.
bool Share::assign_rows(Call &call, bool first)
{
    LargeArray<std::int32_t> labels(state_.passing ? 0 : static_cast<std::size_t>(points_.n));
    call.assignments->labels = labels.empty() ? nullptr : labels.data();
    session_.run(call);
    call.assignments->labels = nullptr;
    const bool changed = first || state_.passing || labels != state_.labels.values;
    state_.labels = {std::move(labels)};
    return changed;
}

// The `most` first rows in FarOrder.
template <typename T>
std::vector<char> Share::farthest(std::int64_t most)
{
    require_shape(most >= 1);
    if (state_.passing)
        state_.labels.values.resize(static_cast<std::size_t>(points_.n));
    Centroids &last = state_.centroids;
    if (last.k < 1 || state_.labels.values.size() != static_cast<std::size_t>(points_.n))
        throw Error(PGKM_INVALID, "a node was asked for the farthest rows before an iteration");
    LargeArray<double> squares(static_cast<std::size_t>(points_.n));
    PgkmAssignment wanted = {};
    wanted.labels = state_.passing ? state_.labels.values.data() : nullptr;
    wanted.distances = squares.data();
    session_.assign(points_.n, last.k, last.values.data(), wanted);

    const std::size_t bytes_of_row = static_cast<std::size_t>(points_.d) * sizeof(T) + 3 * sizeof(double);
    FirstFarRows<T> first(FarOrder<T>{points_, 0}, static_cast<std::size_t>(most));
    for (std::int64_t i = 0; i < points_.n; ++i) {
        if (i % rows_per_poll == 0)
            poll(open_.host);
        first.add({squares[static_cast<std::size_t>(i)], i, state_.labels.values[static_cast<std::size_t>(i)]});
    }
    check_message(session_.cpu().get(), first.rows().size() * bytes_of_row);
    return pack<T>(points_, 0, first.rows());
}

template std::vector<char> Share::farthest<float>(std::int64_t);
template std::vector<char> Share::farthest<double>(std::int64_t);

} // namespace pgkm::nodes
