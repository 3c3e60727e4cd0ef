// fitter.cpp - restarts of a fit of k-means over loaded rows, and the choice of the best.
#include "engine/kmeans/fitter.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>

#include "engine/kmeans/batches.hpp"
#include "engine/kmeans/options.hpp"
#include "engine/kmeans/radius.hpp"
#include "engine/kmeans/refine.hpp"
#include "engine/kmeans/size_bounds.hpp"
#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"
#include "backend/update.hpp"

namespace pgkm {
namespace {

// Rows that repeat leave clusters that no row chooses; the others close ranks.
void drop_empty_clusters(Model &model)
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

template <typename T>
class Fitter {
  public:
    Fitter(const LoadedRows &rows, const FitTask &task, Session &session, Monitor &monitor)
        : rows_(rows), task_(task), session_(session), monitor_(monitor)
    {
    }

    std::vector<Model> run()
    {
        const std::int32_t restarts = restarts_of(task_.options);
        const std::size_t fits = task_.k.size();
        const auto together = std::max<std::int64_t>(1, task_.at_once / std::ssize(task_.k));
        std::vector<Model> best(fits);
        for (std::int64_t restart = 0; restart < restarts; restart += together) {
            std::vector<Model> models =
                run_once(static_cast<std::uint32_t>(restart), at(std::min(together, restarts - restart)));
            for (std::size_t p = 0; p < models.size(); ++p)
                if ((restart == 0 && p < fits) || is_better(models[p], best[p % fits]))
                    best[p % fits] = std::move(models[p]);
        }
        for (std::size_t i = 0; i < fits; ++i) {
            const LoadedGroup &group = group_of(i);
            if (are_apart())
                label_rows(rows_, session_, task_.want_labels, task_.want_distances, best[i]);
            best[i].center = group.standardization.center;
            best[i].scale = group.standardization.scale;
            if (task_.options.tol > 0.0 && best[i].center.empty())
                describe_rows(group.summary, best[i]);
        }
        return best;
    }

  private:
    static void describe_rows(const Summary &summary, Model &model)
    {
        model.mean = summary.mean;
        for (const double variance : summary.variance)
            model.deviation.push_back(std::sqrt(variance));
    }

    // Where a radius decides how many clusters there are, the fewer the better.
    bool is_better(const Model &model, const Model &than) const
    {
        if (task_.options.max_radius > 0.0 && model.k != than.k)
            return model.k < than.k;
        return model.inertia < than.inertia;
    }

    // Whether several restarts go to the backend together: labels are of the best alone then.
    bool are_apart() const { return task_.at_once > 1; }

    const LoadedGroup &group_of(std::size_t problem) const
    {
        return rows_.groups()[rows_.groups().size() == 1 ? 0 : problem % task_.k.size()];
    }

    // So many restarts from that one on: those of all k, or groups, one behind the other.
    std::vector<Model> run_once(std::uint32_t restart, std::size_t count)
    {
        monitor_.begin_restart(static_cast<std::int32_t>(restart));
        std::vector<PgkmProblem> problems = make_problems(count);
        if (centroids_are_given(task_.options))
            for (std::size_t g = 0; g < problems.size(); ++g)
                given(g);
        else
            seed(problems, restart);
        const bool bounded = sizes_are_bounded(task_.options);
        const PgkmFitParams params = {task_.options.metric, task_.options.max_iter};
        if (!bounded || task_.options.refine != 0) {
            monitor_.enter(PGKM_ITERATING);
            if (task_.options.batch_size > 0)
                fit_batches(rows_, task_, session_, monitor_, problems, centroids_);
            else
                session_.run(&PgkmBackend::fit, problems, &params);
        }
        if (task_.options.refine != 0) {
            monitor_.enter(PGKM_REFINING);
            refine(rows_, task_, restart, session_, monitor_, problems, centroids_);
        }
        if (bounded)
            return fit_bounded(problems);
        if (task_.options.max_radius > 0.0) {
            monitor_.enter(PGKM_ITERATING);
            keep_within_radius(rows_, task_, session_, monitor_, problems, centroids_);
        }
        monitor_.enter(PGKM_LABELLING);
        return label(problems);
    }

    void seed(std::vector<PgkmProblem> &problems, std::uint32_t restart)
    {
        std::map<PgkmInit, std::vector<std::size_t>> ways; // those of one init go to the backend together
        for (std::size_t p = 0; p < problems.size(); ++p)
            ways[init(p)].push_back(p);
        for (const auto &[init, numbers] : ways) {
            const PgkmSeedParams params = {init, task_.options.seed, restart};
            std::vector<PgkmProblem> some;
            for (const std::size_t p : numbers)
                some.push_back(problems[p]);
            if (task_.options.batch_size > 0)
                seed_in_samples(some, params);
            else
                session_.run(&PgkmBackend::seed, some, &params);
            for (std::size_t i = 0; i < numbers.size(); ++i)
                problems[numbers[i]] = some[i];
        }
    }

