#include "engine/fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/contract.hpp"
#include "engine/options.hpp"
#include "engine/prepare.hpp"
#include "engine/processors.hpp"
#include "engine/session.hpp"
#include "engine/update.hpp"

namespace pgkm {
namespace {

// Work that one more CPU thread is worth starting for, in distance terms.
constexpr double work_per_thread = 5e6;

template <typename T>
constexpr PgkmElement element_of = sizeof(T) == sizeof(float) ? PGKM_FLOAT32 : PGKM_FLOAT64;

// One fit of points of type T on one backend.
template <typename T>
class Fitter {
  public:
    Fitter(const PgkmFitRequest &request, Session &session, Monitor &monitor)
        : request_(request), session_(session), monitor_(monitor), d_(request.points.d),
          k_(static_cast<std::int32_t>(request.options.init == PGKM_INIT_GIVEN
                                           ? request.k
                                           : std::min(request.k, request.points.n)))
    {
    }

    Model run()
    {
        load();
        Model best;
        // Given and first centroids are the same every time: one run is all of them.
        const PgkmInit init = request_.options.init;
        const bool repeatable = init == PGKM_INIT_GIVEN || init == PGKM_INIT_FIRST;
        const std::int32_t restarts = repeatable ? 1 : request_.options.n_init;
        for (std::int32_t restart = 0; restart < restarts; ++restart) {
            Model model = run_once(static_cast<std::uint32_t>(restart));
            if (restart == 0 || model.inertia < best.inertia)
                best = std::move(model);
        }
        best.center = standardization_.center;
        best.scale = standardization_.scale;
        best.backend = session_.name();
        return best;
    }

  private:
    // Loads the rows, transformed when the options ask for it, and takes their statistics.
    void load()
    {
        monitor_.enter(PGKM_LOADING);
        points_ = request_.points;
        const PgkmOptions &options = request_.options;
        if (options.standardize != 0) {
            session_.load(points_);
            const Summary raw = session_.summarise(true);
            standardization_ = standardization_of(raw.mean, raw.variance);
        }
        if (options.standardize != 0 || options.metric == PGKM_COSINE) {
            transformed_ = transform_rows(static_cast<const T *>(points_.values), points_.n, d_, standardization_,
                                          options.metric, monitor_.host());
            points_.values = transformed_.data();
        }
        session_.load(points_);
        const bool want_tol = options.tol > 0.0;
        summary_ = session_.summarise(want_tol);
        for (std::int32_t f = 0; f < d_; ++f)
            feature_exponents_.push_back(scale_exponent(summary_.max_abs[static_cast<std::size_t>(f)]));
        distance_bound({}, 0); // refuses what would overflow before any work is done
        double variance = 0.0;
        if (want_tol)
            for (const double v : summary_.variance)
                variance += v;
        tol_ = options.tol * (variance / d_);
    }

    Model run_once(std::uint32_t restart)
    {
        std::vector<T> centroids(static_cast<std::size_t>(k_) * static_cast<std::size_t>(d_));
        PgkmProblem problem = {};
        monitor_.begin_restart(static_cast<std::int32_t>(restart));
        problem.n_rows = points_.n;
        problem.k = k_;
        problem.centroids = centroids.data();
        problem.feature_exponent = feature_exponents_.data();
        problem.weight_exponent = points_.weights == nullptr ? 0 : scale_exponent(summary_.max_weight);
        problem.tol = tol_;
        if (request_.options.init == PGKM_INIT_GIVEN)
            given(centroids);
        else
            session_.seed(problem, {request_.options.init, request_.options.seed, restart});
        monitor_.enter(PGKM_ITERATING);
        session_.fit(problem, {request_.options.metric, request_.options.max_iter});
        return label(problem, centroids);
    }

