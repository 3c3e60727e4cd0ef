// algorithm.cpp - a request from its check to its models.
#include "engine/job/algorithm.hpp"

#include <algorithm>
#include <cmath>

#include "engine/job/resident.hpp"
#include "engine/nodes/nodes.hpp"
#include "engine/nodes/seeder.hpp"
#include "engine/nodes/stream.hpp"

namespace pgkm {
namespace {

std::uint64_t to_bytes(double bytes)
{
    return bytes < 1e19 ? static_cast<std::uint64_t>(bytes) : UINT64_MAX;
}

// What brings a group's rows together with those of others.
double copied_bytes(const PgkmRequest &request, const PgkmGroup &group)
{
    const auto row = static_cast<double>(pgkm_row_bytes(request.points.element, request.points.d));
    return static_cast<double>(group.n) * (row + (group.weights == nullptr ? 0.0 : 8.0));
}

void check(const Algorithm &algorithm, const PgkmRequest &request)
{
    for (const PgkmGroup &group : groups_of(request)) {
        if (group.n < (algorithm.without_rows ? 0 : 1) || request.points.d < 1)
            throw Error(PGKM_INVALID, "there are no rows to fit");
        check_group(algorithm, request, group);
    }
    const std::uint64_t need = estimate_of(algorithm, request), limit = request.settings.memory_limit;
    if (limit != 0 && need > limit)
        throw Error(PGKM_LIMIT, std::string(algorithm.name) + " of " + std::to_string(request.points.d) +
                                    " features needs an estimated " + std::to_string(need / 1024) +
                                    " kB, more than is left of pg_kmeans.memory_limit (" +
                                    std::to_string(limit / 1024) + " kB)");
}

// In the place where the rows stay, or in one of its own.
std::unique_ptr<Models> fit_on(const BackendChoice &choice, const PgkmOpen &open, const Algorithm &algorithm,
                               const PgkmRequest &request, Monitor &monitor)
{
    if (is_spread(request)) {
        PgkmContext *const all = nodes::open_nodes(request, choice, open);
        Workplace place(nodes::nodes_choice(), all, open.threads, [all] { return nodes::cpu_of(all); });
        monitor.enter(PGKM_LOADING);
        return algorithm.fit(request, &place, monitor);
    }
    if (request.resident == nullptr || request.n_groups > 0) {
        Workplace place(choice, open);
        monitor.enter(PGKM_LOADING);
        return algorithm.fit(request, &place, monitor);
    }
    PgkmResident &resident = *request.resident;
    resident.relay.lead_to(&monitor);
    std::unique_ptr<Models> models;
    try {
        Workplace &place = resident.workplace(choice, open);
        monitor.enter(PGKM_LOADING);
        models = algorithm.fit(request, &place, monitor);
    } catch (...) { // after a failure the backends' contexts are not to be trusted
        resident.drop();
        resident.relay.lead_to(nullptr);
        throw;
    }
    resident.relay.lead_to(nullptr);
    return models;
}

} // namespace

void check_group(const Algorithm &algorithm, const PgkmRequest &request, const PgkmGroup &group)
{
    if (request.points.element == PGKM_BIT && request.algorithm != PGKM_KMEANS)
        throw Error(PGKM_UNSUPPORTED, "bits are features of k-means with metric hamming alone");
    algorithm.check(request, group);
}

std::vector<PgkmGroup> groups_of(const PgkmRequest &request)
{
    if (request.n_groups > 0)
        return {request.groups, request.groups + request.n_groups};
    std::int64_t n = request.points.n;
    for (std::int64_t i = 0; i < request.n_nodes; ++i)
        n += request.nodes[i].n;
    if (request.stream != nullptr)
        n += request.stream->n;
    return {{request.points.values, request.points.weights, n, request.k}};
}

std::int64_t rows_of_sums(const PgkmRequest &request, const PgkmGroup &group)
{
    return request.stream == nullptr ? group.n : request.stream->n;
}

Work work_of(const Algorithm &algorithm, const PgkmRequest &request)
{
    Work all = {};
    for (const PgkmGroup &group : groups_of(request)) {
        const Work work = algorithm.work(request, group);
        all.shared += work.shared;
        all.most += work.most;
        all.at_home = all.at_home || work.at_home;
        if (request.n_nodes == 0) // else most rows are elsewhere
            all.devices = std::max(all.devices, work.devices);
    }
    return all;
}

std::int32_t threads_of(const PgkmRequest &request, const Work &work)
{
    const Work lasting = {INFINITY, INFINITY};
    return useful_threads(request.settings, request.resident == nullptr ? work : lasting);
}

std::uint64_t estimate_of(const Algorithm &algorithm, const PgkmRequest &request)
{
    double bytes = 0.0, rows = 0.0;
    for (PgkmGroup group : groups_of(request)) {
        const std::int64_t k = sweep_last(request, group);
        if (is_spread(request))
            bytes += nodes::bytes_of_draws(group.n, k, request.points.d);
        if (request.stream != nullptr)
            group.n = std::min(group.n, request.stream->most);
        else if (request.n_nodes > 0) // the others' memory is theirs, but there are as many clusters
            group.n = std::max(request.points.n, std::min(group.n, k));
        bytes += algorithm.group_bytes(request, group) + (request.n_groups > 0 ? copied_bytes(request, group) : 0.0);
        rows += static_cast<double>(group.n);
    }
    return to_bytes(bytes + algorithm.fixed_bytes(request, rows));
}

std::uint64_t estimate_of(const Algorithm &algorithm, const PgkmRequest &request, const PgkmGroup &group)
{
    return to_bytes(algorithm.group_bytes(request, group) + copied_bytes(request, group));
}

Outcome run_request(const Algorithm &algorithm, const PgkmRequest &request, Monitor &monitor)
{
    check(algorithm, request);
    Outcome outcome;
    if (has_rows(request)) {
        const Work work = work_of(algorithm, request);
        on_first_backend(request.settings, work, &outcome.notice, [&](const BackendChoice &choice) {
            PgkmError error = {};
            if (algorithm.supported != nullptr && algorithm.supported(request, *choice.table, &error) != PGKM_OK)
                throw Error(error);
            const BackendChoice used = request.n_nodes > 0 ? nodes::nodes_choice() : choice;
            monitor.begin_backend(used.table->name);
            const PgkmOpen open = open_options(request, threads_of(request, work), monitor.host());
            outcome.models = fit_on(choice, open, algorithm, request, monitor);
            outcome.backend = used.table->name;
        });
    } else {
        outcome.models = algorithm.fit(request, nullptr, monitor);
    }
    outcome.models->finish(monitor);
    return outcome;
}

} // namespace pgkm
