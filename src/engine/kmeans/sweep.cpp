// sweep.cpp - fits for each k of a range or list; the sums that their indices are made of.
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

class Sweep {
  public:
    Sweep(Workplace &place, const LoadedRows &rows, const PgkmRequest &request, Monitor &monitor)
        : place_(place), rows_(rows), request_(request), monitor_(monitor)
    {
        sample();
    }

    void judge(Model &model) const
    {
        const LabelledRows labelled = {rows_.points(), model.labels.data(), model.k, place_.session.pool(),
                                       [this] { monitor_.poll(); }};
        const auto spreads = [&] {
            return is_spread(request_)
                       ? nodes::cluster_sums(place_.session.data(), model.centroids, model.k, model.means)
                       : labelled.spreads(model.means.data(), model.centroids.data());
        };
        model.quality = quality_of(model, spreads, place_.session.pool(), monitor_);
        if (sample_.empty() || !has_silhouette(labelled, model.masses))
            return;
        const double reach = reach_of(rows_.groups()[0], rows_.d(), monitor_);
        const Silhouette silhouette = mean_silhouette(
            rows_.points(), sample_, silhouettes(labelled, sample_, reach, model.masses).data(), rows_.points().n);
        model.quality.silhouette = silhouette.mean;
        model.quality.silhouette_error = silhouette.error;
    }

  private:
    // Drawn by the contents of rows and the seed: the first in batch order.
    void sample()
    {
        const std::int64_t n = rows_.points().n, wanted = silhouette_rows(request_, n);
        if (wanted == 0)
            return;
        sample_ = batch_order(rows_.points(), 0, n, request_.kmeans.seed, [this] { monitor_.poll(); });
        sample_.resize(at(wanted));
        sample_.shrink_to_fit();
    }

    Workplace &place_;
    const LoadedRows &rows_;
    const PgkmRequest &request_;
    Monitor &monitor_;
    std::vector<std::int64_t> sample_;
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

std::vector<Model> sweep(Workplace &place, const LoadedRows &rows, FitTask task, const PgkmRequest &request,
                         Monitor &monitor)
{
    std::vector<Model> models;
    const Sweep sweep(place, rows, request, monitor);
    const std::int64_t count = pgkm_sweep_count(&request);
    models.reserve(at(count));
    const bool together = task.at_once > 1;
    const std::int64_t most = std::max(1, task.at_once / restarts_of(task.options));
    task.want_labels = !is_spread(request) && !together;
    task.want_distances = false;
    task.want_means = true;
    task.options.init = init_of(task.options, static_cast<double>(rows.groups()[0].n), rows.d(),
                                static_cast<double>(pgkm_sweep_last(&request)));
    for (std::int64_t i = 0; i < count; i += std::ssize(task.k)) {
        task.k.clear();
        for (std::int64_t next = i; next < std::min(i + most, count); ++next)
            task.k.push_back(pgkm_sweep_k(&request, next));
        for (Model &model : fit_loaded(rows, task, place.session, monitor)) {
            if (together) // labels of one model at a time
                label_rows(rows, place.session, true, false, model);
            sweep.judge(model);
            models.emplace_back(Figures(model)); // arrays of many models may pass every limit
        }
    }
    return models;
}

} // namespace pgkm