    void given(std::vector<T> &centroids) const
    {
        const bool standardize = !standardization_.center.empty();
        std::transform(request_.options.init_centroids, request_.options.init_centroids + centroids.size(),
                       centroids.begin(), [](double value) { return static_cast<T>(value); });
        for (std::int32_t j = 0; j < k_; ++j)
            if (!transform_row(centroids.data() + std::int64_t{j} * d_, d_,
                               standardize ? standardization_.center.data() : nullptr,
                               standardize ? standardization_.scale.data() : nullptr, request_.options.metric))
                throw Error(PGKM_INVALID, "option init_centroids must not hold a zero vector for metric cosine");
    }

    // No (weighted) squared distance between a row and a centroid can be larger. Throws when it
    // is not finite.
    double distance_bound(const std::vector<T> &centroids, std::int32_t k) const
    {
        double bound = 0.0;
        for (std::int32_t f = 0; f < d_; ++f) {
            double low = summary_.min[static_cast<std::size_t>(f)];
            double high = summary_.max[static_cast<std::size_t>(f)];
            for (std::int32_t j = 0; j < k; ++j) {
                const double value = static_cast<double>(
                    centroids[static_cast<std::size_t>(j) * static_cast<std::size_t>(d_) +
                              static_cast<std::size_t>(f)]);
                low = std::min(low, value);
                high = std::max(high, value);
            }
            bound += (high - low) * (high - low);
        }
        bound *= summary_.max_weight * (1.0 + 0x1p-20); // the margin covers every rounding
        if (!std::isfinite(bound))
            throw Error(PGKM_INVALID, "weights and features are too large together: their squares overflow");
        return bound;
    }

    // The final assignment: labels, sizes and sums of squares of the centroids as they are.
    Model label(PgkmProblem &problem, const std::vector<T> &centroids)
    {
        monitor_.enter(PGKM_LABELLING);
        problem.distance_exponent = square_exponent(distance_bound(centroids, problem.k));
        const auto k = static_cast<std::size_t>(problem.k);
        const auto n = static_cast<std::size_t>(points_.n);
        Model model;
        model.sizes.resize(k);
        model.labels.resize(request_.want_labels != 0 ? n : 0);
        model.distances.resize(request_.want_distances != 0 ? n : 0);
        std::vector<PgkmInt128> within(k);
        PgkmAssignment out = {};
        out.labels = model.labels.empty() ? nullptr : model.labels.data();
        out.distances = model.distances.empty() ? nullptr : model.distances.data();
        out.within = within.data();
        out.sizes = model.sizes.data();
        session_.assign(problem, out);
        Int128 total = 0;
        for (const PgkmInt128 part : within) {
            model.within_ss.push_back(square_sum(join(part), problem.distance_exponent));
            total += join(part);
        }
        model.inertia = square_sum(total, problem.distance_exponent);
        model.centroids.assign(centroids.begin(),
                               centroids.begin() + static_cast<std::ptrdiff_t>(k * static_cast<std::size_t>(d_)));
        model.k = problem.k;
        model.d = d_;
        model.n = points_.n;
        model.n_iter = problem.n_iter;
        model.converged = problem.converged != 0;
        drop_empty_clusters(model);
        return model;
    }

    // Rows that repeat leave clusters that no row chooses; the others close ranks.
    static void drop_empty_clusters(Model &model)
    {
        std::vector<std::int32_t> renumbered(model.sizes.size(), 0);
        std::int32_t kept = 0;
        const auto d = static_cast<std::size_t>(model.d);
        for (std::size_t j = 0; j < renumbered.size(); ++j) {
            if (model.sizes[j] == 0)
                continue;
            const auto to = static_cast<std::size_t>(kept);
            model.sizes[to] = model.sizes[j];
            model.within_ss[to] = model.within_ss[j];
            if (to != j)
                std::copy_n(model.centroids.begin() + static_cast<std::ptrdiff_t>(j * d), d,
                            model.centroids.begin() + static_cast<std::ptrdiff_t>(to * d));
            renumbered[j] = kept++;
        }
        if (kept == model.k)
            return;
        model.k = kept;
        model.sizes.resize(static_cast<std::size_t>(kept));
        model.within_ss.resize(static_cast<std::size_t>(kept));
        model.centroids.resize(static_cast<std::size_t>(kept) * d);
        for (std::int32_t &label : model.labels)
            label = renumbered[static_cast<std::size_t>(label)];
    }

