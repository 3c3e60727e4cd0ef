// fitter.cpp - restarts of a fit of k-means over loaded rows, and the choice of the best.
#include "engine/kmeans/fitter.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "cpu/cpu_backend.hpp"
#include "engine/kmeans/batches.hpp"
#include "engine/kmeans/join.hpp"
#include "engine/kmeans/options.hpp"
#include "engine/kmeans/radius.hpp"
#include "engine/kmeans/refine.hpp"
#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"
#include "backend/update.hpp"

namespace pgkm {
namespace {

// Rows that repeat leave clusters that no row chooses; the others close ranks.
void drop_empty_clusters(Model &model)
{
    const std::vector<std::int64_t> sizes = model.sizes;
    const auto keep = [&](auto &values, std::size_t width) {
        auto to = values.begin();
        for (std::size_t j = 0; j < sizes.size() && !values.empty(); ++j)
            if (sizes[j] != 0)
                to = std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(j * width), width, to);
        values.erase(to, values.end());
    };
    const auto kept = std::count_if(sizes.begin(), sizes.end(), [](std::int64_t size) { return size != 0; });
    if (kept == model.k)
        return;
    std::vector<std::int32_t> numbers; // new ones
    for (std::int32_t next = 0; const std::int64_t size : sizes)
        numbers.push_back(size != 0 ? next++ : 0);
    for (std::int32_t &label : model.labels)
        label = numbers[at(label)];
    keep(model.sizes, 1);
    keep(model.within_ss, 1);
    keep(model.masses, 1);
    keep(model.centroids, at(model.d));
    keep(model.means, at(model.d));
    model.k = static_cast<std::int32_t>(kept);
}

template <typename T>
class Fitter {
  public:
    Fitter(const LoadedRows &rows, const FitTask &task, Session &session, Monitor &monitor)
        : rows_(rows), task_(task), session_(session), monitor_(monitor), fits_{rows, task, session, monitor, {}, {}}
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
            const LoadedGroup &group = rows_.group_of(problems()[i]);
            if (are_apart())
                label_rows(rows_, session_, task_.want_labels, task_.want_distances, best[i]);
            best[i].center = group.standardization.center;
            best[i].scale = group.standardization.scale;
            if (task_.options.tol > 0.0 && best[i].center.empty()) {
                best[i].mean = group.summary.mean;
                for (const double variance : group.summary.variance)
                    best[i].deviation.push_back(std::sqrt(variance));
            }
        }
        return best;
    }

  private:
    std::vector<PgkmProblem> &problems() { return fits_.problems; }

    // Where a radius decides how many clusters there are, the fewer the better.
    bool is_better(const Model &model, const Model &than) const
    {
        if (task_.options.max_radius > 0.0 && model.k != than.k)
            return model.k < than.k;
        return model.inertia < than.inertia;
    }

    // Whether several restarts go to the backend together: labels are of the best alone then.
    bool are_apart() const { return task_.at_once > 1; }

    // So many restarts from that one on: those of all k, or groups, one behind the other.
    std::vector<Model> run_once(std::uint32_t restart, std::size_t count)
    {
        monitor_.begin_restart(static_cast<std::int32_t>(restart));
        make_problems(count);
        if (task_.labels != nullptr)
            return take_labels();
        if (centroids_are_given(task_.options))
            begin_with_given(restart);
        else
            seed(restart);
        const bool bounded = sizes_are_bounded(task_.options);
        if (!bounded || task_.options.refine != 0) {
            monitor_.enter(PGKM_ITERATING);
            if (task_.options.batch_size > 0)
                fit_batches(fits_);
            else
                fits_.iterate(problems(), task_.options.max_iter);
        }
        if (task_.options.refine != 0) {
            monitor_.enter(PGKM_REFINING);
            refine(fits_, restart);
        }
        if (bounded)
            return fit_bounded();
        if (task_.options.max_radius > 0.0) {
            monitor_.enter(PGKM_ITERATING);
            keep_within_radius(fits_);
        }
        // The final assignment: labels, sizes and sums of squares of the centroids as they are.
        monitor_.enter(PGKM_LABELLING);
        std::vector<Assigned> assigned(problems().size());
        for (std::size_t p = 0; p < assigned.size(); ++p)
            want_model(problems()[p], assigned[p]);
        fits_.assign(problems(), assigned);
        return models_of(assigned);
    }

    void seed(std::uint32_t restart)
    {
        std::map<PgkmInit, std::vector<std::size_t>> ways; // those of one init go to the backend together
        for (std::size_t p = 0; p < problems().size(); ++p)
            ways[init(p)].push_back(p);
        for (const auto &[init, numbers] : ways)
            seed_some(numbers, {init, task_.options.seed, restart, 0});
    }

    void seed_some(const std::vector<std::size_t> &numbers, const PgkmSeedParams &params)
    {
        std::vector<PgkmProblem> some;
        for (const std::size_t p : numbers)
            some.push_back(problems()[p]);
        if (task_.options.batch_size > 0)
            seed_in_samples(some, params);
        else
            seeder(params).run(&PgkmBackend::seed, some, &params);
        for (std::size_t i = 0; i < numbers.size(); ++i)
            problems()[numbers[i]] = some[i];
    }

    // Who chooses first centroids so.
    Session &seeder(const PgkmSeedParams &params)
    {
        const bool by_weight = params.init == PGKM_INIT_RANDOM && rows_.points().weights != nullptr;
        const bool by_cpu = by_weight || params.init == PGKM_INIT_OPTIMAL || params.kept > 0;
        return by_cpu && !rows_.are_spread() ? on_cpu() : session_;
    }

    PgkmInit init(std::size_t problem)
    {
        const std::int64_t k = task_.init_k != 0 ? task_.init_k : task_.k[problem % task_.k.size()];
        return init_of(task_.options, static_cast<double>(problems()[problem].n_rows), rows_.d(),
                       static_cast<double>(k));
    }

    // Where a sample has too few distinct rows, all rows are taken.
    void seed_in_samples(std::vector<PgkmProblem> &problems, const PgkmSeedParams &params)
    {
        for (PgkmProblem &problem : problems) {
            std::vector<PgkmProblem> sample = {problem};
            sample[0].n_rows = rows_to_seed(task_, problem);
            seeder(params).run(&PgkmBackend::seed, sample, &params);
            if (sample[0].k < problem.k && sample[0].n_rows < problem.n_rows) {
                sample = {problem};
                seeder(params).run(&PgkmBackend::seed, sample, &params);
            }
            problem.k = sample[0].k;
        }
    }

    void make_problems(std::size_t restarts)
    {
        const std::size_t fits = task_.k.size();
        fits_.problems.assign(fits * restarts, {});
        fits_.centroids.resize(fits * restarts);
        for (std::size_t p = 0; p < fits * restarts; ++p) {
            const std::size_t place = task_.groups.empty() ? p % fits : task_.groups[p % fits];
            const LoadedGroup &group = rows_.groups()[rows_.groups().size() == 1 ? 0 : place];
            const std::int64_t k = task_.k[p % fits];
            PgkmProblem &problem = fits_.problems[p];
            problem.first_row = group.first_row;
            problem.n_rows = group.n;
            problem.restart = static_cast<std::uint32_t>(p / fits);
            problem.k = static_cast<std::int32_t>(std::min(k, std::max<std::int64_t>(group.n, clusters_given())));
            fits_.centroids[p].assign(at(std::int64_t{problem.k} * rows_.d()), T{});
            problem.centroids = fits_.centroids[p].data();
            problem.feature_scales = group.feature_scales.data();
            problem.weight_exponent = group.weight_exponent;
            problem.tol = tolerance(group);
        }
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

    std::int32_t clusters_given() const
    {
        const PgkmOptions &options = task_.options;
        return (model_is_given(options) ? options.init_model.centroids : options.init_centroids).extent[0];
    }

    // Of a model that has more clusters than are wanted some go; k-means++ adds those that one of fewer lacks.
    void begin_with_given(std::uint32_t restart)
    {
        std::vector<std::size_t> less, more;
        for (std::size_t p = 0; p < problems().size(); ++p) {
            given(p);
            if (problems()[p].k != clusters_given())
                (problems()[p].k < clusters_given() ? less : more).push_back(p);
        }
        if (!less.empty())
            drop_clusters(less);
        if (!more.empty())
            seed_some(more, {PGKM_INIT_KMEANS_PLUS_PLUS, task_.options.seed, restart, clusters_given()});
    }

    // What each cluster of the model weighs among these rows decides.
    void drop_clusters(const std::vector<std::size_t> &numbers)
    {
        std::vector<PgkmProblem> whole;
        std::vector<Assigned> assigned(numbers.size());
        for (const std::size_t p : numbers) {
            assigned[whole.size()].masses.resize(at(clusters_given()));
            whole.push_back(problems()[p]);
            whole.back().k = clusters_given();
        }
        fits_.assign(whole, assigned);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            PgkmProblem &problem = problems()[numbers[i]];
            std::vector<T> &centroids = fits_.centroids[numbers[i]];
            Centres centres = {{centroids.begin(), centroids.end()}, {}, rows_.d()};
            for (const PgkmInt128 mass : assigned[i].masses)
                centres.masses.push_back(to_double(join(mass)));
            centres.ids.resize(centres.masses.size());
            std::iota(centres.ids.begin(), centres.ids.end(), 0);
            join_clusters(centres, problem.k, session_.pool(), monitor_);
            std::map<std::int32_t, std::size_t> places; // in centres, of each id
            for (std::size_t j = 0; j < centres.ids.size(); ++j)
                places[centres.ids[j]] = j;
            for (std::int32_t id = 0; id < problem.k; ++id) {
                // Of those beyond the last id the first that is left.
                const auto from = places.contains(id) ? places.find(id) : places.lower_bound(problem.k);
                T *const to = centroids.data() + std::int64_t{id} * rows_.d();
                const auto first = centres.centroids.begin() + static_cast<std::ptrdiff_t>(from->second) * rows_.d();
                std::transform(first, first + rows_.d(), to, [](double value) { return static_cast<T>(value); });
                if (task_.options.metric == PGKM_COSINE)
                    normalise(to, rows_.d());
                places.erase(from);
            }
            centroids.resize(at(std::int64_t{problem.k} * rows_.d()));
        }
    }

    void given(std::size_t p)
    {
        const Standardization &standardization = rows_.group_of(problems()[p]).standardization;
        const bool standardize = !standardization.center.empty();
        std::vector<T> &centroids = fits_.centroids[p];
        const bool from_model = model_is_given(task_.options);
        const double *values =
            from_model ? task_.options.init_model.centroids.values : task_.options.init_centroids.values;
        const std::size_t count = at(std::int64_t{clusters_given()} * rows_.d());
        centroids.resize(std::max(centroids.size(), count));
        problems()[p].centroids = centroids.data();
        std::transform(values, values + count, centroids.begin(), [](double value) { return static_cast<T>(value); });
        if (from_model) // its centroids are in the space of the distance
            return;
        for (auto row = centroids.begin(); row != centroids.end(); row += rows_.d())
            if (!transform_row(&*row, rows_.d(), standardize ? standardization.center.data() : nullptr,
                               standardize ? standardization.scale.data() : nullptr, task_.options.metric))
                throw Error(PGKM_INVALID, "option init_centroids must not hold a zero vector for metric cosine");
    }

    // Of cosine a mean of length 0 stays.
    std::vector<Model> take_labels()
    {
        monitor_.enter(PGKM_LABELLING);
        PgkmProblem &problem = problems()[0];
        std::vector<Assigned> assigned(1);
        Assigned &all = assigned[0];
        all.labels.assign(task_.labels, task_.labels + problem.n_rows);
        all.masses.resize(at(problem.k));
        all.totals.resize(all.masses.size() * at(rows_.d()));
        fit_sizes(nullptr, nullptr, assigned);
        std::vector<Int128> totals(at(rows_.d()));
        for (std::size_t j = 0; j < all.masses.size(); ++j) {
            monitor_.poll();
            std::transform(all.totals.data() + j * totals.size(), all.totals.data() + (j + 1) * totals.size(),
                           totals.data(), join);
            new_centroid(problem, rows_.d(), task_.options.metric, totals.data(), join(all.masses[j]),
                         fits_.centroids[0].data() + j * totals.size());
        }
        want_model(problem, all);
        fit_sizes(nullptr, nullptr, assigned);
        return models_of(assigned);
    }

    // Iterations and final assignment of sizes within bounds.
    std::vector<Model> fit_bounded()
    {
        monitor_.enter(PGKM_ITERATING);
        const PgkmFitParams params = {task_.options.metric, task_.options.max_iter};
        const double *const weights = rows_.points().weights;
        std::vector<PgkmSizeBounds> bounds;
        std::vector<Assigned> assigned(problems().size());
        for (std::size_t p = 0; p < assigned.size(); ++p) {
            keep_all(problems()[p], fits_.centroids[p]);
            const std::vector<PgkmSizeBounds> some =
                size_bounds(task_.options, problems()[p].n_rows, problems()[p].k,
                            weights == nullptr ? nullptr : weights + problems()[p].first_row);
            if (bounds_differ(task_.options) && !has_known_order())
                deal_out(some, problems()[p], fits_.centroids[p]);
            bounds.insert(bounds.end(), some.begin(), some.end());
            assigned[p].labels.resize(at(problems()[p].n_rows));
        }
        fit_sizes(&params, bounds.data(), assigned);
        for (std::size_t p = 0; p < assigned.size(); ++p)
            want_model(problems()[p], assigned[p]);
        fit_sizes(nullptr, nullptr, assigned);
        return models_of(assigned);
    }

    // Whether the user knows which cluster is which before the fit.
    bool has_known_order() const
    {
        const PgkmInit init = task_.options.init;
        return centroids_are_given(task_.options) ||
               (task_.options.refine == 0 && (init == PGKM_INIT_FIRST || init == PGKM_INIT_OPTIMAL));
    }

    // Drawn centroids change places: the one that most rows are near gets the widest bounds, and so on.
    void deal_out(const std::vector<PgkmSizeBounds> &bounds, const PgkmProblem &problem, std::vector<T> &centroids)
    {
        std::vector<PgkmProblem> some = {problem};
        std::vector<Assigned> near(1);
        near[0].masses.resize(bounds.size());
        fits_.assign(some, near);
        const auto ranked = [&](auto &&is_above) {
            std::vector<std::size_t> numbers(bounds.size());
            std::iota(numbers.begin(), numbers.end(), 0);
            std::stable_sort(numbers.begin(), numbers.end(), is_above);
            return numbers;
        };
        const auto clusters =
            ranked([&](std::size_t a, std::size_t b) { return join(near[0].masses[a]) > join(near[0].masses[b]); });
        const auto places = ranked([&](std::size_t a, std::size_t b) {
            return std::pair(bounds[a].most, bounds[a].least) > std::pair(bounds[b].most, bounds[b].least);
        });
        const std::vector<T> before = centroids;
        for (std::size_t i = 0; i < bounds.size(); ++i)
            std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(clusters[i]) * rows_.d(), rows_.d(),
                        centroids.begin() + static_cast<std::ptrdiff_t>(places[i]) * rows_.d());
    }

    void fit_sizes(const PgkmFitParams *params, const PgkmSizeBounds *bounds, std::vector<Assigned> &assigned)
    {
        std::vector<PgkmAssignment> wanted;
        for (Assigned &one : assigned)
            wanted.push_back(one.view());
        (session_.table()->fit_sizes != nullptr ? session_ : on_cpu())
            .run(&PgkmBackend::fit_sizes, problems(), params, bounds, wanted.data());
    }

    // For what other backends leave to the CPU.
    Session &on_cpu()
    {
        if (session_.table() == cpu_backend())
            return session_;
        if (!on_cpu_) {
            on_cpu_ = std::make_unique<Session>(session_.cpu());
            on_cpu_->load(rows_.points());
        }
        return *on_cpu_;
    }

    // As many clusters as wanted, even where fewer rows differ: centroids are repeated.
    void keep_all(PgkmProblem &problem, std::vector<T> &centroids) const
    {
        const std::size_t found = static_cast<std::size_t>(problem.k) * static_cast<std::size_t>(rows_.d());
        for (std::size_t i = found; i < centroids.size(); ++i)
            centroids[i] = centroids[i - found];
        problem.k = static_cast<std::int32_t>(centroids.size() / static_cast<std::size_t>(rows_.d()));
    }

    void want_model(PgkmProblem &problem, Assigned &assigned) const
    {
        const bool here = !are_apart();
        fits_.set_distance_exponent(problem);
        assigned.sizes.resize(at(problem.k));
        assigned.within.resize(at(problem.k));
        assigned.distances.resize(task_.want_distances && here ? at(problem.n_rows) : 0);
        if (task_.want_labels && here)
            assigned.labels.resize(at(problem.n_rows));
        assigned.masses.resize(task_.want_means ? at(problem.k) : 0);
        assigned.totals.resize(assigned.masses.size() * at(rows_.d()));
    }

    std::vector<Model> models_of(std::vector<Assigned> &assigned)
    {
        std::vector<Model> models(assigned.size());
        for (std::size_t p = 0; p < models.size(); ++p) {
            const PgkmProblem &problem = problems()[p];
            Model &model = models[p];
            Int128 total = 0;
            for (const PgkmInt128 part : assigned[p].within) {
                model.within_ss.push_back(square_sum(join(part), problem.distance_exponent));
                total += join(part);
            }
            model.inertia = square_sum(total, problem.distance_exponent);
            model.k = problem.k;
            model.d = rows_.d();
            model.n = problem.n_rows;
            model.init = init(p);
            model.n_iter = problem.n_iter;
            model.converged = problem.converged != 0;
            const auto first = fits_.centroids[p].begin();
            model.centroids.assign(first, first + std::ptrdiff_t{problem.k} * rows_.d());
            model.sizes = std::move(assigned[p].sizes);
            if (task_.want_labels)
                model.labels = std::move(assigned[p].labels);
            model.distances = std::move(assigned[p].distances);
            set_means(problem, assigned[p], model);
            drop_empty_clusters(model);
        }
        return models;
    }

    void set_means(const PgkmProblem &problem, const Assigned &assigned, Model &model) const
    {
        for (const PgkmInt128 mass : assigned.masses)
            model.masses.push_back(fits_.mass_of(problem, join(mass)));
        for (std::size_t i = 0; i < assigned.totals.size(); ++i) {
            if (i % (std::size_t{1} << 16) == 0)
                monitor_.poll();
            const PgkmFeatureScale &scale = problem.feature_scales[i % at(rows_.d())];
            const Int128 mass = join(assigned.masses[i / at(rows_.d())]);
            model.means.push_back(mean_of(join(assigned.totals[i]), mass == 0 ? 1 : mass, scale.origin, scale.exponent,
                                          problem.weight_exponent));
        }
    }

    const LoadedRows &rows_;
    const FitTask &task_;
    Session &session_;
    Monitor &monitor_;
    Fits<T> fits_;
    std::unique_ptr<Session> on_cpu_;
};

} // namespace

std::vector<Model> fit_loaded(const LoadedRows &rows, const FitTask &task, Session &session, Monitor &monitor)
{
    return rows.points().element == PGKM_FLOAT64 ? Fitter<double>(rows, task, session, monitor).run()
                                                 : Fitter<float>(rows, task, session, monitor).run();
}

void label_rows(const LoadedRows &rows, Session &session, bool want_labels, bool want_distances, Model &model)
{
    if (!want_labels && !want_distances)
        return;
    std::vector<float> narrow;
    void *centroids = model.centroids.data();
    if (rows.points().element != PGKM_FLOAT64) { // which they were
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
