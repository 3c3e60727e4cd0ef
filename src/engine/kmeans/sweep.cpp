// sweep.cpp - fits for each k of a range or list; the sums that their indices are made of; which k is suggested.
#include "engine/kmeans/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine/kmeans/options.hpp"
#include "engine/kmeans/quality.hpp"
#include "engine/nodes/nodes.hpp"
#include "engine/rows/batch_order.hpp"
#include "engine/rows/silhouette.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

// What all silhouettes of a model may cost: pairs of a row and one of the sample, of d features and a root each. More
// rows are sampled; so many at least.
constexpr double usual_silhouettes = 0x1p30;
constexpr double least_sample = 100.0;

// Fits that are judged together, and clusters of all of them.
constexpr std::int64_t most_together = 8;
constexpr std::int64_t clusters_together = 4096;

// The first of the greatest values that are defined; as many as there are models: none.
std::size_t best(const std::vector<Model> &models, double PgkmQuality::*index, double sign)
{
    std::size_t found = models.size();
    for (std::size_t i = 0; i < models.size(); ++i) {
        const double value = sign * models[i].quality.*index;
        if (!std::isnan(value) && (found == models.size() || value > sign * models[found].quality.*index))
            found = i;
    }
    return found;
}

// The fits of one group, one for each k.
struct Swept {
    PgkmGroup group;
    std::int64_t count;
    std::vector<Model> models = {};
    std::size_t judged = 0;                // of these, with all of their quality; others have labels
    std::vector<std::int64_t> sample = {}; // rows of the group, once they are drawn

    // The model to take says why, unless none is better than the others. One cluster has no silhouette: it is
    // suggested where every split is worse by the BIC.
    Model &suggest()
    {
        const std::size_t silhouette = best(models, &PgkmQuality::silhouette, 1.0);
        const std::size_t simplified = best(models, &PgkmQuality::simplified_silhouette, 1.0);
        if (models.size() > 1 && group.k == 1 && best(models, &PgkmQuality::bic, -1.0) == 0)
            models[0].suggestion = "lowest BIC";
        else if (silhouette < models.size())
            return say(silhouette, "highest silhouette");
        else if (simplified < models.size())
            return say(simplified, "highest simplified silhouette");
        return models[0];
    }

    // Leaves their arrays to those that may still be suggested, if any may.
    void strip(bool may_suggest)
    {
        const std::size_t silhouette = best(models, &PgkmQuality::silhouette, 1.0);
        const std::size_t simplified = best(models, &PgkmQuality::simplified_silhouette, 1.0);
        for (std::size_t i = 0; i < models.size(); ++i) {
            models[i].labels = {};
            if (!may_suggest || (i > 0 && i != silhouette && i != simplified))
                models[i] = Model(Figures(models[i]));
        }
    }

  private:
    Model &say(std::size_t i, const char *why)
    {
        models[i].suggestion = why;
        return models[i];
    }
};

class Sweep {
  public:
    Sweep(Workplace &place, const LoadedRows &rows, const PgkmRequest &request, Monitor &monitor)
        : place_(place), rows_(rows), request_(request), monitor_(monitor), together_(judged_together(request))
    {
        for (const PgkmGroup &group : groups_of(request))
            groups_.push_back({group, sweep_count(request, group)});
    }

    // All fits: those of several k of the only group together, or of one k of each group.
    void run(FitTask task)
    {
        const bool apart = task.at_once > 1; // labels come of one model at a time
        const std::int64_t most = std::max(1, task.at_once / restarts_of(task.options));
        task.want_labels = !is_spread(request_) && !apart;
        task.want_distances = false;
        task.want_means = true;
        task.init_k = request_.k_last; // one way for all k
        for (std::int64_t first = 0; choose(task, first, most); first += most) {
            std::vector<Model> models = fit_loaded(rows_, task, place_.session, monitor_);
            for_each(models.size(), [&](std::size_t i, ThreadPool &pool) {
                if (apart)
                    label_rows(rows_, place_.session, true, false, models[i]);
                add(task.groups[i], models[i], pool);
            });
        }
        for_each(groups_.size(), [&](std::size_t g, ThreadPool &pool) { judge(g, pool); });
    }

    std::vector<Model> results()
    {
        std::vector<Model> models = {};
        for (Swept &group : groups_) {
            Model &suggested = group.suggest();
            if (request_.suggest != 0)
                models.push_back(std::move(suggested));
        }
        return request_.suggest != 0 ? std::move(models) : std::move(groups_[0].models);
    }

  private:
    // The next k of each group, up to so many; false when there are none.
    bool choose(FitTask &task, std::int64_t first, std::int64_t most) const
    {
        task.k.clear();
        task.groups.clear();
        for (std::size_t g = 0; g < groups_.size(); ++g)
            for (std::int64_t i = first; i < std::min(first + most, groups_[g].count); ++i) {
                task.k.push_back(sweep_k(request_, groups_[g].group, i));
                task.groups.push_back(g);
            }
        return !task.k.empty();
    }

