#include "engine/mixture.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "engine/error.hpp"
#include "engine/mixture_clusters.hpp"
#include "engine/mixture_options.hpp"
#include "engine/moments.hpp"
#include "engine/session.hpp"

namespace pgkm {
namespace {

std::size_t at(std::int64_t i)
{
    return static_cast<std::size_t>(i);
}

PgkmStatus has_em_step(const PgkmBackend &table, PgkmError *error)
{
    const PgkmStatus status = table.moments(nullptr, nullptr, 0, nullptr, error);
    return status == PGKM_OK ? table.em_step(nullptr, nullptr, 0, nullptr, nullptr, error) : status;
}

// Fits of one request on one backend.
class MixtureFitter {
public:
    MixtureFitter(const PgkmMixtureRequest &request, Session &session, Monitor &monitor)
        : request_(request), options_(request.options), session_(session), monitor_(monitor), host_(monitor.host())
    {
    }

    MixtureModel run()
    {
        monitor_.enter(PGKM_LOADING);
        if (all_given(options_))
            session_.load(request_.points);
        else
            clusters_ = std::make_unique<MixtureClusters>(request_, session_, monitor_);
        if (options_.covariance_type == PGKM_COVARIANCE_TIED)
            find_total();
        MixtureModel best;
        // Everything given is the same every time: one run is all of them.
        const bool repeatable = all_given(options_);
        for (std::int32_t restart = 0; restart < (repeatable ? 1 : options_.n_init); ++restart) {
            MixtureModel model = run_once(restart);
            if (restart == 0 || model.log_likelihood > best.log_likelihood)
                best = std::move(model);
        }
        return best;
    }

private:
    void poll() const
    {
        if (host_.cancelled(host_.arg) != 0)
            throw Error(PGKM_CANCELLED, "cancelled");
    }

    // The covariance of all rows, which the components' responsibilities divide but do not change.
    void find_total()
    {
        const std::int32_t d = request_.points.d;
        const double n = static_cast<double>(request_.points.n);
        total_.mean = sample_mean(request_.points);
        total_.matrix.resize(at(std::int64_t{d} * d));
        std::vector<double> sums(at(d)), cross(at(triangle_size(d)));
        PgkmMoments moments = {total_.mean.data(), sums.data(), cross.data()};
        session_.moments(moments);
        for (std::int64_t a = 0, i = 0; a < d; ++a)
            for (std::int64_t b = 0; b <= a; ++b, ++i)
                total_.matrix[at(a * d + b)] = total_.matrix[at(b * d + a)] =
                    (cross[at(i)] - sums[at(a)] * (sums[at(b)] / n)) / n;
        for (std::int64_t f = 0; f < d; ++f)
            total_.mean[at(f)] += sums[at(f)] / n;
    }

    MixtureModel run_once(std::int32_t restart)
    {
        monitor_.begin_restart(restart);
        MixtureModel model;
        model.n = request_.points.n;
        MixtureFactors factors = begin(model.parameters, restart);
        monitor_.enter(PGKM_ITERATING);
        iterate(model, factors);
        monitor_.enter(PGKM_LABELLING);
        model.labels.resize(request_.want_labels != 0 ? at(model.n) : 0);
        PgkmMixtureSums sums = {};
        sums.labels = model.labels.empty() ? nullptr : model.labels.data();
        session_.em_step(factors.view(model.parameters), sums);
        model.log_likelihood = checked(sums.log_likelihood);
        return model;
    }

    // The first parameters: from clusters of k-means, then whatever is given instead.
    MixtureFactors begin(MixtureParameters &parameters, std::int32_t restart)
    {
        parameters.type = options_.covariance_type;
        parameters.d = request_.points.d;
        parameters.k = static_cast<std::int32_t>(request_.k);
        if (!all_given(options_))
            begin_with_clusters(parameters, restart);
        const std::int64_t k = parameters.k;
        if (options_.weights_init.values != nullptr)
            parameters.weights.assign(options_.weights_init.values, options_.weights_init.values + k);
        if (options_.means_init.values != nullptr)
            parameters.means.assign(options_.means_init.values, options_.means_init.values + k * parameters.d);
        const Poll poll = [this] { this->poll(); };
        if (options_.precisions_init.values != nullptr)
            return factorise_precisions(parameters, options_.precisions_init.values, poll);
        return factorise(parameters, poll);
    }

