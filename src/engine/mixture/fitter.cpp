// fitter.cpp - EM: restarts, first parameters, iterations, labels.
#include "engine/mixture/fitter.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include "backend/covariance.hpp"
#include "engine/backends/moments.hpp"
#include "engine/kmeans/fitter.hpp"
#include "engine/kmeans/loaded_rows.hpp"
#include "engine/kmeans/options.hpp"
#include "engine/mixture/factors.hpp"
#include "engine/mixture/missing.hpp"
#include "engine/mixture/options.hpp"
#include "engine/nodes/chunk_sums.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

double checked(double log_likelihood)
{
    if (!std::isfinite(log_likelihood))
        throw Error(PGKM_INVALID, "features are too large: their squares overflow");
    return log_likelihood;
}

class MixtureFitter {
  public:
    // incomplete: what is known of rows that are not all complete; or NULL.
    MixtureFitter(const PgkmRequest &request, const IncompleteRows *incomplete, Workplace &place, Monitor &monitor)
        : request_(request), options_(request.mixture), incomplete_(incomplete), session_(place.session),
          monitor_(monitor), threads_(place.threads), points_(request.points)
    {
        for (const PgkmGroup &group : groups_of(request)) {
            all_.push_back(k_.size());
            k_.push_back(group.k);
        }
        totals_.resize(k_.size());
        if (all_given(options_) && request.n_groups == 0 && options_.standardize == 0) {
            session_.load_own(points_);
            problems_.resize(1);
            problems_[0].n_rows = groups_of(request)[0].n;
            return;
        }
        rows_ = rows_in(place, request, first_clusters(options_), monitor);
        problems_ = rows_->problems();
        points_ = rows_->points();
    }