    // body(i, pool) for each i: one after the other, on all threads; of several groups each on a thread of its own.
    template <typename Body>
    void for_each(std::size_t count, const Body &body)
    {
        if (groups_.size() > 1)
            parallel_for(place_.session.pool(), static_cast<std::int64_t>(count), place_.session.pool().size(),
                         [&](std::int64_t i, int) {
                             ThreadPool alone(1);
                             monitor_.poll();
                             body(at(i), alone);
                         });
        else
            for (std::size_t i = 0; i < count; ++i)
                body(i, place_.session.pool());
    }

    PgkmPoints points_of(std::size_t g) const
    {
        PgkmPoints points = rows_.points();
        if (groups_.size() == 1)
            return points;
        const LoadedGroup &group = rows_.groups()[g];
        const std::size_t row = at(rows_.d()) * (points.element == PGKM_FLOAT32 ? sizeof(float) : sizeof(double));
        points.values = static_cast<const std::byte *>(points.values) + at(group.first_row) * row;
        points.weights = points.weights == nullptr ? nullptr : points.weights + group.first_row;
        points.n = group.n;
        return points;
    }

    // Judges the model by all but its silhouette, which waits until several can be taken together.
    void add(std::size_t g, Model &model, ThreadPool &pool)
    {
        Swept &group = groups_[g];
        const LabelledRows labelled = {points_of(g), model.labels.data(), model.k, pool, [this] { monitor_.poll(); }};
        const auto spreads = [&] {
            return is_spread(request_)
                       ? nodes::cluster_sums(place_.session.data(), model.centroids, model.k, model.means)
                       : labelled.spreads(model.means.data(), model.centroids.data());
        };
        model.quality = quality_of(model, spreads, pool, monitor_);
        model.means = {};
        if (request_.suggest == 0) { // arrays of many models may pass every limit
            Model figures{Figures(model)};
            figures.masses = std::move(model.masses);
            figures.labels = std::move(model.labels);
            model = std::move(figures);
        }
        group.models.push_back(std::move(model));
        if (std::ssize(group.models) - static_cast<std::int64_t>(group.judged) >= together_)
            judge(g, pool);
    }

    // Takes the silhouettes of the models that wait for them.
    void judge(std::size_t g, ThreadPool &pool)
    {
        Swept &group = groups_[g];
        const LoadedGroup &loaded = rows_.groups()[g];
        const PgkmPoints points = points_of(g);
        const std::int64_t wanted = silhouette_rows(request_, points.n);
        const auto poll = [this] { monitor_.poll(); };
        if (wanted > 0 && group.sample.empty()) { // by the contents of rows and the seed: the first in batch order
            group.sample = batch_order(points, 0, points.n, request_.kmeans.seed, poll);
            group.sample.resize(at(wanted));
            group.sample.shrink_to_fit();
        }
        std::vector<Labelling> labellings;
        std::vector<PgkmQuality *> qualities;
        for (std::size_t i = group.judged; i < group.models.size() && wanted > 0; ++i)
            if (Model &model = group.models[i]; has_silhouette(model.masses)) {
                labellings.push_back({model.labels.data(), model.masses});
                qualities.push_back(&model.quality);
            }
        if (!labellings.empty()) {
            const std::vector<PgkmRowSilhouette> found =
                silhouettes(points, labellings, group.sample, reach_of(loaded, rows_.d(), monitor_), pool, poll);
            for (std::size_t i = 0; i < qualities.size(); ++i) {
                const Silhouette all =
                    mean_silhouette(points, group.sample, found.data() + i * group.sample.size(), points.n);
                qualities[i]->silhouette = all.mean;
                qualities[i]->silhouette_error = all.error;
            }
        }
        group.judged = group.models.size();
        group.strip(request_.suggest != 0);
    }

    Workplace &place_;
    const LoadedRows &rows_;
    const PgkmRequest &request_;
    Monitor &monitor_;
    const std::int64_t together_;
    std::vector<Swept> groups_;
};

} // namespace

std::int64_t silhouette_rows(const PgkmRequest &request, std::int64_t n)
{
    if (request.silhouette_rows == 0 || is_spread(request))
        return 0;
    const double affordable = usual_silhouettes / (static_cast<double>(n) * (request.points.d + cost_of_root));
    const double usual = std::clamp(affordable, least_sample, 1e18);
    return std::min(n, request.silhouette_rows > 0 ? request.silhouette_rows : static_cast<std::int64_t>(usual));
}

std::int64_t judged_together(const PgkmRequest &request)
{
    const bool sampled = request.silhouette_rows != 0 && !is_spread(request);
    return sampled ? std::clamp(clusters_together / request.k_last, std::int64_t{1}, most_together) : 1;
}

std::vector<Model> sweep(Workplace &place, const LoadedRows &rows, FitTask task, const PgkmRequest &request,
                         Monitor &monitor)
{
    Sweep sweep(place, rows, request, monitor);
    sweep.run(std::move(task));
    return sweep.results();
}

} // namespace pgkm
