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
    Refiner(Fits<T> &fits, std::uint32_t restart) : fits_(fits), restart_(restart), problems_(fits.problems) {}

    void run()
    {
        std::vector<std::unique_ptr<Search<T>>> searches = begin();
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
        finish(open);
    }

  private:
    using Open = std::vector<Search<T> *>;

    // Where there is one cluster, or a cluster for each row, nothing can be gained.
    std::vector<std::unique_ptr<Search<T>>> begin()
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
            const auto first = fits_.centroids[g].begin();
            search.trial.centroids.assign(first, first + std::int64_t{k} * d());
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
        fits_.monitor.poll();
        const Summary &summary = fits_.rows.group_of(problems_[search.group]).summary;
        const std::int32_t d = this->d();
        std::vector<T> &centroids = search.trial.centroids;
        centroids.resize(centroids.size() + at(d));
        T *here = centroids.data() + std::int64_t{cluster} * d, *there = centroids.data() + centroids.size() - d;
        const double mass = search.best.masses[at(cluster)] * search.mass;
        const double spread = std::sqrt(search.best.within[at(cluster)] / mass / d * 3.0);
        for (std::int32_t f = 0; f < d; ++f) {
            const std::uint64_t bits = draw(fits_.task.options.seed, restart_, Stream::split,
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
        join_clusters(centres, search.k, fits_.session.pool(), fits_.monitor);
        centroids.resize(centres.centroids.size());
        for (std::int64_t first = 0; first < std::int64_t{search.k} * d(); first += d()) {
            fits_.monitor.poll();
            std::transform(centres.centroids.begin() + first, centres.centroids.begin() + first + d(),
                           centroids.begin() + first, [](double value) { return static_cast<T>(value); });
            bring_to_metric(centroids.data() + first);
        }
    }

    void bring_to_metric(T *centroid) const
    {
        if (fits_.task.options.metric == PGKM_COSINE)
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
        fits_.iterate(problems, std::min(most, fits_.task.options.max_iter));
        for (std::size_t i = 0; i < open.size(); ++i) {
            PgkmProblem &own = problems_[open[i]->group];
            own.n_iter = static_cast<std::int32_t>(
                std::min<std::int64_t>(std::int64_t{own.n_iter} + problems[i].n_iter, INT32_MAX));
        }
        fits_.monitor.count_iteration(problems_[open[0]->group].n_iter, problems[0].shift);
        return problems;
    }

    // Inertia, masses and sizes of the trials' clusters.
    void measure(const Open &open)
    {
        std::vector<PgkmProblem> problems = problems_of(open);
        std::vector<Assigned> assigned(open.size());
        const bool weighted = fits_.rows.points().weights != nullptr;
        for (std::size_t i = 0; i < open.size(); ++i) {
            fits_.set_distance_exponent(problems[i]);
            assigned[i].within.resize(at(problems[i].k));
            assigned[i].masses.resize(at(weighted ? problems[i].k : 0));
            assigned[i].sizes.resize(at(problems[i].k));
        }
        fits_.assign(problems, assigned);
        for (std::size_t i = 0; i < open.size(); ++i)
            set_figures(*open[i], problems[i], assigned[i]);
    }

    void set_figures(Search<T> &search, const PgkmProblem &problem, Assigned &assigned) const
    {
        Clusters<T> &trial = search.trial;
        Int128 inertia = 0, mass = 0;
        trial.within.clear();
        trial.masses.clear();
        if (assigned.masses.empty())
            std::transform(assigned.sizes.begin(), assigned.sizes.end(), std::back_inserter(assigned.masses),
                           pgkm::split);
        for (const PgkmInt128 part : assigned.within) {
            inertia += join(part);
            trial.within.push_back(square_sum(join(part), problem.distance_exponent));
        }
        for (const PgkmInt128 part : assigned.masses)
            mass += join(part);
        for (const PgkmInt128 part : assigned.masses)
            trial.masses.push_back(to_double(join(part)) / to_double(mass));
        trial.sizes = std::move(assigned.sizes);
        trial.inertia = square_sum(inertia, problem.distance_exponent);
        search.mass = fits_.mass_of(problem, mass);
    }

    // What was found comes to rest.
    void finish(const Open &improved)
    {
        if (improved.empty())
            return;
        for (Search<T> *search : improved)
            std::swap(search->trial, search->best);
        const std::vector<PgkmProblem> ended = iterate(improved, fits_.task.options.max_iter);
        for (std::size_t i = 0; i < improved.size(); ++i) {
            const Search<T> &search = *improved[i];
            std::copy(search.trial.centroids.begin(), search.trial.centroids.end(),
                      fits_.centroids[search.group].begin());
            problems_[search.group].converged = ended[i].converged;
            problems_[search.group].shift = ended[i].shift;
        }
    }

    std::int32_t d() const { return fits_.d(); }

    Fits<T> &fits_;
    const std::uint32_t restart_;
    std::vector<PgkmProblem> &problems_;
};

} // namespace

template <typename T>
void refine(Fits<T> &fits, std::uint32_t restart)
{
    Refiner<T>(fits, restart).run();
}

template void refine<float>(Fits<float> &, std::uint32_t);
template void refine<double>(Fits<double> &, std::uint32_t);

} // namespace pgkm
