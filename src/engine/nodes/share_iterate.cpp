// share_iterate.cpp - iterations of one server's rows, and the rows that may fill empty clusters.
//
// A CPU goes on from the iteration before, with its bounds and sums. A device begins anew each time.
#include "engine/nodes/share.hpp"

#include <algorithm>

#include "backend/host.hpp"
#include "backend/peers.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/fit/iteration.hpp"
#include "cpu/for_problems.hpp"
#include "engine/nodes/seeding.hpp"
#include "numeric/thread_pool.hpp"

namespace pgkm::nodes {
namespace {

constexpr std::int64_t rows_per_poll = 1 << 14;

// Lloyd's iterations on the CPU, from one request to the next.
template <typename T>
struct KeptIteration {
    KeptIteration(cpu::Data &data, const PgkmProblem &problem, std::int32_t *labels)
        : k(problem.k), iteration(data, is_small(data, problem) ? alone : data.context.pool, problem,
                                  cpu::Purpose::iterations, labels)
    {
    }
    static bool is_small(const cpu::Data &data, const PgkmProblem &problem)
    {
        return static_cast<double>(problem.n_rows) * problem.k * data.points.d < cpu::small_work;
    }

    std::int32_t k;
    ThreadPool alone{1};
    cpu::Iteration<T> iteration;
};

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

template <typename T>
bool Share::iterate(Call &call, bool first)
{
    require_shape(call.function == Function::assign && call.assignments->totals != nullptr &&
                  call.assignments->masses != nullptr);
    if (first && state_.seeding != nullptr) // until the next restart
        static_cast<Seeding<T> *>(state_.seeding.get())->rest();
    cpu::Data *const data = state_.passing ? nullptr : cpu_data(session_);
    const bool changed = data == nullptr ? assign_rows<T>(call, first) : go_on<T>(*data, call, first);
    state_.centroids = centroids_of(*call.problems, shape_of(points_));
    return changed;
}

// Whether a label changed; where they are not kept, true.
template <typename T>
bool Share::assign_rows(Call &call, bool first)
{
    LargeArray<std::int32_t> labels(state_.passing ? 0 : static_cast<std::size_t>(points_.n));
    call.assignments->labels = labels.empty() ? nullptr : labels.data();
    session_.run(call);
    call.assignments->labels = nullptr;
    const bool changed = first || state_.passing || labels != state_.labels;
    state_.labels = std::move(labels);
    state_.kept = nullptr;
    return changed;
}

// The same with the bounds and sums of the last iteration, unless that is not the one before.
template <typename T>
bool Share::go_on(cpu::Data &data, const Call &call, bool first)
{
    const PgkmProblem &problem = *call.problems;
    auto kept = std::static_pointer_cast<KeptIteration<T>>(data.iteration);
    LargeArray<std::int32_t> before; // where nothing is kept
    if (first || kept == nullptr || kept.get() != state_.kept || kept->k != problem.k) {
        kept.reset();
        data.iteration.reset();
        before = std::move(state_.labels);
        state_.labels.assign(static_cast<std::size_t>(points_.n), -1);
        data.iteration = kept = std::make_shared<KeptIteration<T>>(data, problem, state_.labels.data());
    }
    state_.kept = nullptr; // if it fails, nothing goes on from it
    bool changed = kept->iteration.run(static_cast<const T *>(problem.centroids));
    if (!first && !before.empty())
        changed = before != state_.labels;
    state_.kept = kept.get();
    const cpu::ClusterSums<T> &sums = kept->iteration.sums();
    std::transform(sums.totals().begin(), sums.totals().end(), call.assignments->totals, split);
    std::transform(sums.masses().begin(), sums.masses().end(), call.assignments->masses, split);
    return changed;
}

// The `most` first rows in FarOrder.
template <typename T>
std::vector<char> Share::farthest(std::int64_t most)
{
    require_shape(most >= 1);
    if (state_.passing)
        state_.labels.resize(static_cast<std::size_t>(points_.n));
    Centroids &last = state_.centroids;
    if (last.k < 1 || state_.labels.size() != static_cast<std::size_t>(points_.n))
        throw Error(PGKM_INVALID, "a node was asked for the farthest rows before an iteration");
    LargeArray<double> squares(static_cast<std::size_t>(points_.n));
    PgkmAssignment wanted = {};
    wanted.labels = state_.passing ? state_.labels.data() : nullptr;
    wanted.distances = squares.data();
    session_.assign(points_.n, last.k, last.values.data(), wanted);

    const std::size_t bytes_of_row = static_cast<std::size_t>(points_.d) * sizeof(T) + 3 * sizeof(double);
    FirstFarRows<T> first(FarOrder<T>{points_, 0}, static_cast<std::size_t>(most));
    for (std::int64_t i = 0; i < points_.n; ++i) {
        if (i % rows_per_poll == 0)
            poll(open_.host);
        first.add({squares[static_cast<std::size_t>(i)], i, state_.labels[static_cast<std::size_t>(i)]});
    }
    check_message(session_.cpu().get(), first.rows().size() * bytes_of_row);
    return pack<T>(points_, 0, first.rows());
}

template bool Share::iterate<float>(Call &, bool);
template bool Share::iterate<double>(Call &, bool);
template std::vector<char> Share::farthest<float>(std::int64_t);
template std::vector<char> Share::farthest<double>(std::int64_t);

} // namespace pgkm::nodes