    void begin_with_clusters(MixtureParameters &parameters, std::int32_t restart)
    {
        const Model found = clusters_->find(options_.seed + static_cast<std::uint64_t>(restart));
        if (found.k < request_.k && any_given(options_))
            throw Error(PGKM_INVALID, "there are fewer distinct rows (" + std::to_string(found.k) +
                                          ") than components for which options give first values (" +
                                          std::to_string(request_.k) + ")");
        parameters.k = found.k;
        parameters.means = found.centroids;
        parameters.weights.resize(at(found.k));
        MixtureSums sums(parameters.type, parameters.k, parameters.d);
        PgkmMixture labelled = {};
        labelled.k = parameters.k;
        labelled.covariance_type = parameters.type;
        labelled.means = parameters.means.data();
        labelled.labels = found.labels.data();
        session_.em_step(labelled, sums.view);
        maximise(parameters, sums, total_, options_.reg_covar);
    }

    void iterate(MixtureModel &model, MixtureFactors &factors)
    {
        MixtureParameters &parameters = model.parameters;
        MixtureSums sums(parameters.type, parameters.k, parameters.d);
        const double n = static_cast<double>(model.n);
        double before = -std::numeric_limits<double>::infinity();
        while (static_cast<std::int32_t>(model.trace.size()) < options_.max_iter && !model.converged) {
            poll();
            session_.em_step(factors.view(parameters), sums.view);
            model.trace.push_back(checked(sums.view.log_likelihood));
            maximise(parameters, sums, total_, options_.reg_covar);
            factors = factorise(parameters, [this] { poll(); });
            const double change = model.trace.back() / n - before;
            before = model.trace.back() / n;
            model.converged = std::fabs(change) < options_.tol;
            monitor_.count_iteration(static_cast<std::int32_t>(model.trace.size()), change);
        }
    }

    static double checked(double log_likelihood)
    {
        if (!std::isfinite(log_likelihood))
            throw Error(PGKM_INVALID, "features are too large: their squares overflow");
        return log_likelihood;
    }

    const PgkmMixtureRequest &request_;
    const PgkmMixtureOptions &options_;
    Session &session_;
    Monitor &monitor_;
    const PgkmHost host_;
    TotalCovariance total_; // tied
    std::unique_ptr<MixtureClusters> clusters_; // unless all is given
};

void check_memory(const PgkmMixtureRequest &request)
{
    const std::uint64_t need = pgkm_mixture_estimate(&request), limit = request.settings.memory_limit;
    if (limit != 0 && need > limit)
        throw Error(PGKM_LIMIT, "a mixture of " + std::to_string(request.k) + " components of " +
                                    std::to_string(request.points.d) + " features needs an estimated " +
                                    std::to_string(need / 1024) + " kB, more than is left of pg_kmeans.memory_limit (" +
                                    std::to_string(limit / 1024) + " kB)");
}

} // namespace

double mixture_work(const PgkmMixtureRequest &request)
{
    const double d = request.points.d;
    const bool square = request.options.covariance_type == PGKM_COVARIANCE_FULL;
    return static_cast<double>(request.points.n) * d * (square ? d : 2.0) *
           static_cast<double>(std::min(request.k, request.points.n)) * std::min<double>(request.options.max_iter, 30) *
           request.options.n_init;
}

MixtureModel fit_mixture(const PgkmMixtureRequest &request, Monitor &monitor)
{
    if (request.points.n < 1 || request.points.d < 1)
        throw Error(PGKM_INVALID, "there are no rows to fit");
    check_mixture_options(request.options, request.k, request.points.d);
    check_memory(request);
    const double work = mixture_work(request);
    MixtureModel model;
    std::string notice;
    on_first_backend(request.settings, work, has_em_step, &notice, [&](const BackendChoice &choice) {
        monitor.begin_backend(choice.table->name);
        PgkmOpen open = open_options(request.settings, monitor.host(), work);
        open.segment = request.segment;
        Session session(choice, open);
        model = MixtureFitter(request, session, monitor).run();
    });
    model.notice = notice;
    return model;
}

} // namespace pgkm
