// grower.cpp - divides nodes into clusters; all that are divided at once are groups of one fit.
//
// Rows keep their order among those of their node, so that a fit of a node is the fit of its rows as they came.
#include "engine/tree/grower.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/kmeans/fitter.hpp"
#include "engine/kmeans/loaded_rows.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

class Grower {
  public:
    Grower(const PgkmRequest &request, Workplace &place, Monitor &monitor)
        : request_(request), place_(place), monitor_(monitor), rows_(rows_in(place, request, request.kmeans, monitor)),
          order_(at(rows_->points().n))
    {
        std::iota(order_.begin(), order_.end(), 0);
    }

    std::unique_ptr<Tree> run()
    {
        plant();
        if (request_.n_branches > 0)
            grow_levels();
        else
            bisect();
        place_.session.unload(); // rows in another order go now
        return std::move(tree_);
    }

  private:
    // Rows order_[first .. first + n).
    struct Range {
        std::int64_t first, n;
    };

    // A bisected leaf that is not divided in the tree yet: its clusters.
    struct Halves {
        Model model; // without labels
        bool known = false;
    };

    void plant()
    {
        tree_->n = rows_->points().n;
        tree_->d = rows_->d();
        FitTask task = task_of({1}, false);
        task.options.n_init = 1;
        const Model root = std::move(fit_loaded(*rows_, task, place_.session, monitor_)[0]);
        tree_->center = root.center;
        tree_->scale = root.scale;
        add(root, -1, {0, root.n});
    }

    // Adds the clusters of a model as children of a node with these rows, which lie in their order.
    void add(const Model &model, std::int32_t parent, Range rows)
    {
        const std::int32_t level = parent < 0 ? 0 : tree_->levels[at(parent)] + 1;
        for (std::int32_t j = 0; j < model.k; ++j) {
            tree_->parents.push_back(parent);
            tree_->levels.push_back(level);
            ranges_.push_back({rows.first, model.sizes[at(j)]});
            rows.first += model.sizes[at(j)];
        }
        tree_->centroids.insert(tree_->centroids.end(), model.centroids.begin(), model.centroids.end());
        tree_->sizes.insert(tree_->sizes.end(), model.sizes.begin(), model.sizes.end());
        tree_->within_ss.insert(tree_->within_ss.end(), model.within_ss.begin(), model.within_ss.end());
        tree_->n_iter = std::max(tree_->n_iter, model.n_iter);
        tree_->converged = tree_->converged && model.converged;
    }

    void grow_levels()
    {
        std::int32_t first = 0;
        for (std::int32_t level = 0; level < request_.n_branches; ++level) {
            std::vector<std::int32_t> nodes(at(tree_->nodes() - first));
            std::iota(nodes.begin(), nodes.end(), first);
            first = tree_->nodes();
            const std::vector<Model> models = divide(nodes, request_.branches[level]);
            for (std::size_t i = 0; i < nodes.size(); ++i)
                add(models[i], nodes[i], ranges_[at(nodes[i])]);
        }
    }

    // The leaf of the most inertia is divided, of several the first. What its halves are does not depend on when they
    // are found: so many leaves are bisected at once, as long as more of them may be wanted.
    void bisect()
    {
        Leaves leaves;
        std::vector<Halves> halves(1);
        enter(leaves, 0);
        for (std::int64_t count = 1; count < request_.k && !leaves.empty();) {
            const std::int32_t node = leaves.begin()->node;
            if (!halves[at(node)].known)
                find_halves(leaves, request_.k - count, halves);
            leaves.erase(leaves.begin());
            if (halves[at(node)].model.k < 2) // its rows are the same to the precision of a centroid
                continue;
            const std::int32_t child = tree_->nodes();
            add(halves[at(node)].model, node, ranges_[at(node)]);
            halves[at(node)].model = Model();
            halves.resize(at(tree_->nodes()));
            enter(leaves, child);
            enter(leaves, child + 1);
            ++count;
        }
    }

    struct Leaf {
        double inertia;
        std::int32_t node;
        bool operator<(const Leaf &other) const
        {
            return inertia != other.inertia ? inertia > other.inertia : node < other.node;
        }
    };
    using Leaves = std::set<Leaf>;

    void enter(Leaves &leaves, std::int32_t node) const
    {
        if (tree_->within_ss[at(node)] > 0.0)
            leaves.insert({tree_->within_ss[at(node)], node});
    }

    void find_halves(const Leaves &leaves, std::int64_t most, std::vector<Halves> &halves)
    {
        std::vector<std::int32_t> nodes;
        for (auto leaf = leaves.begin(); leaf != leaves.end() && static_cast<std::int64_t>(nodes.size()) < most; ++leaf)
            if (!halves[at(leaf->node)].known)
                nodes.push_back(leaf->node);
        std::vector<Model> models = divide(nodes, 2);
        for (std::size_t i = 0; i < nodes.size(); ++i)
            halves[at(nodes[i])] = {std::move(models[i]), true};
    }

    FitTask task_of(const std::vector<std::int64_t> &k, bool want_labels) const
    {
        return {request_.kmeans, k, want_labels, false, request_.settings.memory_limit};
    }

    // Fits k clusters to the rows of each node, and sorts these rows by cluster. Models keep no labels.
    std::vector<Model> divide(const std::vector<std::int32_t> &nodes, std::int64_t k)
    {
        const FitTask task = task_of(std::vector<std::int64_t>(nodes.size(), k), true);
        monitor_.enter(PGKM_LOADING);
        std::vector<Model> models;
        if (ranges_[at(nodes[0])].n == rows_->points().n) { // these are loaded until their node is divided
            models = fit_loaded(*rows_, task, place_.session, monitor_);
        } else {
            std::vector<std::int64_t> order, sizes;
            for (const std::int32_t node : nodes) {
                const auto first = order_.begin() + ranges_[at(node)].first;
                order.insert(order.end(), first, first + ranges_[at(node)].n);
                sizes.push_back(ranges_[at(node)].n);
            }
            const LoadedRows rows(*rows_, order, sizes, place_.session, monitor_);
            models = fit_loaded(rows, task, place_.session, monitor_);
            place_.session.unload();
        }
        for (std::size_t i = 0; i < nodes.size(); ++i)
            sort_by_cluster(models[i], ranges_[at(nodes[i])]);
        return models;
    }

    void sort_by_cluster(Model &model, Range rows)
    {
        std::vector<std::int64_t> next(at(model.k));
        std::exclusive_scan(model.sizes.begin(), model.sizes.end(), next.begin(), std::int64_t{0});
        const auto first = order_.begin() + rows.first;
        const std::vector<std::int64_t> before(first, first + rows.n);
        for (std::size_t i = 0; i < before.size(); ++i) {
            if (i % (std::size_t{1} << 20) == 0)
                monitor_.poll();
            first[next[at(model.labels[i])]++] = before[i];
        }
        model.labels = {};
    }

    const PgkmRequest &request_;
    Workplace &place_;
    Monitor &monitor_;
    const std::shared_ptr<const LoadedRows> rows_;
    std::vector<std::int64_t> order_; // numbers of rows, those of a node side by side
    std::vector<Range> ranges_;       // of each node
    std::unique_ptr<Tree> tree_ = std::make_unique<Tree>();
};

} // namespace

std::unique_ptr<Tree> grow(const PgkmRequest &request, Workplace &place, Monitor &monitor)
{
    return Grower(request, place, monitor).run();
}

} // namespace pgkm
