// nodes.cpp - the functions of the table: each asks all servers, or chunks, and merges what they answer.
#include "engine/nodes/nodes.hpp"

#include <algorithm>
#include <cmath>

#include "backend/peers.hpp"
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
NodeSet &self(PgkmContext *context)
{
    return *reinterpret_cast<NodeSet *>(context);
}

template <typename Body>
void with_element(const NodeSet &nodes, Body &&body)
{
    if (nodes.points().element == PGKM_FLOAT32)
        body(float{});
    else
        body(double{});
}

void require_one(std::int64_t n_problems)
{
    if (n_problems != 1)
        throw Error(PGKM_UNSUPPORTED, "rows that are not all here are one problem");
}

Call call_of(Function function, PgkmProblem &problem)
{
    Call call = {};
    call.function = function;
    call.n_problems = 1;
    call.problems = &problem;
    return call;
}

// Asks all servers for a call, and adds up what they have found. put() and get() write what else a request has, and
// read what comes before that in an answer.
template <typename Put, typename Get>
void sum_up(NodeSet &nodes, Operation operation, Call &call, Put &&put, Get &&get)
{
    const RowShape rows = {nodes.n(), nodes.points().d, nodes.points().element};
    Writer request(operation);
    MessageFields writer(Leg::write_call, rows, request);
    fields(writer, call);
    put(request);
    bool first = true;
    nodes.ask(request, [&](Reader &reply) {
        get(reply);
        MessageFields adder(Leg::read_results, rows, reply, first);
        fields(adder, call);
        first = false;
    });
}
void sum_up(NodeSet &nodes, Operation operation, Call &call)
{
    sum_up(
        nodes, operation, call, [](Writer &) {}, [](Reader &) {});
}

void add_to(std::vector<Int128> &totals, const std::vector<PgkmInt128> &own)
{
    for (std::size_t i = 0; i < own.size(); ++i)
        totals[i] += join(own[i]);
}

// --- ranges and moments ---

void find_ranges(NodeSet &nodes, PgkmSummary &out)
{
    const auto d = static_cast<std::size_t>(nodes.points().d);
    bool first = true;
    nodes.ask(Writer(Operation::ranges), [&](Reader &reply) {
        const std::vector<double> min = reply.get_all<double>(d), max = reply.get_all<double>(d);
        const auto max_weight = reply.get<double>();
        check_values(min.data(), d);
        check_values(max.data(), d);
        check_values(&max_weight, 1);
        for (std::size_t f = 0; f < d; ++f) {
            out.min[f] = first ? min[f] : std::min(out.min[f], min[f]);
            out.max[f] = first ? max[f] : std::max(out.max[f], max[f]);
        }
        out.max_weight = first ? max_weight : std::max(out.max_weight, max_weight);
        first = false;
    });
}

