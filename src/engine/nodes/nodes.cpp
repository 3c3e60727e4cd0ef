// nodes.cpp - the functions of the table: each asks all servers, or chunks, and merges what they answer.
#include "engine/nodes/nodes.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "backend/peers.hpp"
#include "engine/nodes/node_set.hpp"
#include "engine/nodes/seeder.hpp"
#include "numeric/contract.hpp"

namespace pgkm::nodes {
namespace {

NodeSet &self(PgkmData *data)
{
    return *reinterpret_cast<NodeSet *>(data);
}
// --- ranges and moments ---

// The least values, the greatest, and the largest weight.
template <typename T>
std::vector<double> find_ranges(NodeSet &nodes)
{
    const auto d = static_cast<std::size_t>(nodes.points().d);
    std::vector<double> all(d, HUGE_VAL);
    all.resize(2 * d + 1, -HUGE_VAL);
    nodes.ask<Operation::ranges, T>([&](const std::vector<double> &own) {
        require_shape(own.size() == all.size());
        check_values(own.data(), own.size());
        for (std::size_t i = 0; i < all.size(); ++i)
            all[i] = i < d ? std::min(all[i], own[i]) : std::max(all[i], own[i]);
    });
    return all;
}

template <typename T>
void summarise(NodeSet &nodes, bool want_moments, PgkmSummary &out)
{
    const auto d = static_cast<std::size_t>(nodes.points().d);
    const std::vector<double> ranges = find_ranges<T>(nodes);
    std::copy_n(ranges.begin(), d, out.min);
    std::copy_n(ranges.begin() + nodes.points().d, d, out.max);
    out.max_weight = ranges.back();
    if (!want_moments)
        return;
    std::vector<Int128> sums(2 * d, 0);
    nodes.ask<Operation::moments, T>(
        [&](const std::vector<PgkmInt128> &own) {
            require_shape(own.size() == sums.size());
            for (std::size_t i = 0; i < own.size(); ++i)
                add_told(sums[i], own[i]);
        },
        ranges);
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
    const bool changed = nodes.call(call, first ? Iteration::first : Iteration::next);
    std::transform(totals.begin(), totals.end(), sums.totals.begin(), join);
    std::transform(masses.begin(), masses.end(), sums.masses.begin(), join);
    return changed;
}

template <typename T>
std::vector<FarRow> ask_farthest(NodeSet &nodes, std::int32_t k, std::size_t most, FarRows<T> &far)
{
    far.clear();
    nodes.ask<Operation::farthest, T>(
        [&](const std::vector<char> &own) {
            unpack(own.data(), own.size(), k, far);
            far.keep(most);
        },
        static_cast<std::int64_t>(most));
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
            relocate_by_farthest<T>(
                far.points(), among, sums.masses,
                [&](std::size_t most) { return ask_farthest(nodes, problem.k, most, far); }, move_within<T>(sums));
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

template <typename T>
void run(NodeSet &nodes, const Call &call)
{
    PgkmProblem &problem = *call.problems;
    const bool labels =
        call.function == Function::assign
            ? call.assignments->labels != nullptr || call.assignments->distances != nullptr
            : call.function == Function::em_step && (call.mixtures->labels != nullptr || call.sums->labels != nullptr);
    if (call.n_problems != 1 || labels)
        throw Error(PGKM_UNSUPPORTED, "rows that are not all here are one problem, and labels stay with them");
    if (nodes.chunks() != nullptr && nodes.chunks()->call_by_entries(call))
        return;
    switch (call.function) {
    case Function::summarise:
        return summarise<T>(nodes, call.want_moments != 0, *call.summaries);
    case Function::seed:
        return seed<T>(nodes, problem, call.seed);
    case Function::fit:
        return fit_problem<T>(nodes, problem, call.fit);
    default:
        nodes.call(call, Iteration::none);
    }
}

PgkmStatus table_run(PgkmData *data, Call call, PgkmError *error)
{
    if (call.function == Function::reduce)
        return set_error(error, PGKM_UNSUPPORTED, "a reduction needs all rows on one server");
    return guarded(error, [&] {
        with_element(self(data).points(), [&](auto element) { run<decltype(element)>(self(data), call); });
    });
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

std::shared_ptr<PgkmContext> cpu_of(PgkmContext *nodes)
{
    return reinterpret_cast<NodeSet *>(nodes)->cpu();
}

void transform(PgkmData *data, const std::vector<double> &center, const std::vector<double> &scale, PgkmMetric metric)
{
    NodeSet &nodes = self(data);
    with_element(nodes.points(), [&](auto element) {
        nodes.ask<Operation::transform, decltype(element)>([](Nothing) {}, center, scale,
                                                           static_cast<std::int32_t>(metric));
    });
}

std::vector<double> cluster_sums(PgkmData *data, const std::vector<double> &centroids, std::int32_t k,
                                 const std::vector<double> &means)
{
    std::vector<double> sums(static_cast<std::size_t>(k) + 2);
    const auto add = [&](const std::vector<double> &own) {
        require_shape(own.size() == sums.size());
        check_sums(own.data(), own.size());
        std::transform(own.begin(), own.end(), sums.begin(), sums.begin(), std::plus<>());
    };
    NodeSet &nodes = self(data);
    with_element(nodes.points(), [&](auto element) {
        nodes.ask<Operation::cluster_sums, decltype(element)>(add, k, centroids, means);
    });
    return sums;
}

} // namespace pgkm::nodes
