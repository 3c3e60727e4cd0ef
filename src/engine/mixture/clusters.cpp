#include "engine/mixture/clusters.hpp"

#include <algorithm>

#include "engine/kmeans/fitter.hpp"

namespace pgkm {

PgkmFitRequest clusters_request(const PgkmMixtureRequest &request)
{
    PgkmFitRequest clusters = {};
    clusters.points = request.points;
    clusters.k = request.k;
    clusters.groups = request.groups;
    clusters.n_groups = request.n_groups;
    pgkm_options_default(&clusters.options);
    return clusters;
}

MixtureClusters::MixtureClusters(const PgkmMixtureRequest &request, Session &session, Monitor &monitor)
    : request_(clusters_request(request)), session_(session)
{
    if (request.points.element == PGKM_FLOAT32)
        narrow_ = std::make_unique<LoadedRows<float>>(request_, session, monitor);
    else
        wide_ = std::make_unique<LoadedRows<double>>(request_, session, monitor);
}

const PgkmPoints &MixtureClusters::points() const
{
    return narrow_ != nullptr ? narrow_->points() : wide_->points();
}

std::vector<Model> MixtureClusters::find(std::uint64_t seed)
{
    FitTask task = {request_.options, {}, true, false};
    for (const PgkmGroup &group : groups_of(request_))
        task.k.push_back(std::min(group.k, group.n));
    task.options.seed = seed;
    Monitor unseen; // to the mixture's, k-means is part of the seeding; a cancel reaches the session
    return narrow_ != nullptr ? fit_loaded(*narrow_, task, session_, unseen)
                              : fit_loaded(*wide_, task, session_, unseen);
}

} // namespace pgkm
