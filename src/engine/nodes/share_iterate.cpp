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
// From so many on, iterations make entries of rows that were not seeded.
constexpr std::int32_t clusters_worth = 13;

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
    if (first && call.problems->k >= clusters_worth)
        find_entries();
    if (!first && state_.labels.values.empty() && state_.centroids.k > 0 && !state_.passing) // they went with entries
        state_.labels = {labels(state_.centroids)};
    cpu::Data *const data = state_.passing              ? nullptr
                            : state_.entries != nullptr ? &state_.entries->data
                                                        : cpu_data(session_);
    PgkmProblem own = *call.problems;
    own.n_rows = data == nullptr ? own.n_rows : data->points.n;
    const bool changed = data == nullptr ? assign_rows(call, first)
                                         : cpu::iterate_on(*data, own, first, state_.labels, *call.assignments);
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
    const cpu::Data *const entries = state_.entries == nullptr ? nullptr : &state_.entries->data;
    const PgkmPoints &points = entries == nullptr ? points_ : entries->points;
    const auto n = static_cast<std::size_t>(points.n);
    Centroids &last = state_.centroids;
    if (last.k < 1)
        throw Error(PGKM_INVALID, "a node was asked for the farthest rows before an iteration");
    LargeArray<double> squares(n);
    PgkmAssignment wanted = {};
    if (state_.labels.values.size() != n) { // of a chunk, or they went with entries
        state_.labels = {LargeArray<std::int32_t>(n)};
        wanted.labels = state_.labels.values.data();
    }
    wanted.distances = squares.data();
    assign(last.k, last.values.data(), wanted);

    const std::size_t bytes_of_row = static_cast<std::size_t>(points_.d) * sizeof(T) + 3 * sizeof(double);
    const FarOrder<T> order = {points, 0};
    FirstFarRows<T> first(order, static_cast<std::size_t>(most));
    for (std::size_t i = 0; i < n; ++i) {
        if (i % rows_per_poll == 0)
            poll(open_.host);
        first.add({squares[i], static_cast<std::int64_t>(i), state_.labels.values[i],
                   entries == nullptr ? 1 : entries->counts[i]});
    }
    std::vector<FarRow> found = first.rows(), far; // far: with their copies
    std::sort(found.begin(), found.end(), order);
    for (const FarRow &row : found)
        far.insert(far.end(),
                   std::min(static_cast<std::size_t>(row.copies), static_cast<std::size_t>(most) - far.size()), row);
    check_message(session_.cpu().get(), far.size() * bytes_of_row);
    return pack<T>(points, 0, far);
}

template std::vector<char> Share::farthest<float>(std::int64_t);
template std::vector<char> Share::farthest<double>(std::int64_t);

} // namespace pgkm::nodes
