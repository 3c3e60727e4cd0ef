// refine.cpp - splits and joins clusters as long as the inertia falls.
#include "engine/kmeans/refine.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "backend/update.hpp"
#include "engine/kmeans/join.hpp"
#include "numeric/contract.hpp"
#include "numeric/index.hpp"
#include "numeric/philox.hpp"

namespace pgkm {
namespace {

// Centroids and what an assignment says of their clusters.
template <typename T>
struct Clusters {
    std::vector<T> centroids;        // k x d
    std::vector<double> within;      // k: inertia
    std::vector<double> masses;      // k: shares of all
    std::vector<std::int64_t> sizes; // k
    double inertia = 0.0;
};

// The search of one group.
template <typename T>
struct Search {
    std::size_t group;
    std::int32_t k;
    std::int32_t splits; // of the next round
    Clusters<T> best, trial;
    bool improved = false;
    double mass = 0.0; // of all rows
};

template <typename T>
class Refiner {
  public:
    Refiner(const LoadedRows &rows, const FitTask &task, std::uint32_t restart, Session &session, Monitor &monitor,
            std::vector<PgkmProblem> &problems)
        : rows_(rows), task_(task), restart_(restart), session_(session), monitor_(monitor), problems_(problems)
    {
    }

    void run(std::vector<std::vector<T>> &centroids)
    {
        std::vector<std::unique_ptr<Search<T>>> searches = begin(centroids);
        Open open;
        for (const auto &search : searches)
            open.push_back(search.get());
        for (std::int32_t round = 0; round < most_refine_rounds; ++round) {
            std::erase_if(open, [&](Search<T> *search) { return !split(*search, round); });
            if (open.empty())
                break;
            try_once(open);
        }
        open.clear(); // where the last round left some that go on
        for (const auto &search : searches)
            if (search->improved)
                open.push_back(search.get());
        finish(open, centroids);
    }

  private:
    using Open = std::vector<Search<T> *>;

    // Where there is one cluster, or a cluster for each row, nothing can be gained.
    std::vector<std::unique_ptr<Search<T>>> begin(const std::vector<std::vector<T>> &centroids)
    {
        std::vector<std::unique_ptr<Search<T>>> searches;
        Open open;
        for (std::size_t g = 0; g < problems_.size(); ++g) {
            const std::int32_t k = problems_[g].k;
            if (k == 1 || k >= problems_[g].n_rows)
                continue;
            searches.push_back(std::make_unique<Search<T>>());
            Search<T> &search = *searches.back();
            search.group = g;
            search.k = k;
            search.splits = (k - 1) / clusters_per_split + 1;
            search.trial.centroids.assign(centroids[g].begin(), centroids[g].begin() + std::int64_t{k} * d());
            open.push_back(&search);
        }
        if (!open.empty())
            measure(open);
        for (Search<T> *search : open)
            search->best = search->trial;
        return searches;
    }

    void try_once(Open &open)
    {
        iterate(open, split_iterations);
        measure(open);
        for (Search<T> *search : open)
            join_pairs(*search);
        iterate(open, join_iterations);
        measure(open);
        for (Search<T> *search : open) {
            const double before = search->best.inertia;
            if (search->trial.inertia < before) {
                std::swap(search->best, search->trial);
                search->improved = true;
            }
            if (!(search->best.inertia < before * (1.0 - least_refine_gain)))
                search->splits /= 2;
        }
    }

    // Makes the trial of a round; false when there is nothing left to split.
    bool split(Search<T> &search, std::int32_t round) const
    {
        const Clusters<T> &best = search.best;
        std::vector<std::int32_t> divisible; // clusters of several rows that differ
        for (std::int32_t j = 0; j < search.k; ++j)
            if (best.sizes[at(j)] > 1 && best.within[at(j)] > 0.0)
                divisible.push_back(j);
        const std::int64_t room = problems_[search.group].n_rows - search.k;
        const auto count = static_cast<std::ptrdiff_t>(
            std::min<std::int64_t>({search.splits, room, static_cast<std::int64_t>(divisible.size())}));
        if (count == 0)
            return false;
        std::partial_sort(divisible.begin(), divisible.begin() + count, divisible.end(),
                          [&](std::int32_t a, std::int32_t b) {
                              const double x = best.within[at(a)], y = best.within[at(b)];
                              return x != y ? x > y : a < b;
                          });
        search.trial.centroids = best.centroids;
        for (auto j = divisible.begin(); j != divisible.begin() + count; ++j)
            split_cluster(search, round, *j);
        return true;
    }

