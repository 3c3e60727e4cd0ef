#include "engine/kmeans/packed_models.hpp"

#include "engine/job/job.hpp"

namespace pgkm {
namespace {

// What is no array.
PgkmFitResult figures_of(const Model &model)
{
    PgkmFitResult figures = {};
    figures.k = model.k;
    figures.d = model.d;
    figures.n = model.n;
    figures.inertia = model.inertia;
    figures.n_iter = model.n_iter;
    figures.converged = model.converged ? 1 : 0;
    figures.quality = model.quality;
    return figures;
}

} // namespace

void describe(const Model &model, PgkmFitResult *result)
{
    *result = figures_of(model);
    result->centroids = model.centroids.data();
    result->sizes = model.sizes.data();
    result->within_ss = model.within_ss.data();
    result->center = data_or_null(model.center);
    result->scale = data_or_null(model.scale);
    result->labels = data_or_null(model.labels);
    result->distances = data_or_null(model.distances);
}

void PackedModels::add(const Model &model)
{
    entries_.push_back({figures_of(model), values_.size(), sizes_.size(), !model.center.empty()});
    for (const std::vector<double> *part : {&model.centroids, &model.within_ss, &model.center, &model.scale})
        values_.insert(values_.end(), part->begin(), part->end());
    sizes_.insert(sizes_.end(), model.sizes.begin(), model.sizes.end());
}

void PackedModels::get(std::int64_t i, PgkmFitResult *result) const
{
    const Entry &entry = entries_[static_cast<std::size_t>(i)];
    const std::ptrdiff_t k = entry.figures.k, d = entry.figures.d;
    *result = entry.figures;
    result->centroids = values_.data() + entry.values;
    result->within_ss = result->centroids + k * d;
    result->sizes = sizes_.data() + entry.sizes;
    result->center = entry.standardized ? result->within_ss + k : nullptr;
    result->scale = entry.standardized ? result->center + d : nullptr;
}

} // namespace pgkm