    std::vector<MixtureModel> run()
    {
        if (CovarianceShape(options_.covariance_type).is_shared)
            find_totals();
        std::vector<MixtureModel> best(all_.size());
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

  private:
    // A group's fit from one start.
    struct Start {
        MixtureModel model;
        MixtureFactors factors;
        std::vector<MixtureSums> sums; // one, once k is known
        double mean_log_likelihood;    // of a row, at the last iteration
    };

    void for_each(std::size_t count, const std::function<void(std::size_t)> &body)
    {
        session_.run_tasks(static_cast<std::int64_t>(count), threads_, [&](std::int64_t i, int) {
            poll_();
            body(at(i));
        });
    }

    // The covariances of all rows, which the components' responsibilities divide but do not change.
    void find_totals()
    {
        std::vector<double> shift;
        if (request_.stream != nullptr)
            shift = nodes::mean_of_sample(*request_.stream, points_.d,
                                          rows_ == nullptr ? Standardization() : rows_->groups()[0].standardization,
                                          monitor_.host());
        std::vector<CrossMoments> moments = moments_of(session_, points_, problems_, shift);
        for_each(all_.size(), [&](std::size_t g) {
            const std::int64_t d = points_.d;
            moments[g].centre(poll_);
            totals_[g].mean = std::move(moments[g].mean);
            totals_[g].matrix.resize(at(d * d));
            const double *product = moments[g].cross.data();
            for (std::int64_t a = 0; a < d; ++a) {
                poll_();
                for (std::int64_t b = 0; b <= a; ++b)
                    totals_[g].matrix[at(a * d + b)] = totals_[g].matrix[at(b * d + a)] = *product++ / moments[g].mass;
            }
        });
    }

    // One E step of some groups: of mixture(g) over the rows of group g, as sums(g) asks. Returns sums of each.
    std::vector<PgkmMixtureSums> em_step(const std::vector<Start> &starts, const std::vector<std::size_t> &groups,
                                         const std::function<PgkmMixture(std::size_t)> &mixture,
                                         const std::function<PgkmMixtureSums(std::size_t)> &sums)
    {
        std::vector<PgkmProblem> problems;
        std::vector<PgkmMixture> mixtures;
        std::vector<PgkmMixtureSums> views;
        for (const std::size_t g : groups) {
            problems.push_back(problems_[g]);
            mixtures.push_back(mixture(g));
            views.push_back(sums(g));
        }
        // First clusters are of all rows, with means in the place of what is missing.
        if (incomplete_ == nullptr || mixtures[0].labels != nullptr) {
            session_.run(&PgkmBackend::em_step, problems, mixtures.data(), views.data());
            return views;
        }
        problems[0].n_rows = incomplete_->complete();
        if (problems[0].n_rows > 0)
            session_.run(&PgkmBackend::em_step, problems, mixtures.data(), views.data());
        else
            clear(starts[0].model.parameters, views[0]);
        add_incomplete(*incomplete_, points_, mixtures[0], starts[0].model.parameters.covariances.data(), session_,
                       threads_, poll_, views[0]);
        return views;
    }

    static void clear(const MixtureParameters &parameters, PgkmMixtureSums &sums)
    {
        const std::int64_t k = parameters.k;
        sums.log_likelihood = 0.0;
        if (sums.masses == nullptr)
            return;
        std::fill_n(sums.masses, k, 0.0);
        std::fill_n(sums.first, k * parameters.d, 0.0);
        std::fill_n(sums.second, second_size(parameters.type, k, parameters.d), 0.0);
    }

    // An E step of mixture(g) and the M step, for some groups.
    void step(std::vector<Start> &starts, std::vector<std::size_t> groups,
              const std::function<PgkmMixture(std::size_t)> &mixture)
    {
        while (!groups.empty()) {
            const std::vector<PgkmMixtureSums> views =
                em_step(starts, groups, mixture, [&](std::size_t g) { return starts[g].sums[0].view; });
            std::vector<char> made(groups.size());
            for_each(groups.size(), [&](std::size_t i) {
                Start &start = starts[groups[i]];
                start.sums[0].view.log_likelihood = views[i].log_likelihood;
                weigh(start);
                made[i] =
                    maximise(start.model.parameters, start.sums[0], totals_[groups[i]], options_.reg_covar, poll_);
            });
            std::vector<std::size_t> again;
            for (std::size_t i = 0; i < groups.size(); ++i)
                if (!made[i])
                    again.push_back(groups[i]);
            for (const std::size_t g : again)
                sum_components(starts[g]);
            groups = std::move(again);
        }
    }

    // Tied, of components far apart: from now on their sums are taken one by one, as those of full are.
    void sum_components(Start &start)
    {
        PgkmRequest full = request_;
        full.mixture.covariance_type = PGKM_COVARIANCE_FULL;
        const std::uint64_t need = estimate_of(mixtures, full), limit = request_.settings.memory_limit;
        if (limit != 0 && need > limit)
            throw Error(PGKM_LIMIT, "components of a tied covariance that lie far apart need an estimated " +
                                        std::to_string(need / 1024) +
                                        " kB, more than is left of pg_kmeans.memory_limit (" +
                                        std::to_string(limit / 1024) + " kB)");
        const MixtureParameters &parameters = start.model.parameters;
        start.sums.clear();
        start.sums.emplace_back(PGKM_COVARIANCE_FULL, parameters.k, parameters.d);
        if (!start.factors.factors.empty()) // else these sums are those of first clusters
            start.factors.make_full(parameters.d, poll_);
    }

    std::vector<MixtureModel> run_once(std::int32_t restart)
    {
        monitor_.begin_restart(restart);
        std::vector<Start> starts(all_.size());
        for (const std::size_t g : all_) {
            MixtureParameters &parameters = starts[g].model.parameters;
            starts[g].model.n = problems_[g].n_rows;
            if (rows_ != nullptr)
                starts[g].model.units = rows_->groups()[g].standardization;
            starts[g].mean_log_likelihood = -std::numeric_limits<double>::infinity();
            parameters.type = options_.covariance_type;
            parameters.d = points_.d;
            parameters.k = static_cast<std::int32_t>(k_[g]);
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

    std::vector<Model> find_clusters(std::int32_t restart)
    {
        FitTask task = {first_clusters(options_), {}, !is_spread(request_), false}; // labels stay where the rows are
        task.options.seed = options_.seed + static_cast<std::uint64_t>(restart);
        for (const std::size_t g : all_)
            task.k.push_back(std::min(k_[g], problems_[g].n_rows));
        Monitor unseen; // to the mixture's, k-means is part of the seeding; a cancel reaches the session
        return fit_loaded(*rows_, task, session_, unseen);
    }

    void begin_with_clusters(std::vector<Start> &starts, std::int32_t restart)
    {
        const std::vector<Model> found = find_clusters(restart);
        for (const std::size_t g : all_) {
            MixtureParameters &parameters = starts[g].model.parameters;
            if (found[g].k < k_[g] && any_given(options_))
                throw Error(PGKM_INVALID, "there are fewer distinct rows (" + std::to_string(found[g].k) +
                                              ") than components for which options give first values (" +
                                              std::to_string(k_[g]) + ")");
            parameters.k = found[g].k;
            parameters.means = found[g].centroids;
            parameters.weights.resize(at(found[g].k));
            starts[g].sums.emplace_back(parameters.type, parameters.k, parameters.d);
        }
        step(starts, all_, [&](std::size_t g) {
            PgkmMixture mixture = {};
            mixture.k = found[g].k;
            mixture.covariance_type = starts[g].sums[0].type;
            mixture.means = found[g].centroids.data();
            mixture.labels = !is_spread(request_) ? found[g].labels.data() : nullptr;
            return mixture;
        });
    }

    // What is given replaces what came from clusters.
    void begin(Start &start)
    {
        MixtureParameters &parameters = start.model.parameters;
        const std::int64_t k = parameters.k;
        if (model_is_given(options_)) {
            const PgkmGivenModel &model = options_.init_model;
            parameters.weights.assign(model.weights.values, model.weights.values + k);
            parameters.means.assign(model.centroids.values, model.centroids.values + k * parameters.d);
            parameters.covariances.assign(model.covariances.values,
                                          model.covariances.values +
                                              pgkm_covariance_size(parameters.type, parameters.k, parameters.d));
        }
        if (options_.weights_init.values != nullptr)
            parameters.weights.assign(options_.weights_init.values, options_.weights_init.values + k);
        if (options_.means_init.values != nullptr)
            parameters.means.assign(options_.means_init.values, options_.means_init.values + k * parameters.d);
        const Standardization &units = start.model.units;
        for (std::size_t i = 0;
             options_.means_init.values != nullptr && !units.scale.empty() && i < parameters.means.size(); ++i) {
            const std::size_t f = i % units.scale.size();
            parameters.means[i] = (parameters.means[i] - units.center[f]) / units.scale[f];
        }
        if (start.sums.empty())
            start.sums.emplace_back(parameters.type, parameters.k, parameters.d);
        set_factors(start, options_.precisions_init.values);
    }

    void iterate(std::vector<Start> &starts)
    {
        std::vector<std::size_t> open = all_;
        for (std::int32_t iteration = 1; iteration <= options_.max_iter && !open.empty(); ++iteration) {
            poll_();
            const double before = starts[open[0]].mean_log_likelihood;
            step(starts, open, [&](std::size_t g) { return starts[g].factors.view(starts[g].model.parameters); });
            for_each(open.size(), [&](std::size_t i) { finish_iteration(starts[open[i]]); });
            monitor_.count_iteration(iteration, starts[open[0]].mean_log_likelihood - before);
            std::erase_if(open, [&](std::size_t g) { return starts[g].model.converged; });
        }
    }

    // What follows a group's M step.
    void finish_iteration(Start &start)
    {
        MixtureModel &model = start.model;
        model.trace.push_back(checked(start.sums[0].view.log_likelihood));
        set_factors(start, nullptr);
        const double mean = model.trace.back() / model.mass;
        model.converged = std::fabs(mean - start.mean_log_likelihood) < options_.tol;
        start.mean_log_likelihood = mean;
    }

    // Of the parameters, or of given precisions: as the sums of the next E step are.
    void set_factors(Start &start, const double *precisions)
    {
        start.factors = factorise(start.model.parameters, poll_, precisions);
        if (start.sums[0].type != start.factors.type)
            start.factors.make_full(start.model.parameters.d, poll_);
    }

    // How much the rows count that were summed last.
    void weigh(Start &start) const
    {
        const auto n = static_cast<double>(start.model.n);
        start.model.mass = points_.weights == nullptr ? n : start.sums[0].mass();
        start.sums[0].mean_weight = start.model.mass / n;
    }

    void label(std::vector<Start> &starts)
    {
        const std::vector<PgkmMixtureSums> views = em_step(
            starts, all_, [&](std::size_t g) { return starts[g].factors.view(starts[g].model.parameters); },
            [&](std::size_t g) {
                MixtureModel &model = starts[g].model;
                model.labels.resize(request_.want_labels != 0 ? at(model.n) : 0);
                PgkmMixtureSums sums = {};
                sums.labels = model.labels.empty() ? nullptr : model.labels.data();
                return sums;
            });
        for (const std::size_t g : all_) {
            MixtureModel &model = starts[g].model;
            const double unit = unit_of(model);
            for (double &likelihood : model.trace)
                likelihood -= unit;
            model.log_likelihood = checked(views[g].log_likelihood) - unit;
        }
    }

    // The logarithm of the unit of all rows' densities together, in units of the data.
    double unit_of(const MixtureModel &model) const
    {
        const std::vector<double> &scale = model.units.scale;
        double of_row = 0.0, of_values = 0.0;
        for (std::size_t f = 0; f < scale.size(); ++f) {
            of_row += std::log(scale[f]);
            if (incomplete_ != nullptr)
                of_values += std::log(scale[f]) * incomplete_->masses()[f];
        }
        return incomplete_ != nullptr ? of_values : model.mass * of_row;
    }

    const PgkmRequest &request_;
    const PgkmMixtureOptions &options_;
    const IncompleteRows *const incomplete_;
    Session &session_;
    Monitor &monitor_;
    const Poll poll_ = [this] { monitor_.poll(); };
    const std::int32_t threads_;
    std::vector<std::size_t> all_;           // 0, 1, ... : the groups
    std::vector<std::int64_t> k_;            // of each group
    std::vector<PgkmProblem> problems_;      // likewise: its rows
    std::vector<TotalCovariance> totals_;    // likewise, where they are tied
    PgkmPoints points_;                      // as loaded
    std::shared_ptr<const LoadedRows> rows_; // unless all is given, to the only group
};

} // namespace

std::vector<MixtureModel> fit_mixtures(const PgkmRequest &request, Workplace &place, Monitor &monitor)
{
    if (request.may_lack_values == 0)
        return MixtureFitter(request, nullptr, place, monitor).run();
    const IncompleteRows rows(request.points, [&] { monitor.poll(); });
    PgkmRequest ordered = request;
    ordered.points = rows.points();
    ordered.resident = nullptr; // these rows end with the fit
    struct Unload {
        Session &session;
        ~Unload() { session.unload(); }
    } const unload = {place.session};
    std::vector<MixtureModel> models =
        MixtureFitter(ordered, rows.patterns().empty() ? nullptr : &rows, place, monitor).run();
    rows.restore(models[0].labels);
    return models;
}

} // namespace pgkm
