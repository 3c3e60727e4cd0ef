// radius.cpp - gives clusters that reach too far another centroid each, and iterates again.
#include "engine/kmeans/radius.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/update.hpp"
#include "engine/kmeans/work.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

constexpr std::int64_t rows_per_poll = 1 << 16;
// Splits of a group that may bring no further cluster with rows, one after the other: a cluster may have lost all rows
// when max_iter came, and gets some again. More are in vain: no centroid can tell the rows beyond from their own.
constexpr int rounds_in_vain = 16;

template <typename T>
class Splitter {
  public:
    explicit Splitter(Fits<T> &fits)
        : fits_(fits), problems_(fits.problems), filled_(problems_.size(), 0), rounds_(problems_.size(), 0)
    {
    }

    void run()
    {
        std::vector<std::size_t> open(problems_.size());
        std::iota(open.begin(), open.end(), std::size_t{0});
        for (;;) {
            std::vector<PgkmProblem> some;
            std::vector<Assigned> assigned(open.size());
            for (const std::size_t g : open) {
                Assigned &rows = assigned[some.size()];
                rows.labels.resize(at(problems_[g].n_rows));
                rows.distances.resize(at(problems_[g].n_rows));
                some.push_back(problems_[g]);
            }
            fits_.assign(some, assigned);
            auto rows = assigned.begin();
            std::erase_if(open, [&](std::size_t g) { return !split(g, *rows++); });
            if (open.empty())
                return;
            require_memory();
            iterate(open);
        }
    }

  private:
    // As kmeans_distance has it.
    bool is_beyond(double square) const
    {
        const double distance = fits_.task.options.metric == PGKM_COSINE ? square / 2.0 : std::sqrt(square);
        return distance > fits_.task.options.max_radius;
    }

    // Adds centroids to a group; false where all rows are within.
    bool split(std::size_t g, const Assigned &assigned)
    {
        constexpr std::int64_t none = -1;
        std::vector<FarRow> farthest(at(problems_[g].k), FarRow{0.0, none, 0});
        std::vector<char> is_filled(farthest.size(), 0);
        const FarOrder<T> goes_before = {fits_.rows.points(), problems_[g].first_row};
        for (std::int64_t i = 0; i < problems_[g].n_rows; ++i) {
            if (i % rows_per_poll == 0)
                fits_.monitor.poll();
            const FarRow row = {assigned.distances[at(i)], i, assigned.labels[at(i)]};
            FarRow &best = farthest[at(row.label)];
            is_filled[at(row.label)] = 1;
            if (is_beyond(row.square) && (best.row == none || goes_before(row, best)))
                best = row;
        }
        std::erase_if(farthest, [](const FarRow &row) { return row.row == none; });
        const std::int64_t filled = std::count(is_filled.begin(), is_filled.end(), 1);
        rounds_[g] = filled > filled_[g] ? 0 : rounds_[g] + 1;
        if (!farthest.empty() && rounds_[g] > rounds_in_vain)
            throw Error(PGKM_INVALID, "option max_radius is below the precision of centroids");
        filled_[g] = std::max(filled_[g], filled);
        add(g, farthest);
        return !farthest.empty();
    }

    void add(std::size_t g, const std::vector<FarRow> &farthest)
    {
        const std::int64_t d = fits_.d();
        std::vector<T> &centroids = fits_.centroids[g];
        centroids.resize(at(problems_[g].k * d)); // seeding may have found fewer than were wanted
        for (const FarRow &row : farthest) {
            const T *const values =
                static_cast<const T *>(fits_.rows.points().values) + (problems_[g].first_row + row.row) * d;
            std::transform(values, values + d, std::back_inserter(centroids), without_minus_zero<T>);
        }
        problems_[g].k += static_cast<std::int32_t>(farthest.size());
        problems_[g].centroids = centroids.data();
    }

    void require_memory() const
    {
        const bool weighted = fits_.rows.points().weights != nullptr;
        double bytes = 12.0 * static_cast<double>(fits_.rows.points().n), clusters = 0.0;
        for (const PgkmProblem &problem : problems_) {
            const Shape fit = shape_of({nullptr, nullptr, problem.n_rows, problem.k}, fits_.d());
            bytes += bytes_of_fit(fit, fits_.rows.points().element, weighted, false);
            clusters += fit.k;
        }
        if (fits_.task.memory_limit != 0 && bytes > static_cast<double>(fits_.task.memory_limit))
            throw Error(PGKM_LIMIT, "the " + std::to_string(static_cast<std::int64_t>(clusters)) +
                                        " clusters that option max_radius asks for need more than is left of "
                                        "pg_kmeans.memory_limit (" +
                                        std::to_string(fits_.task.memory_limit / 1024) + " kB)");
    }

    void iterate(const std::vector<std::size_t> &open)
    {
        std::vector<PgkmProblem> problems;
        for (const std::size_t g : open)
            problems.push_back(problems_[g]);
        fits_.iterate(problems, fits_.task.options.max_iter);
        for (std::size_t i = 0; i < open.size(); ++i) {
            problems[i].n_iter += problems_[open[i]].n_iter;
            problems_[open[i]] = problems[i];
        }
    }

    Fits<T> &fits_;
    std::vector<PgkmProblem> &problems_;
    std::vector<std::int64_t> filled_; // most clusters with rows so far, of each group
    std::vector<int> rounds_;          // since then
};

} // namespace

template <typename T>
void keep_within_radius(Fits<T> &fits)
{
    Splitter<T>(fits).run();
}

template void keep_within_radius<float>(Fits<float> &);
template void keep_within_radius<double>(Fits<double> &);

} // namespace pgkm
