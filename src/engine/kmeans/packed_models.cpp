// packed_models.cpp - the models of many groups side by side.
#include "engine/kmeans/packed_models.hpp"

namespace pgkm {
namespace {

void put(const Figures &figures, PgkmResult *result)
{
    result->k = figures.k;
    result->d = figures.d;
    result->n = figures.n;
    result->inertia = figures.inertia;
    result->init = figures.init;
    result->n_iter = figures.n_iter;
    result->converged = figures.converged ? 1 : 0;
    result->quality = figures.quality;
}

} // namespace

void describe(const Model &model, PgkmResult *result)
{
    put(model, result);
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

void PackedModels::add(const Model &model)
{
    entries_.push_back({Figures(model), values_.size(), sizes_.size(), !model.center.empty(), !model.mean.empty()});
    for (const std::vector<double> *part :
         {&model.centroids, &model.within_ss, &model.center, &model.scale, &model.mean, &model.deviation})
        values_.insert(values_.end(), part->begin(), part->end());
    sizes_.insert(sizes_.end(), model.sizes.begin(), model.sizes.end());
}

void PackedModels::get(std::int64_t i, PgkmResult *result) const
{
    const Entry &entry = entries_[static_cast<std::size_t>(i)];
    const std::ptrdiff_t k = entry.figures.k, d = entry.figures.d;
    put(entry.figures, result);
    result->centroids = values_.data() + entry.values;
    result->within_ss = result->centroids + k * d;
    result->sizes = sizes_.data() + entry.sizes;
    result->center = entry.standardized ? result->within_ss + k : nullptr;
    result->scale = entry.standardized ? result->center + d : nullptr;
    const double *const rest = result->within_ss + k + (entry.standardized ? 2 * d : 0);
    result->feature_means = entry.described ? rest : nullptr;
    result->feature_deviations = entry.described ? rest + d : nullptr;
}

} // namespace pgkm
