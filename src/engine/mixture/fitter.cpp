#include "engine/mixture/fitter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "numeric/error.hpp"
#include "engine/mixture/options.hpp"
#include "engine/pca/moments.hpp"

namespace pgkm {
namespace {

std::size_t at(std::int64_t i)
{
    return static_cast<std::size_t>(i);
}

double checked(double log_likelihood)
{
    if (!std::isfinite(log_likelihood))
        throw Error(PGKM_INVALID, "features are too large: their squares overflow");
    return log_likelihood;
}

// The rows of one problem.
PgkmPoints rows_of(const PgkmPoints &points, const PgkmProblem &problem)
{
    const std::int64_t first = problem.first_row * points.d * (points.element == PGKM_FLOAT32 ? 4 : 8);
    PgkmPoints rows = points;
    rows.values = static_cast<const char *>(points.values) + first;
    rows.n = problem.n_rows;
    return rows;
}

} // namespace

MixtureFitter::MixtureFitter(const PgkmMixtureRequest &request, Session &session, int threads, Monitor &monitor)
    : request_(request), options_(request.options), session_(session), monitor_(monitor),
      pool_(request.n_groups > 1 ? threads : 1), points_(request.points)
{
    std::int64_t first = 0;
    for (const PgkmGroup &group : groups_of(clusters_request(request))) {
        Group place = {};
        place.problem.first_row = first;
        place.problem.n_rows = group.n;
        place.k = group.k;
        groups_.push_back(std::move(place));
        first += group.n;
    }
}

void MixtureFitter::poll() const
{
    monitor_.poll();
}

void MixtureFitter::for_each(std::size_t count, const std::function<void(std::size_t)> &body)
{
    pool_.run(static_cast<std::int64_t>(count), [&](std::int64_t i, int) {
        poll();
        body(at(i));
    });
}

std::vector<MixtureModel> MixtureFitter::run()
{
    monitor_.enter(PGKM_LOADING);
    load();
    if (options_.covariance_type == PGKM_COVARIANCE_TIED)
        find_totals();
    std::vector<MixtureModel> best(groups_.size());
    // Everything given is the same every time: one run is all of them.
    const std::int32_t restarts = all_given(options_) ? 1 : options_.n_init;
    for (std::int32_t restart = 0; restart < restarts; ++restart) {
        std::vector<MixtureModel> models = run_once(restart);
        for (std::size_t g = 0; g < models.size(); ++g)
            if (restart == 0 || models[g].log_likelihood > best[g].log_likelihood)
                best[g] = std::move(models[g]);
    }
    return best;
}

void MixtureFitter::load()
{
    if (all_given(options_) && request_.n_groups == 0) {
        session_.load(points_);
        return;
    }
    clusters_ = std::make_unique<MixtureClusters>(request_, session_, monitor_);
    points_ = clusters_->points();
}

// The covariances of all rows, which the components' responsibilities divide but do not change.
void MixtureFitter::find_totals()
{
    const std::int32_t d = points_.d;
    std::vector<std::vector<double>> sums(groups_.size()), cross(groups_.size());
    std::vector<PgkmProblem> problems;
    std::vector<PgkmMoments> moments;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        groups_[g].total.mean = sample_mean(rows_of(points_, groups_[g].problem));
        sums[g].resize(at(d));
        cross[g].resize(at(triangle_size(d)));
        problems.push_back(groups_[g].problem);
        moments.push_back({groups_[g].total.mean.data(), sums[g].data(), cross[g].data()});
    }
    session_.moments(problems, moments);
    for_each(groups_.size(), [&](std::size_t g) { set_total(g, sums[g], cross[g]); });
}

void MixtureFitter::set_total(std::size_t group, const std::vector<double> &sums, const std::vector<double> &cross)
{
    const std::int64_t d = points_.d;
    const double n = static_cast<double>(groups_[group].problem.n_rows);
    TotalCovariance &total = groups_[group].total;
    total.matrix.resize(at(d * d));
    for (std::int64_t a = 0, i = 0; a < d; ++a) {
        poll();
        for (std::int64_t b = 0; b <= a; ++b, ++i)
            total.matrix[at(a * d + b)] = total.matrix[at(b * d + a)] =
                (cross[at(i)] - sums[at(a)] * (sums[at(b)] / n)) / n;
    }
    for (std::int64_t f = 0; f < d; ++f)
        total.mean[at(f)] += sums[at(f)] / n;
}

std::vector<MixtureModel> MixtureFitter::run_once(std::int32_t restart)
{
    monitor_.begin_restart(restart);
    std::vector<Start> starts(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        MixtureParameters &parameters = starts[g].model.parameters;
        starts[g].model.n = groups_[g].problem.n_rows;
        starts[g].mean_log_likelihood = -std::numeric_limits<double>::infinity();
        parameters.type = options_.covariance_type;
        parameters.d = points_.d;
        parameters.k = static_cast<std::int32_t>(groups_[g].k);
    }
    if (!all_given(options_))
        begin_with_clusters(starts, restart);
    for_each(starts.size(), [&](std::size_t g) { begin(starts[g]); });
    monitor_.enter(PGKM_ITERATING);
    iterate(starts);
    monitor_.enter(PGKM_LABELLING);
    label(starts);
    std::vector<MixtureModel> models;
    for (Start &start : starts)
        models.push_back(std::move(start.model));
    return models;
}