    PgkmInit init(std::size_t problem) const
    {
        return init_of(task_.options, static_cast<double>(group_of(problem).n), rows_.d(),
                       static_cast<double>(task_.k[problem % task_.k.size()]));
    }

    // Where a sample has too few distinct rows, all rows are taken.
    void seed_in_samples(std::vector<PgkmProblem> &problems, const PgkmSeedParams &params)
    {
        for (PgkmProblem &problem : problems) {
            std::vector<PgkmProblem> sample = {problem};
            sample[0].n_rows = rows_to_seed(task_, problem);
            session_.run(&PgkmBackend::seed, sample, &params);
            if (sample[0].k < problem.k && sample[0].n_rows < problem.n_rows) {
                sample = {problem};
                session_.run(&PgkmBackend::seed, sample, &params);
            }
            problem.k = sample[0].k;
        }
    }

    std::vector<PgkmProblem> make_problems(std::size_t restarts)
    {
        const std::size_t fits = task_.k.size();
        std::vector<PgkmProblem> problems(fits * restarts);
        centroids_.resize(problems.size());
        for (std::size_t p = 0; p < problems.size(); ++p) {
            const LoadedGroup &group = group_of(p);
            const std::int64_t k = task_.k[p % fits];
            PgkmProblem &problem = problems[p];
            problem.first_row = group.first_row;
            problem.n_rows = group.n;
            problem.restart = static_cast<std::uint32_t>(p / fits);
            problem.k = static_cast<std::int32_t>(centroids_are_given(task_.options) ? k : std::min(k, group.n));
            centroids_[p].assign(static_cast<std::size_t>(problem.k) * static_cast<std::size_t>(rows_.d()), T{});
            problem.centroids = centroids_[p].data();
            problem.feature_scales = group.feature_scales.data();
            problem.weight_exponent = group.weight_exponent;
            problem.tol = tolerance(group);
        }
        return problems;
    }

    // As scikit-learn's: relative to the mean variance of the features.
    double tolerance(const LoadedGroup &group) const
    {
        double variance = 0.0;
        if (task_.options.tol > 0.0)
            for (const double v : group.summary.variance)
                variance += v;
        return task_.options.tol * (variance / rows_.d());
    }

    void given(std::size_t g)
    {
        const Standardization &standardization = rows_.groups()[g].standardization;
        const bool standardize = !standardization.center.empty();
        std::vector<T> &centroids = centroids_[g];
        const bool from_model = model_is_given(task_.options);
        const double *values =
            from_model ? task_.options.init_model.centroids.values : task_.options.init_centroids.values;
        std::transform(values, values + centroids.size(), centroids.begin(),
                       [](double value) { return static_cast<T>(value); });
        if (from_model) // its centroids are in the space of the distance
            return;
        for (auto row = centroids.begin(); row != centroids.end(); row += rows_.d())
            if (!transform_row(&*row, rows_.d(), standardize ? standardization.center.data() : nullptr,
                               standardize ? standardization.scale.data() : nullptr, task_.options.metric))
                throw Error(PGKM_INVALID, "option init_centroids must not hold a zero vector for metric cosine");
    }

    // Iterations and final assignment of sizes within bounds.
    std::vector<Model> fit_bounded(std::vector<PgkmProblem> &problems)
    {
        monitor_.enter(PGKM_ITERATING);
        const PgkmFitParams params = {task_.options.metric, task_.options.max_iter};
        std::vector<PgkmSizeBounds> bounds;
        std::vector<LargeArray<std::int32_t>> labels;
        Wanted wanted(problems.size());
        for (std::size_t g = 0; g < problems.size(); ++g) {
            keep_all(problems[g], centroids_[g]);
            bounds.push_back(size_bounds(task_.options, problems[g].n_rows, problems[g].k));
            labels.emplace_back(at(problems[g].n_rows));
            wanted.assignments[g].labels = labels[g].data();
        }
        Session &session = session_for_sizes();
        session.run(&PgkmBackend::fit_sizes, problems, &params, bounds.data(), wanted.assignments.data());
        for (std::size_t g = 0; g < problems.size(); ++g) {
            prepare_assignment(g, problems[g], wanted);
            wanted.assignments[g].labels = labels[g].data();
        }
        const PgkmFitParams *const none = nullptr;
        session.run(&PgkmBackend::fit_sizes, problems, none, bounds.data(), wanted.assignments.data());
        for (std::size_t g = 0; g < problems.size(); ++g)
            if (!wanted.models[g].labels.empty())
                wanted.models[g].labels = std::move(labels[g]);
        return models_of(problems, wanted);
    }

    // The CPU's, where the backend at work leaves sizes to it.
    Session &session_for_sizes()
    {
        if (session_.table()->fit_sizes != nullptr)
            return session_;
        if (!for_sizes_) {
            PgkmOpen open = {};
            open.threads = task_.threads;
            open.memory_limit = task_.memory_limit;
            open.host = monitor_.host();
            for_sizes_ = std::make_unique<Session>(cpu_choice(), open);
            for_sizes_->load(rows_.points());
        }
        return *for_sizes_;
    }

