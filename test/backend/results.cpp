#include "results.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "numeric/contract.hpp"
#include "reference/refine.hpp"

namespace conformance {
namespace {

void require_ok(PgkmStatus status, const Session &session)
{
    if (status != PGKM_OK)
        throw std::runtime_error(std::string("the reference failed: ") + session.error.text);
}

} // namespace

Summaries::Summaries(const Case &data) : d(static_cast<std::size_t>(data.d)), values(data.groups.size() * 4 * d, -7.0)
{
    for (std::size_t g = 0; g < data.groups.size(); ++g) {
        double *const at = values.data() + g * 4 * d;
        views.push_back({at, at + d, at + 2 * d, at + 3 * d, -7.0});
    }
}

Problems::Problems(const Case &of, const Summaries &summaries)
    : data(&of),
      centroids(static_cast<std::size_t>(of.centroid_count()) * static_cast<std::size_t>(of.d) * of.element_size())
{
    for (std::size_t g = 0; g < of.groups.size(); ++g) {
        const PgkmSummary &summary = summaries.views[g];
        PgkmProblem problem = {};
        problem.first_row = of.groups[g].first;
        problem.n_rows = of.groups[g].n;
        problem.k = of.groups[g].k;
        problem.weight_exponent = of.weights.empty() ? 0 : pgkm::scale_exponent(summary.max_weight);
        double variance = 0.0;
        for (std::int32_t f = 0; f < of.d; ++f) {
            scales.push_back(pgkm::sum_scale(summary.min[f], summary.max[f], summary.max_weight));
            variance += summary.variance[f];
        }
        problem.tol = of.tol * (variance / of.d);
        list.push_back(problem);
    }
    point_into_own_memory();
}

Problems::Problems(const Problems &other)
    : data(other.data), centroids(other.centroids), scales(other.scales), list(other.list)
{
    point_into_own_memory();
}

void Problems::point_into_own_memory()
{
    for (std::size_t g = 0; g < list.size(); ++g) {
        list[g].centroids = centroids.data() + static_cast<std::size_t>(data->centroid_offset(g)) *
                                                   static_cast<std::size_t>(data->d) * data->element_size();
        list[g].feature_scales = scales.data() + g * static_cast<std::size_t>(data->d);
    }
}

std::size_t Problems::centroid_bytes(std::size_t group) const
{
    return static_cast<std::size_t>(list[group].k) * static_cast<std::size_t>(data->d) * data->element_size();
}

void Problems::set_centroids(const std::vector<double> &values)
{
    for (std::size_t i = 0; i < values.size(); ++i) {
        const float narrow = static_cast<float>(values[i]);
        if (data->element == PGKM_FLOAT32)
            std::memcpy(centroids.data() + i * sizeof narrow, &narrow, sizeof narrow);
        else
            std::memcpy(centroids.data() + i * sizeof values[i], &values[i], sizeof values[i]);
    }
}

Assignments::Assignments(const Problems &problems)
{
    for (const PgkmProblem &problem : problems.list) {
        const auto n = static_cast<std::size_t>(problem.n_rows), k = static_cast<std::size_t>(problem.k);
        const auto d = static_cast<std::size_t>(problems.data->d);
        labels.emplace_back(n, -7);
        distances.emplace_back(n, -7.0);
        totals.emplace_back(k * d, PgkmInt128{7, 7});
        masses.emplace_back(k, PgkmInt128{7, 7});
        within.emplace_back(k, PgkmInt128{7, 7});
        sizes.emplace_back(k, -7);
    }
}

std::vector<PgkmAssignment> Assignments::views()
{
    std::vector<PgkmAssignment> result;
    for (std::size_t g = 0; g < labels.size(); ++g)
        result.push_back({labels[g].data(), distances[g].data(), totals[g].data(), masses[g].data(), within[g].data(),
                          sizes[g].data()});
    return result;
}

struct Expected::Cache {
    std::optional<Summaries> summaries;
    std::map<std::pair<PgkmInit, std::uint32_t>, Problems> seeded;
    std::optional<Problems> start;
    std::optional<Assignments> assigned;
    std::map<std::int32_t, Problems> fitted, refined;
};

Expected::Expected(const Case &data)
    : data_(data), session_(reference_subject(), data.points()), cache_(std::make_shared<Cache>())
{
}

Expected &Expected::of(const Case &data)
{
    static std::map<std::string, std::unique_ptr<Expected>> all;
    std::unique_ptr<Expected> &entry = all[data.name];
    if (entry == nullptr)
        entry.reset(new Expected(data));
    return *entry;
}

const Summaries &Expected::summaries()
{
    if (!cache_->summaries) {
        Summaries made(data_);
        std::vector<PgkmProblem> problems;
        for (const Group &group : data_.groups) {
            problems.emplace_back();
            problems.back().first_row = group.first;
            problems.back().n_rows = group.n;
        }
        require_ok(session_.summarise(problems.data(), problems.size(), true, made.views.data()), session_);
        cache_->summaries.emplace(std::move(made));
    }
    return *cache_->summaries;
}

const Problems &Expected::seeded(PgkmInit init, std::uint32_t restart)
{
    const auto key = std::make_pair(init, restart);
    const auto found = cache_->seeded.find(key);
    if (found != cache_->seeded.end())
        return found->second;
    Problems made(data_, summaries());
    require_ok(session_.seed(made.list.data(), made.size(), seed_params(init, restart)), session_);
    return cache_->seeded.emplace(key, std::move(made)).first->second;
}

const Problems &Expected::start()
{
    if (cache_->start)
        return *cache_->start;
    // Random rows rather than k-means++: cheaper, and with more left to do for fit().
    Problems made = data_.start.empty() ? seeded(PGKM_INIT_RANDOM, 0) : Problems(data_, summaries());
    if (!data_.start.empty())
        made.set_centroids(data_.start);
    // Scale `within` by the largest term that occurs.
    Assignments probe(made);
    std::vector<PgkmAssignment> views = probe.views();
    for (PgkmAssignment &view : views)
        view.within = nullptr;
    require_ok(session_.assign(made.list.data(), made.size(), views.data()), session_);
    for (std::size_t g = 0; g < made.size(); ++g) {
        double largest = 0.0;
        for (std::size_t i = 0; i < probe.distances[g].size(); ++i) {
            const auto row = static_cast<std::size_t>(made.list[g].first_row) + i;
            largest = std::max(largest, (data_.weights.empty() ? 1.0 : data_.weights[row]) * probe.distances[g][i]);
        }
        made.list[g].distance_exponent = pgkm::square_exponent(largest);
    }
    return cache_->start.emplace(std::move(made));
}

const Assignments &Expected::assigned()
{
    if (!cache_->assigned) {
        Assignments made(start());
        std::vector<PgkmAssignment> views = made.views();
        require_ok(session_.assign(start().list.data(), start().size(), views.data()), session_);
        cache_->assigned.emplace(std::move(made));
    }
    return *cache_->assigned;
}

const Problems &Expected::fitted(std::int32_t max_iter)
{
    const auto found = cache_->fitted.find(max_iter);
    if (found != cache_->fitted.end())
        return found->second;
    Problems made = start();
    require_ok(session_.fit(made.list.data(), made.size(), {data_.metric, max_iter}), session_);
    return cache_->fitted.emplace(max_iter, std::move(made)).first->second;
}

const Problems &Expected::refined(std::int32_t max_iter)
{
    const auto found = cache_->refined.find(max_iter);
    if (found != cache_->refined.end())
        return found->second;
    Problems made = seeded(PGKM_INIT_RANDOM, 0);
    const PgkmFitParams params = {data_.metric, max_iter};
    require_ok(session_.fit(made.list.data(), made.size(), params), session_);
    const PgkmPoints points = data_.points();
    for (std::size_t g = 0; g < made.size(); ++g)
        pgkm::reference_refine(session_.data(), points, summaries().views[g], made.list[g],
                               seed_params(PGKM_INIT_RANDOM, 0), params);
    Assignments labelled(made);
    std::vector<PgkmAssignment> views = labelled.views();
    for (PgkmAssignment &view : views)
        view.within = nullptr;
    require_ok(session_.assign(made.list.data(), made.size(), views.data()), session_);
    for (std::size_t g = 0; g < made.size(); ++g) {
        const std::size_t bytes = static_cast<std::size_t>(data_.d) * data_.element_size();
        auto *const centroids = static_cast<std::byte *>(made.list[g].centroids);
        std::int32_t kept = 0;
        for (std::int32_t j = 0; j < made.list[g].k; ++j)
            if (labelled.sizes[g][static_cast<std::size_t>(j)] > 0)
                std::memmove(centroids + static_cast<std::size_t>(kept++) * bytes,
                             centroids + static_cast<std::size_t>(j) * bytes, bytes);
        made.list[g].k = kept;
    }
    return cache_->refined.emplace(max_iter, std::move(made)).first->second;
}

} // namespace conformance