void find_moments(NodeSet &nodes, PgkmSummary &out)
{
    const auto d = static_cast<std::size_t>(nodes.points().d);
    Writer request(Operation::moments);
    request.put(out.min, d);
    request.put(out.max, d);
    std::vector<Int128> sums(d, 0), squares(d, 0);
    nodes.ask(request, [&](Reader &reply) {
        add_to(sums, reply.get_all<PgkmInt128>(d));
        add_to(squares, reply.get_all<PgkmInt128>(d));
    });
    for (std::size_t f = 0; f < d; ++f) {
        const Moments moments = moments_of(moment_scale(out.min[f], out.max[f]), sums[f], squares[f], nodes.n());
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
    Call call = call_of(Function::assign, problem);
    call.assignments = &wanted;
    bool changed = false;
    sum_up(
        nodes, Operation::iterate, call, [&](Writer &request) { request.put(static_cast<std::uint8_t>(first)); },
        [&](Reader &reply) { changed = reply.get<std::uint8_t>() != 0 || changed; });
    std::transform(totals.begin(), totals.end(), sums.totals.begin(), join);
    std::transform(masses.begin(), masses.end(), sums.masses.begin(), join);
    return changed;
}

template <typename T>
std::vector<FarRow> ask_farthest(NodeSet &nodes, std::int32_t k, std::size_t most, FarRows<T> &far)
{
    Writer request(Operation::farthest);
    request.put(static_cast<std::int64_t>(most));
    const auto d = static_cast<std::size_t>(far.points().d);
    far.clear();
    nodes.ask(request, [&](Reader &reply) {
        const std::vector<double> squares = reply.get_all<double>();
        const std::vector<std::int32_t> labels = reply.get_all<std::int32_t>(squares.size());
        const std::vector<double> weights = reply.get_all<double>(squares.size());
        const std::vector<T> values = reply.get_all<T>(squares.size() * d);
        check_values(values.data(), values.size());
        for (std::size_t i = 0; i < squares.size(); ++i) {
            if (!(squares[i] > 0.0 && std::isfinite(squares[i])) || labels[i] < 0 || labels[i] >= k ||
                !(weights[i] >= 0.0 && weights[i] <= max_magnitude))
                raise_shape();
            far.add(squares[i], labels[i], weights[i], values.data() + i * d);
        }
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

void assign_problem(NodeSet &nodes, PgkmProblem problem, PgkmAssignment &out)
{
    if (out.labels != nullptr || out.distances != nullptr || out.totals != nullptr)
        throw Error(PGKM_UNSUPPORTED, "labels stay where the rows are");
    Call call = call_of(Function::assign, problem);
    call.assignments = &out;
    sum_up(nodes, Operation::assign, call);
}

// --- sums in float64, of PCA and mixtures ---

void sum_cross(NodeSet &nodes, PgkmMoments &out)
{
    PgkmProblem problem = {};
    Call call = call_of(Function::moments, problem);
    call.moments = &out;
    sum_up(nodes, Operation::cross, call);
}

void sum_mixture(NodeSet &nodes, PgkmMixture mixture, PgkmMixtureSums &out)
{
    if (mixture.labels != nullptr || out.labels != nullptr)
        throw Error(PGKM_UNSUPPORTED, "labels of several servers stay there");
    PgkmProblem problem = {};
    Call call = call_of(Function::em_step, problem);
    call.mixtures = &mixture;
    call.sums = &out;
    sum_up(nodes, Operation::em_step, call);
}

// --- the table ---

PgkmStatus table_probe(PgkmDevice *, std::int32_t, std::int32_t *count, PgkmError *error)
{
    *count = 0;
    return set_error(error, PGKM_OK, "");
}

const char *const *table_strategies(const char *)
{
    static const char *const none[] = {nullptr};
    return none;
}

PgkmStatus table_open(const PgkmOpen *, PgkmContext **context, PgkmError *error)
{
    *context = nullptr;
    return set_error(error, PGKM_UNSUPPORTED, "several servers are opened by open_nodes()");
}

void table_close(PgkmContext *context)
{
    delete reinterpret_cast<NodeSet *>(context);
}

PgkmStatus table_load(PgkmContext *context, const PgkmPoints *points, PgkmData **data, PgkmError *error)
{
    *data = nullptr;
    return guarded(error, [&] {
        self(context).load(*points);
        *data = reinterpret_cast<PgkmData *>(context);
    });
}

void table_unload(PgkmData *) {} // rows stay with their servers until these are told, or the connection ends

PgkmStatus table_summarise(PgkmData *data, const PgkmProblem *, std::int64_t n_problems, std::int32_t want_moments,
                           PgkmSummary *summaries, PgkmError *error)
{
    return guarded(error, [&] {
        require_one(n_problems);
        find_ranges(self(data), summaries[0]);
        if (want_moments != 0)
            find_moments(self(data), summaries[0]);
    });
}

PgkmStatus table_seed(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams *params,
                      PgkmError *error)
{
    return guarded(error, [&] {
        require_one(n_problems);
        with_element(self(data), [&](auto element) { seed<decltype(element)>(self(data), problems[0], *params); });
    });
}

PgkmStatus table_fit(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params,
                     PgkmError *error)
{
    return guarded(error, [&] {
        require_one(n_problems);
        with_element(self(data),
                     [&](auto element) { fit_problem<decltype(element)>(self(data), problems[0], *params); });
    });
}

PgkmStatus table_assign(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                        PgkmAssignment *assignments, PgkmError *error)
{
    return guarded(error, [&] {
        require_one(n_problems);
        assign_problem(self(data), problems[0], assignments[0]);
    });
}

PgkmStatus table_moments(PgkmData *data, const PgkmProblem *, std::int64_t n_problems, PgkmMoments *moments,
                         PgkmError *error)
{
    return guarded(error, [&] {
        require_one(n_problems);
        sum_cross(self(data), moments[0]);
    });
}

PgkmStatus table_em_step(PgkmData *data, const PgkmProblem *, std::int64_t n_problems, const PgkmMixture *mixtures,
                         PgkmMixtureSums *sums, PgkmError *error)
{
    return guarded(error, [&] {
        require_one(n_problems);
        sum_mixture(self(data), mixtures[0], sums[0]);
    });
}

PgkmStatus table_reduce(PgkmData *, const PgkmProblem *, std::int64_t, const PgkmReduction *, PgkmReduced *,
                        PgkmError *error)
{
    return set_error(error, PGKM_UNSUPPORTED, "a reduction needs all rows on one server");
}

} // namespace

BackendChoice nodes_choice()
{
    static const PgkmBackend table = {PGKM_BACKEND_ABI, sizeof(PgkmBackend), "nodes",       table_probe,
                                      table_strategies, table_open,          table_close,   table_load,
                                      table_unload,     table_summarise,     table_seed,    table_fit,
                                      table_assign,     table_moments,       table_em_step, table_reduce};
    return {&table, -1, 0};
}

PgkmContext *open_nodes(const PgkmRequest &request, const BackendChoice &choice, const PgkmOpen &open)
{
    return reinterpret_cast<PgkmContext *>(new NodeSet(request, choice, open));
}

void transform(PgkmData *data, const std::vector<double> &center, const std::vector<double> &scale, PgkmMetric metric)
{
    Writer request(Operation::transform);
    request.put(center);
    request.put(scale);
    request.put(static_cast<std::int32_t>(metric));
    self(data).ask(request);
}

} // namespace pgkm::nodes