void MixtureFitter::begin_with_clusters(std::vector<Start> &starts, std::int32_t restart)
{
    const std::vector<Model> found = clusters_->find(options_.seed + static_cast<std::uint64_t>(restart));
    std::vector<PgkmProblem> problems;
    std::vector<PgkmMixture> labelled;
    std::vector<PgkmMixtureSums> views;
    for (std::size_t g = 0; g < starts.size(); ++g) {
        MixtureParameters &parameters = starts[g].model.parameters;
        if (found[g].k < groups_[g].k && any_given(options_))
            throw Error(PGKM_INVALID, "there are fewer distinct rows (" + std::to_string(found[g].k) +
                                          ") than components for which options give first values (" +
                                          std::to_string(groups_[g].k) + ")");
        parameters.k = found[g].k;
        parameters.means = found[g].centroids;
        parameters.weights.resize(at(found[g].k));
        starts[g].sums.emplace_back(parameters.type, parameters.k, parameters.d);
        PgkmMixture mixture = {};
        mixture.k = parameters.k;
        mixture.covariance_type = parameters.type;
        mixture.means = parameters.means.data();
        mixture.labels = found[g].labels.data();
        problems.push_back(groups_[g].problem);
        labelled.push_back(mixture);
        views.push_back(starts[g].sums[0].view);
    }
    session_.em_step(problems, labelled, views);
    for_each(starts.size(), [&](std::size_t g) {
        maximise(starts[g].model.parameters, starts[g].sums[0], groups_[g].total, options_.reg_covar,
                 [this] { poll(); });
    });
}

// What is given replaces what came from clusters.
void MixtureFitter::begin(Start &start)
{
    MixtureParameters &parameters = start.model.parameters;
    const std::int64_t k = parameters.k;
    if (options_.weights_init.values != nullptr)
        parameters.weights.assign(options_.weights_init.values, options_.weights_init.values + k);
    if (options_.means_init.values != nullptr)
        parameters.means.assign(options_.means_init.values, options_.means_init.values + k * parameters.d);
    const Poll poll = [this] { this->poll(); };
    start.factors = options_.precisions_init.values != nullptr
                        ? factorise_precisions(parameters, options_.precisions_init.values, poll)
                        : factorise(parameters, poll);
    if (start.sums.empty())
        start.sums.emplace_back(parameters.type, parameters.k, parameters.d);
}

void MixtureFitter::iterate(std::vector<Start> &starts)
{
    std::vector<std::size_t> open(starts.size());
    std::iota(open.begin(), open.end(), std::size_t{0});
    for (std::int32_t iteration = 1; iteration <= options_.max_iter && !open.empty(); ++iteration) {
        std::vector<PgkmProblem> problems;
        std::vector<PgkmMixture> mixtures;
        std::vector<PgkmMixtureSums> views;
        for (const std::size_t g : open) {
            problems.push_back(groups_[g].problem);
            mixtures.push_back(starts[g].factors.view(starts[g].model.parameters));
            views.push_back(starts[g].sums[0].view);
        }
        poll();
        session_.em_step(problems, mixtures, views);
        const double before = starts[open[0]].mean_log_likelihood;
        for_each(open.size(), [&](std::size_t i) {
            starts[open[i]].sums[0].view.log_likelihood = views[i].log_likelihood;
            iterate_once(open[i], starts[open[i]]);
        });
        monitor_.count_iteration(iteration, starts[open[0]].mean_log_likelihood - before);
        std::erase_if(open, [&](std::size_t g) { return starts[g].model.converged; });
    }
}

// What follows a group's E step.
void MixtureFitter::iterate_once(std::size_t group, Start &start)
{
    MixtureModel &model = start.model;
    model.trace.push_back(checked(start.sums[0].view.log_likelihood));
    const Poll poll = [this] { this->poll(); };
    maximise(model.parameters, start.sums[0], groups_[group].total, options_.reg_covar, poll);
    start.factors = factorise(model.parameters, poll);
    const double mean = model.trace.back() / static_cast<double>(model.n);
    model.converged = std::fabs(mean - start.mean_log_likelihood) < options_.tol;
    start.mean_log_likelihood = mean;
}

void MixtureFitter::label(std::vector<Start> &starts)
{
    std::vector<PgkmProblem> problems;
    std::vector<PgkmMixture> mixtures;
    std::vector<PgkmMixtureSums> views;
    for (std::size_t g = 0; g < starts.size(); ++g) {
        MixtureModel &model = starts[g].model;
        model.labels.resize(request_.want_labels != 0 ? at(model.n) : 0);
        PgkmMixtureSums sums = {};
        sums.labels = model.labels.empty() ? nullptr : model.labels.data();
        problems.push_back(groups_[g].problem);
        mixtures.push_back(starts[g].factors.view(model.parameters));
        views.push_back(sums);
    }
    session_.em_step(problems, mixtures, views);
    for (std::size_t g = 0; g < starts.size(); ++g)
        starts[g].model.log_likelihood = checked(views[g].log_likelihood);
}

} // namespace pgkm
