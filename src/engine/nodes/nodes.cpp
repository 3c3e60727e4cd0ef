// nodes.cpp - the functions of the table: each asks all servers, or chunks, and merges what they answer.
#include "engine/nodes/nodes.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "backend/peers.hpp"
#include "backend/shares.hpp"
#include "engine/nodes/fields.hpp"
#include "engine/nodes/node_set.hpp"
#include "engine/nodes/seeder.hpp"
#include "numeric/contract.hpp"

namespace pgkm::nodes {
namespace {

NodeSet &self(PgkmData *data)
{
    return *reinterpret_cast<NodeSet *>(data);
}
// Asks all servers for a call, and adds up what they have found. get() reads what comes before that in an answer.
template <typename... More>
void sum_up(
    NodeSet &nodes, Operation operation, Call call, const Merge &get = [](Reader &) {}, const More &...more)
{
    const RowShape rows = {nodes.n(), nodes.points().d, nodes.points().element};
    Writer request(operation);
    if (operation == Operation::call)
        request.put(call.function);
    MessageFields writer(Leg::write_call, rows, request);
    fields(writer, call);
    (request.put(more), ...);
    bool first = true;
    nodes.ask(request, [&](Reader &reply) {
        get(reply);
        ShareCall own(call, rows, 0, false);
        MessageFields reader(Leg::read_results, rows, reply);
        fields(reader, own.room.call);
        Results(rows).give(own, call, first);
        first = false;
    });
}

// --- ranges and moments ---

// The least values, the greatest, and the largest weight.
std::vector<double> find_ranges(NodeSet &nodes)
{
    const auto d = static_cast<std::size_t>(nodes.points().d);
    std::vector<double> all(d, HUGE_VAL);
    all.resize(2 * d + 1, -HUGE_VAL);
    nodes.ask<std::vector<double>>(Writer(Operation::ranges), [&](const std::vector<double> &own) {
        require_shape(own.size() == all.size());
        check_values(own.data(), own.size());
        for (std::size_t i = 0; i < all.size(); ++i)
            all[i] = i < d ? std::min(all[i], own[i]) : std::max(all[i], own[i]);
    });
    return all;
}

void summarise(NodeSet &nodes, bool want_moments, PgkmSummary &out)
{
    const auto d = static_cast<std::size_t>(nodes.points().d);
    const std::vector<double> ranges = find_ranges(nodes);
    std::copy_n(ranges.begin(), d, out.min);
    std::copy_n(ranges.begin() + nodes.points().d, d, out.max);
    out.max_weight = ranges.back();
    if (!want_moments)
        return;
    std::vector<Int128> sums(2 * d, 0);
    nodes.ask<std::vector<PgkmInt128>>(Writer(Operation::moments, ranges), [&](const auto &own) {
        require_shape(own.size() == sums.size());
        for (std::size_t i = 0; i < own.size(); ++i)
            sums[i] += join(own[i]);
    });
    for (std::size_t f = 0; f < d; ++f) {
        const Moments moments =
            moments_of(moment_scale(out.min[f], out.max[f]), sums[2 * f], sums[2 * f + 1], nodes.n());
        out.mean[f] = moments.mean;
        out.variance[f] = moments.variance;
    }
}

// --- iterations ---

// Sums of all rows under the problem's centroids. Whether a label changed since the last iteration.
bool iterate(NodeSet &nodes, PgkmProblem problem, bool first, Sums &sums)
{
    sums.reset(problem.k, nodes.points().d);
    std::vector<PgkmInt128> totals(sums.totals.size()), masses(sums.masses.size());
    PgkmAssignment wanted = {};
    wanted.totals = totals.data();
    wanted.masses = masses.data();
    Call call = {};
    call.function = Function::assign;
    call.n_problems = 1;
    call.problems = &problem;
    call.assignments = &wanted;
    bool changed = false;
    sum_up(
        nodes, Operation::iterate, call, [&](Reader &reply) { changed = reply.get<std::uint8_t>() != 0 || changed; },
        static_cast<std::uint8_t>(first));
    std::transform(totals.begin(), totals.end(), sums.totals.begin(), join);
    std::transform(masses.begin(), masses.end(), sums.masses.begin(), join);
    return changed;
}

template <typename T>
std::vector<FarRow> ask_farthest(NodeSet &nodes, std::int32_t k, std::size_t most, FarRows<T> &far)
{
    far.clear();
    const Writer request(Operation::farthest, static_cast<std::int64_t>(most));
    nodes.ask<std::vector<char>>(request, [&](const std::vector<char> &own) {
        unpack(own.data(), own.size(), k, far);
        far.keep(most);
    });
    return far.first(most);
}

template <typename T>
void fit_problem(NodeSet &nodes, PgkmProblem &problem, const PgkmFitParams &params)
{
    const std::int32_t d = nodes.points().d;
    problem.n_iter = 0;
    problem.converged = 0;
    problem.shift = 0.0;
    Sums sums;
    std::vector<Int128> masses; // of the iteration before
    while (problem.n_iter < params.max_iter && problem.converged == 0) {
        bool changed = iterate(nodes, problem, problem.n_iter == 0, sums);
        if (has_empty_cluster(sums)) {
            // Of chunks no labels are kept. Where none has changed, centroids rest, but for those that are relocated.
            if (nodes.chunks() != nullptr && masses == sums.masses)
                changed = nodes.chunks()->labels_have_changed();
            masses = sums.masses;
            FarRows<T> far(nodes.points());
            PgkmProblem among = problem;
            among.first_row = 0;
            relocate_by_farthest<T>(far.points(), among, sums,
                                    [&](std::size_t most) { return ask_farthest(nodes, problem.k, most, far); });
        }
        problem.shift = update_centroids<T>(problem, d, params.metric, sums);
        ++problem.n_iter;
        problem.converged = !changed || problem.shift <= problem.tol;
        nodes.report("iterating", problem.n_iter, problem.shift);
    }
}

// --- the table ---

void table_close(PgkmContext *context)
{
    delete reinterpret_cast<NodeSet *>(context);
}

PgkmStatus table_load(PgkmContext *context, const PgkmPoints *points, PgkmData **data, PgkmError *error)
{
    *data = nullptr;
    return guarded(error, [&] {
        reinterpret_cast<NodeSet *>(context)->load(*points);
        *data = reinterpret_cast<PgkmData *>(context);
    });
}

void table_unload(PgkmData *) {} // rows stay with their servers until these are told, or the connection ends

void run(NodeSet &nodes, const Call &call)
{
    PgkmProblem &problem = *call.problems;
    const bool labels =
        call.function == Function::assign
            ? call.assignments->labels != nullptr || call.assignments->distances != nullptr
            : call.function == Function::em_step && (call.mixtures->labels != nullptr || call.sums->labels != nullptr);
    if (call.n_problems != 1 || labels)
        throw Error(PGKM_UNSUPPORTED, "rows that are not all here are one problem, and labels stay with them");
    switch (call.function) {
    case Function::summarise:
        return summarise(nodes, call.want_moments != 0, *call.summaries);
    case Function::seed:
        return cpu::with_element(nodes.points(),
                                 [&](auto element) { seed<decltype(element)>(nodes, problem, call.seed); });
    case Function::fit:
        return cpu::with_element(nodes.points(),
                                 [&](auto element) { fit_problem<decltype(element)>(nodes, problem, call.fit); });
    default:
        return sum_up(nodes, Operation::call, call);
    }
}

PgkmStatus table_run(PgkmData *data, Call call, PgkmError *error)
{
    if (call.function == Function::reduce)
        return set_error(error, PGKM_UNSUPPORTED, "a reduction needs all rows on one server");
    return guarded(error, [&] { run(self(data), call); });
}

} // namespace

BackendChoice nodes_choice()
{
    static const PgkmBackend table = CallTable<table_run>::table("nodes", table_close, table_load, table_unload);
    return {&table, -1, 0};
}

PgkmContext *open_nodes(const PgkmRequest &request, const BackendChoice &choice, const PgkmOpen &open)
{
    return reinterpret_cast<PgkmContext *>(new NodeSet(request, choice, open));
}

void transform(PgkmData *data, const std::vector<double> &center, const std::vector<double> &scale, PgkmMetric metric)
{
    self(data).ask(Writer(Operation::transform, center, scale, static_cast<std::int32_t>(metric)));
}

std::vector<double> cluster_sums(PgkmData *data, const std::vector<double> &centroids, std::int32_t k,
                                 const std::vector<double> &means)
{
    std::vector<double> sums(means.empty() ? centroids.size() + static_cast<std::size_t>(k)
                                           : static_cast<std::size_t>(k) + 2);
    self(data).ask<std::vector<double>>(Writer(Operation::cluster_sums, k, centroids, means), [&](const auto &own) {
        require_shape(own.size() == sums.size());
        std::transform(own.begin(), own.end(), sums.begin(), sums.begin(), std::plus<>());
    });
    return sums;
}

} // namespace pgkm::nodes