    // Two centroids on both sides of the cluster's own, as far from it as its rows are in the mean, in a direction that
    // is drawn. One stands in its place, the other behind all.
    void split_cluster(Search<T> &search, std::int32_t round, std::int32_t cluster) const
    {
        monitor_.poll();
        const Summary &summary = rows_.groups()[search.group].summary;
        const std::int32_t d = this->d();
        std::vector<T> &centroids = search.trial.centroids;
        centroids.resize(centroids.size() + at(d));
        T *here = centroids.data() + std::int64_t{cluster} * d, *there = centroids.data() + centroids.size() - d;
        const double mass = search.best.masses[at(cluster)] * search.mass;
        const double spread = std::sqrt(search.best.within[at(cluster)] / mass / d * 3.0);
        for (std::int32_t f = 0; f < d; ++f) {
            const std::uint64_t bits = draw(task_.options.seed, restart_, Stream::split,
                                            static_cast<std::uint32_t>(round), at(std::int64_t{cluster} * d + f));
            // Uniform on [-1, 1); a spread that left the range of float64 is none.
            const double side = static_cast<double>(bits >> 11) * 0x1p-52 - 1.0;
            const double offset = std::isfinite(spread) ? spread * side : 0.0;
            const double middle = static_cast<double>(here[f]), low = summary.min[at(f)], high = summary.max[at(f)];
            here[f] = static_cast<T>(std::clamp(middle - offset, low, high));
            there[f] = static_cast<T>(std::clamp(middle + offset, low, high));
        }
        bring_to_metric(here);
        bring_to_metric(there);
    }

    void join_pairs(Search<T> &search) const
    {
        std::vector<T> &centroids = search.trial.centroids;
        Centres centres = {{centroids.begin(), centroids.end()}, search.trial.masses, d()};
        join_clusters(centres, search.k, task_.threads, monitor_);
        centroids.resize(centres.centroids.size());
        for (std::int64_t first = 0; first < std::int64_t{search.k} * d(); first += d()) {
            monitor_.poll();
            std::transform(centres.centroids.begin() + first, centres.centroids.begin() + first + d(),
                           centroids.begin() + first, [](double value) { return static_cast<T>(value); });
            bring_to_metric(centroids.data() + first);
        }
    }

    void bring_to_metric(T *centroid) const
    {
        if (task_.options.metric == PGKM_COSINE)
            normalise(centroid, d());
    }

    // The problems of the trials.
    std::vector<PgkmProblem> problems_of(const Open &open) const
    {
        std::vector<PgkmProblem> problems;
        for (Search<T> *search : open) {
            PgkmProblem problem = problems_[search->group];
            problem.centroids = search->trial.centroids.data();
            problem.k = static_cast<std::int32_t>(search->trial.centroids.size() / at(d()));
            problems.push_back(problem);
        }
        return problems;
    }

    // Iterations of the trials; returns how they went.
    std::vector<PgkmProblem> iterate(const Open &open, std::int32_t most)
    {
        std::vector<PgkmProblem> problems = problems_of(open);
        const PgkmFitParams params = {task_.options.metric, std::min(most, task_.options.max_iter)};
        session_.run(&PgkmBackend::fit, problems, &params);
        for (std::size_t i = 0; i < open.size(); ++i) {
            PgkmProblem &own = problems_[open[i]->group];
            own.n_iter = static_cast<std::int32_t>(
                std::min<std::int64_t>(std::int64_t{own.n_iter} + problems[i].n_iter, INT32_MAX));
        }
        monitor_.count_iteration(problems_[open[0]->group].n_iter, problems[0].shift);
        return problems;
    }

