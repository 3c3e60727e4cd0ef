// fit.cpp - a fit of k-means, or a sweep, from a request to its models.
#include "engine/kmeans/fit.hpp"

#include <algorithm>

#include "cpu/cpu_backend.hpp"
#include "engine/kmeans/fitter.hpp"
#include "engine/kmeans/options.hpp"
#include "engine/kmeans/sweep.hpp"
#include "engine/kmeans/work.hpp"
#include "engine/nodes/nodes.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

class ClusterModels : public Models {
  public:
    explicit ClusterModels(std::vector<Model> &&models) : models_(std::move(models)) {}
    std::int64_t size() const override { return static_cast<std::int64_t>(models_.size()); }
    void get(std::int64_t i, PgkmResult *result) const override
    {
        const Model &model = models_[at(i)];
        result->k = model.k;
        result->d = model.d;
        result->n = model.n;
        result->inertia = model.inertia;
        result->init = model.init;
        result->n_iter = model.n_iter;
        result->converged = model.converged ? 1 : 0;
        result->quality = model.quality;
        result->suggestion = model.suggestion;
        result->centroids = model.centroids.data();
        result->sizes = model.sizes.data();
        result->within_ss = model.within_ss.data();
        result->center = data_or_null(model.center);
        result->scale = data_or_null(model.scale);
        result->feature_means = data_or_null(model.mean);
        result->feature_deviations = data_or_null(model.deviation);
        result->labels = data_or_null(model.labels);
        result->distances = data_or_null(model.distances);
    }

  private:
    const std::vector<Model> models_;
};

// Values of rows that were brought into batch order.
template <typename Value>
void bring_into_order_of_request(LargeArray<Value> &values, const std::vector<std::int64_t> &order)
{
    if (order.empty() || values.empty())
        return;
    LargeArray<Value> moved(values.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        moved[at(order[i])] = values[i];
    values = std::move(moved);
}

std::unique_ptr<Models> fit(const PgkmRequest &request, Workplace *place, Monitor &monitor)
{
    const std::shared_ptr<const LoadedRows> rows = rows_in(*place, request, request.kmeans, monitor);
    FitTask task = {request.kmeans,
                    {},
                    request.want_labels != 0,
                    request.want_distances != 0,
                    request.settings.memory_limit,
                    restarts_at_once(request, place->session.devices(), place->session.device_memory())};
    for (const PgkmGroup &group : groups_of(request))
        task.k.push_back(group.k);
    std::vector<Model> models = request.k_last != 0 ? sweep(*place, *rows, task, request, monitor)
                                                    : fit_loaded(*rows, task, place->session, monitor);
    for (Model &model : models) { // of groups and sweeps there are no such arrays
        bring_into_order_of_request(model.labels, rows->order());
        bring_into_order_of_request(model.distances, rows->order());
    }
    if (are_copied(request.kmeans)) { // copies go now
        if (is_spread(request))
            nodes::transform(place->session.data(), {}, {}, PGKM_L2);
        place->session.unload();
    }
    return std::make_unique<ClusterModels>(std::move(models));
}

// Of a sweep, for the least and the greatest k.
void check_sizes(const PgkmRequest &request, const PgkmGroup &group)
{
    if (is_spread(request))
        throw Error(PGKM_UNSUPPORTED, "bounds of clusters are not for rows of several servers");
    if (weights_are_bounded(request.kmeans) && group.weights == nullptr)
        throw Error(PGKM_INVALID, "bounds of weights need rows with weights");
    if (!weights_are_bounded(request.kmeans) && group.weights != nullptr)
        throw Error(PGKM_UNSUPPORTED,
                    "bounds of sizes count rows, which must not have weights; min_weight, max_weight, "
                    "min_weights and max_weights bound weights");
    size_bounds(request.kmeans, group.n, group.k, group.weights);
    if (request.k_last != 0)
        size_bounds(request.kmeans, group.n, sweep_last(request, group), group.weights);
}

void check_bits(const PgkmRequest &request)
{
    if ((request.points.element == PGKM_BIT) != (request.kmeans.metric == PGKM_HAMMING))
        throw Error(PGKM_INVALID, "bits are features of metric hamming, which has no others");
    if (request.points.element == PGKM_BIT && (request.k_last != 0 || is_spread(request)))
        throw Error(PGKM_UNSUPPORTED, request.k_last != 0 ? "sweeps are not for metric hamming"
                                                          : "metric hamming needs all rows in memory here");
}

// The CPU alone has rows of bits.
PgkmStatus supported(const PgkmRequest &request, const PgkmBackend &table, PgkmError *error)
{
    return guarded(error, [&] {
        if (request.points.element == PGKM_BIT && &table != cpu_backend())
            throw Error(PGKM_UNSUPPORTED, "metric hamming is for the CPU");
    });
}

void check(const PgkmRequest &request, const PgkmGroup &group)
{
    check_bits(request);
    check_options(request.kmeans, group.k, request.points.d);
    if (request.kmeans.batch_size > 0 && is_spread(request))
        throw Error(PGKM_INVALID, "mini-batches need all rows on one server");
    if (request.kmeans.max_radius > 0.0 && is_spread(request))
        throw Error(PGKM_INVALID, "option max_radius needs all rows on one server");
    if (request.kmeans.init == PGKM_INIT_OPTIMAL && is_spread(request))
        throw Error(PGKM_INVALID, "option init 'optimal' needs all rows on one server");
    if (sizes_are_bounded(request.kmeans))
        check_sizes(request, group);
    if (request.k_last == 0)
        return;
    if ((request.n_groups > 0 && request.suggest == 0) || centroids_are_given(request.kmeans))
        throw Error(PGKM_INVALID, "a sweep has neither groups nor given centroids");
    if (request.k_last < group.k || (request.sweep_k != nullptr && (request.n_sweep < 1 || request.n_groups > 0)))
        throw Error(PGKM_INVALID, "a sweep must not end before it begins");
    check_options(request.kmeans, request.k_last, request.points.d);
}

} // namespace

const Algorithm kmeans = {
    "clustering", check, work_of_clusters, [](const PgkmRequest &, double) { return 1e6; }, bytes_of_clusters,
    supported,    fit};

} // namespace pgkm

int64_t pgkm_sweep_count(const PgkmRequest *request)
{
    return pgkm::sweep_count(*request, pgkm::groups_of(*request)[0]);
}

int64_t pgkm_sweep_k(const PgkmRequest *request, int64_t i)
{
    return pgkm::sweep_k(*request, pgkm::groups_of(*request)[0], i);
}

int64_t pgkm_sweep_last(const PgkmRequest *request)
{
    return pgkm::sweep_last(*request, pgkm::groups_of(*request)[0]);
}
