#include "engine/mixture_clusters.hpp"

#include <algorithm>

#include "engine/fitter.hpp"

namespace pgkm {

MixtureClusters::MixtureClusters(const PgkmMixtureRequest &request, Session &session, Monitor &monitor)
    : session_(session)
{
    request_.points = request.points;
    request_.k = std::min(request.k, request.points.n);
    pgkm_options_default(&request_.options);
    if (request.points.element == PGKM_FLOAT32)
        narrow_ = std::make_unique<LoadedRows<float>>(request_, session, monitor);
    else
        wide_ = std::make_unique<LoadedRows<double>>(request_, session, monitor);
}

Model MixtureClusters::find(std::uint64_t seed)
{
    FitTask task = {request_.options, {request_.k}, true, false};
    task.options.seed = seed;
    Monitor unseen; // to the mixture's, k-means is part of the seeding; a cancel reaches the session
    std::vector<Model> models = narrow_ != nullptr ? fit_loaded(*narrow_, task, session_, unseen)
                                                   : fit_loaded(*wide_, task, session_, unseen);
    return std::move(models[0]);
}

} // namespace pgkm