    // Inertia, masses and sizes of the trials' clusters.
    void measure(const Open &open)
    {
        const bool weighted = rows_.points().weights != nullptr;
        std::vector<PgkmProblem> problems = problems_of(open);
        std::vector<std::vector<PgkmInt128>> within, masses;
        std::vector<PgkmAssignment> wanted;
        for (std::size_t i = 0; i < open.size(); ++i) {
            PgkmProblem &problem = problems[i];
            const LoadedGroup &group = rows_.groups()[open[i]->group];
            const T *centroids = static_cast<const T *>(problem.centroids);
            problem.distance_exponent = square_exponent(distance_bound(group, d(), centroids, problem.k, monitor_));
            within.emplace_back(at(problem.k));
            masses.emplace_back(at(weighted ? problem.k : 0));
            open[i]->trial.sizes.resize(at(problem.k));
            wanted.push_back({});
            wanted[i].within = within[i].data();
            wanted[i].masses = weighted ? masses[i].data() : nullptr;
            wanted[i].sizes = open[i]->trial.sizes.data();
        }
        session_.run(&PgkmBackend::assign, problems, wanted.data());
        for (std::size_t i = 0; i < open.size(); ++i)
            set_figures(*open[i], problems[i], within[i], masses[i]);
    }

    static void set_figures(Search<T> &search, const PgkmProblem &problem, const std::vector<PgkmInt128> &within,
                            const std::vector<PgkmInt128> &masses)
    {
        Clusters<T> &trial = search.trial;
        trial.within.clear();
        trial.masses.clear();
        Int128 inertia = 0, mass = 0;
        const auto mass_of = [&](std::size_t j) { return masses.empty() ? Int128{trial.sizes[j]} : join(masses[j]); };
        for (std::size_t j = 0; j < within.size(); ++j) {
            inertia += join(within[j]);
            mass += mass_of(j);
        }
        for (std::size_t j = 0; j < within.size(); ++j) {
            trial.within.push_back(square_sum(join(within[j]), problem.distance_exponent));
            trial.masses.push_back(to_double(mass_of(j)) / to_double(mass));
        }
        trial.inertia = square_sum(inertia, problem.distance_exponent);
        search.mass =
            masses.empty() ? to_double(mass) : scale_by(to_double(mass), -problem.weight_exponent - lower_limb_bits);
    }

    // What was found comes to rest.
    void finish(const Open &improved, std::vector<std::vector<T>> &centroids)
    {
        if (improved.empty())
            return;
        for (Search<T> *search : improved)
            std::swap(search->trial, search->best);
        const std::vector<PgkmProblem> ended = iterate(improved, task_.options.max_iter);
        for (std::size_t i = 0; i < improved.size(); ++i) {
            const Search<T> &search = *improved[i];
            std::copy(search.trial.centroids.begin(), search.trial.centroids.end(), centroids[search.group].begin());
            problems_[search.group].converged = ended[i].converged;
            problems_[search.group].shift = ended[i].shift;
        }
    }

    std::int32_t d() const { return rows_.d(); }

    const LoadedRows &rows_;
    const FitTask &task_;
    const std::uint32_t restart_;
    Session &session_;
    Monitor &monitor_;
    std::vector<PgkmProblem> &problems_;
};

} // namespace

template <typename T>
void refine(const LoadedRows &rows, const FitTask &task, std::uint32_t restart, Session &session, Monitor &monitor,
            std::vector<PgkmProblem> &problems, std::vector<std::vector<T>> &centroids)
{
    Refiner<T>(rows, task, restart, session, monitor, problems).run(centroids);
}

template void refine<float>(const LoadedRows &, const FitTask &, std::uint32_t, Session &, Monitor &,
                            std::vector<PgkmProblem> &, std::vector<std::vector<float>> &);
template void refine<double>(const LoadedRows &, const FitTask &, std::uint32_t, Session &, Monitor &,
                             std::vector<PgkmProblem> &, std::vector<std::vector<double>> &);

} // namespace pgkm