    const PgkmFitRequest     &request_;
    Session                  &session_;
    Monitor                  &monitor_;
    const std::int32_t        d_;
    const std::int32_t        k_;
    PgkmPoints                points_ = {};
    Standardization           standardization_;
    std::vector<T>            transformed_;
    Summary                   summary_{0};
    std::vector<std::int32_t> feature_exponents_;
    double                    tol_ = 0.0;
};

// As many threads as allowed, but no more than the work is worth starting.
std::int32_t useful_threads(std::int32_t setting, double work)
{
    const double useful = std::min(work / work_per_thread + 1.0, 4096.0);
    return std::min(setting == 0 ? usable_processors() : setting, static_cast<std::int32_t>(useful));
}

Model fit_on(const BackendChoice &choice, const PgkmFitRequest &request, Monitor &monitor, double work)
{
    monitor.begin_backend(choice.table->name);
    PgkmOpen open = {};
    open.threads = useful_threads(request.settings.cpu_threads, work);
    open.memory_limit = request.settings.memory_limit;
    open.device_memory_limit = request.settings.gpu_memory_limit;
    open.tuning = request.settings.tuning;
    open.host = monitor.host();
    Session session(choice, open);
    if (request.points.element == PGKM_FLOAT32)
        return Fitter<float>(request, session, monitor).run();
    return Fitter<double>(request, session, monitor).run();
}

// What auto may leave for the next backend: everything that is the device's fault.
bool next_backend_may_help(PgkmStatus status)
{
    return status == PGKM_UNAVAILABLE || status == PGKM_UNSUPPORTED || status == PGKM_DEVICE_ERROR ||
           status == PGKM_LIMIT || status == PGKM_OUT_OF_MEMORY;
}

void check_memory(const PgkmFitRequest &request)
{
    const PgkmPoints &points = request.points;
    const std::uint64_t need = pgkm_fit_estimate(points.n, points.d, request.k, points.element, &request.options,
                                                 points.weights != nullptr);
    const std::uint64_t limit = request.settings.memory_limit;
    if (limit == 0 || need <= limit)
        return;
    char text[256];
    std::snprintf(text, sizeof text,
                  "clustering %lld rows of %d features into %lld clusters needs an estimated %llu kB, more than "
                  "pg_kmeans.memory_limit (%llu kB)",
                  static_cast<long long>(points.n), points.d, static_cast<long long>(request.k),
                  static_cast<unsigned long long>(need / 1024), static_cast<unsigned long long>(limit / 1024));
    throw Error(PGKM_LIMIT, text);
}

} // namespace

Model fit_model(const PgkmFitRequest &request, Monitor &monitor)
{
    const PgkmPoints &points = request.points;
    if (points.n < 1 || points.d < 1)
        throw Error(PGKM_INVALID, "there are no rows to cluster");
    check_options(request.options, request.k, points.d);
    check_memory(request);
    const double work = fit_work(points.n, points.d, request.k, request.options);
    const std::vector<BackendChoice> choices = choose_backends(request.settings, work);
    std::string notice;
    for (std::size_t i = 0;; ++i) {
        try {
            Model model = fit_on(choices[i], request, monitor, work);
            model.notice = notice;
            return model;
        } catch (const Error &error) {
            if (i + 1 == choices.size() || !next_backend_may_help(error.status()))
                throw;
            if (error.status() == PGKM_DEVICE_ERROR)
                notice = std::string("the GPU failed (") + error.what() + "); the CPU finished the job";
        }
    }
}

} // namespace pgkm