    // As many clusters as wanted, even where fewer rows differ: centroids are repeated.
    void keep_all(PgkmProblem &problem, std::vector<T> &centroids) const
    {
        const std::size_t found = static_cast<std::size_t>(problem.k) * static_cast<std::size_t>(rows_.d());
        for (std::size_t i = found; i < centroids.size(); ++i)
            centroids[i] = centroids[i - found];
        problem.k = static_cast<std::int32_t>(centroids.size() / static_cast<std::size_t>(rows_.d()));
    }

    // What the final assignment shall return, and where.
    struct Wanted {
        explicit Wanted(std::size_t count) : models(count), within(count), assignments(count) {}
        std::vector<Model> models;
        std::vector<std::vector<PgkmInt128>> within;
        std::vector<PgkmAssignment> assignments;
    };

    // The final assignment: labels, sizes and sums of squares of the centroids as they are.
    std::vector<Model> label(std::vector<PgkmProblem> &problems)
    {
        Wanted wanted(problems.size());
        for (std::size_t g = 0; g < problems.size(); ++g)
            prepare_assignment(g, problems[g], wanted);
        session_.run(&PgkmBackend::assign, problems, wanted.assignments.data());
        return models_of(problems, wanted);
    }

    void prepare_assignment(std::size_t g, PgkmProblem &problem, Wanted &wanted) const
    {
        Model &model = wanted.models[g];
        problem.distance_exponent =
            square_exponent(distance_bound(group_of(g), rows_.d(), centroids_[g].data(), problem.k, monitor_));
        const auto n = static_cast<std::size_t>(problem.n_rows);
        model.sizes.resize(static_cast<std::size_t>(problem.k));
        model.labels.resize(task_.want_labels && !are_apart() ? n : 0);
        model.distances.resize(task_.want_distances && !are_apart() ? n : 0);
        wanted.within[g].resize(static_cast<std::size_t>(problem.k));
        PgkmAssignment &assignment = wanted.assignments[g];
        assignment = {};
        assignment.labels = model.labels.empty() ? nullptr : model.labels.data();
        assignment.distances = model.distances.empty() ? nullptr : model.distances.data();
        assignment.within = wanted.within[g].data();
        assignment.sizes = model.sizes.data();
    }

    std::vector<Model> models_of(const std::vector<PgkmProblem> &problems, Wanted &wanted) const
    {
        for (std::size_t g = 0; g < problems.size(); ++g) {
            finish(problems[g], centroids_[g], wanted.within[g], wanted.models[g]);
            wanted.models[g].init = init(g);
        }
        return std::move(wanted.models);
    }

    void finish(const PgkmProblem &problem, const std::vector<T> &centroids, const std::vector<PgkmInt128> &within,
                Model &model) const
    {
        Int128 total = 0;
        for (const PgkmInt128 part : within) {
            model.within_ss.push_back(square_sum(join(part), problem.distance_exponent));
            total += join(part);
        }
        model.inertia = square_sum(total, problem.distance_exponent);
        model.k = problem.k;
        model.d = rows_.d();
        model.n = problem.n_rows;
        model.n_iter = problem.n_iter;
        model.converged = problem.converged != 0;
        model.centroids.assign(centroids.begin(),
                               centroids.begin() + std::ptrdiff_t{problem.k} * std::ptrdiff_t{rows_.d()});
        drop_empty_clusters(model);
    }

    const LoadedRows &rows_;
    const FitTask &task_;
    Session &session_;
    Monitor &monitor_;
    std::vector<std::vector<T>> centroids_; // of each group
    std::unique_ptr<Session> for_sizes_;
};

} // namespace

std::vector<Model> fit_loaded(const LoadedRows &rows, const FitTask &task, Session &session, Monitor &monitor)
{
    return rows.points().element == PGKM_FLOAT32 ? Fitter<float>(rows, task, session, monitor).run()
                                                 : Fitter<double>(rows, task, session, monitor).run();
}

void label_rows(const LoadedRows &rows, Session &session, bool want_labels, bool want_distances, Model &model)
{
    if (!want_labels && !want_distances)
        return;
    std::vector<float> narrow;
    void *centroids = model.centroids.data();
    if (rows.points().element == PGKM_FLOAT32) { // which they were
        std::transform(model.centroids.begin(), model.centroids.end(), std::back_inserter(narrow),
                       [](double value) { return static_cast<float>(value); });
        centroids = narrow.data();
    }
    model.labels.resize(want_labels ? at(model.n) : 0);
    model.distances.resize(want_distances ? at(model.n) : 0);
    PgkmAssignment wanted = {};
    wanted.labels = want_labels ? model.labels.data() : nullptr;
    wanted.distances = want_distances ? model.distances.data() : nullptr;
    session.assign(model.n, model.k, centroids, wanted);
}

} // namespace pgkm
