// tree.cpp - a tree of clusters, from a request to its nodes.
#include <algorithm>
#include <cmath>

#include "engine/kmeans/options.hpp"
#include "engine/kmeans/work.hpp"
#include "engine/tree/grower.hpp"
#include "numeric/error.hpp"

namespace pgkm {

void Tree::get(std::int64_t, PgkmResult *result) const
{
    result->k = nodes();
    result->d = d;
    result->n = n;
    result->n_iter = n_iter;
    result->converged = converged ? 1 : 0;
    result->parents = parents.data();
    result->levels = levels.data();
    result->centroids = centroids.data();
    result->sizes = sizes.data();
    result->within_ss = within_ss.data();
    result->center = data_or_null(center);
    result->scale = data_or_null(scale);
}

namespace {

// Levels in one call.
constexpr std::int32_t most_levels = 8;

// At most.
struct Nodes {
    double all;   // of the tree
    double level; // of what is fitted at once
};

Nodes count_nodes(const PgkmRequest &request, double n)
{
    if (request.n_branches == 0) {
        const double leaves = std::min(static_cast<double>(request.k), n);
        return {2.0 * leaves, 2.0 * leaves};
    }
    Nodes nodes = {1.0, 1.0};
    for (std::int32_t level = 0; level < request.n_branches; ++level) {
        nodes.level = std::min(nodes.level * request.branches[level], n);
        nodes.all += nodes.level;
    }
    return nodes;
}

void check(const PgkmRequest &request, const PgkmGroup &group)
{
    const PgkmOptions &options = request.kmeans;
    if (request.n_groups > 0 || is_spread(request) || centroids_are_given(options) || options.batch_size > 0 ||
        pgkm_bound_given(&options) != nullptr || options.max_radius > 0.0)
        throw Error(PGKM_INVALID, "a tree has neither groups, other servers, given centroids, mini-batches, bounds "
                                  "of sizes nor a radius");
    if (request.n_branches > most_levels)
        throw Error(PGKM_INVALID, "branches must have at most " + std::to_string(most_levels) + " levels");
    for (std::int32_t level = 0; level < request.n_branches; ++level)
        if (request.branches[level] < 2)
            throw Error(PGKM_INVALID, "branches must be at least 2");
    check_options(options, request.n_branches > 0 ? request.branches[0] : group.k, request.points.d);
    if (count_nodes(request, static_cast<double>(group.n)).all > INT32_MAX)
        throw Error(PGKM_LIMIT, "a tree of so many levels may have more than 2147483647 nodes");
}

// All rows are fitted once for each level; bisected, as often as a balanced tree has levels, at most for each leaf.
Work work_of_tree(const PgkmRequest &request, const PgkmGroup &group)
{
    Work all = {};
    const auto add = [&](std::int64_t k, double times) {
        PgkmGroup level = group;
        level.k = k;
        const Work work = work_of_clusters(request, level);
        all.shared += times * work.shared;
        all.most += times * work.most;
    };
    if (request.n_branches == 0)
        add(2, std::ceil(std::log2(static_cast<double>(request.k) + 1.0)));
    for (std::int32_t level = 0; level < request.n_branches; ++level)
        add(request.branches[level], 1.0);
    return all;
}

// The rows of a level with their centroids, their order before and after, and the nodes.
double bytes_of_tree(const PgkmRequest &request, const PgkmGroup &group)
{
    const double n = static_cast<double>(group.n), d = request.points.d;
    const Nodes nodes = count_nodes(request, n);
    PgkmGroup level = group;
    level.k = static_cast<std::int64_t>(nodes.level);
    const double row =
        (request.points.element == PGKM_FLOAT32 ? 4.0 : 8.0) * d + (group.weights == nullptr ? 0.0 : 8.0);
    return bytes_of_clusters(request, level) + n * (row + 24.0) + nodes.all * (24.0 * d + 200.0) + nodes.level * 400.0;
}

std::unique_ptr<Models> fit(const PgkmRequest &request, Workplace *place, Monitor &monitor)
{
    return grow(request, *place, monitor);
}

} // namespace

const Algorithm trees = {"a tree of clusters", check,   work_of_tree, [](const PgkmRequest &, double) { return 1e6; },
                         bytes_of_tree,        nullptr, fit};

} // namespace pgkm
