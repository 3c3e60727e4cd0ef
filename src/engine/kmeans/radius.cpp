// radius.cpp - gives clusters that reach too far another centroid each, and iterates again.
#include "engine/kmeans/radius.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/kmeans/work.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"
#include "numeric/row_key.hpp"

namespace pgkm {
namespace {

constexpr std::int64_t rows_per_poll = 1 << 16;
// Splits of a group that may bring no further cluster with rows, one after the other.
constexpr int rounds_in_vain = 16;

template <typename T>
class Splitter {
  public:
    Splitter(const LoadedRows &rows, const FitTask &task, Session &session, Monitor &monitor,
             std::vector<PgkmProblem> &problems, std::vector<std::vector<T>> &centroids)
        : rows_(rows), task_(task), session_(session), monitor_(monitor), problems_(problems), centroids_(centroids),
          filled_(problems.size(), 0), rounds_(problems.size(), 0)
    {
    }

    void run()
    {
        std::vector<std::size_t> open(problems_.size());
        for (std::size_t g = 0; g < open.size(); ++g)
            open[g] = g;
        for (;;) {
            assign(open);
            std::erase_if(open, [this](std::size_t g) { return !split(g); });
            if (open.empty())
                return;
            require_memory();
            iterate(open);
        }
    }

  private:
    struct Assigned {
        LargeArray<std::int32_t> labels;
        LargeArray<double> distances;
    };

    void assign(const std::vector<std::size_t> &open)
    {
        std::vector<PgkmProblem> problems;
        std::vector<PgkmAssignment> assignments;
        assigned_.resize(problems_.size());
        for (const std::size_t g : open) {
            Assigned &assigned = assigned_[g];
            assigned.labels.resize(at(problems_[g].n_rows));
            assigned.distances.resize(at(problems_[g].n_rows));
            problems.push_back(problems_[g]);
            assignments.push_back({});
            assignments.back().labels = assigned.labels.data();
            assignments.back().distances = assigned.distances.data();
        }
        session_.run(&PgkmBackend::assign, problems, assignments.data());
    }

    // As kmeans_distance has it.
    bool is_beyond(double square) const
    {
        const double distance = task_.options.metric == PGKM_COSINE ? square / 2.0 : std::sqrt(square);
        return distance > task_.options.max_radius;
    }

    const T *row(std::size_t g, std::int64_t i) const
    {
        return static_cast<const T *>(rows_.points().values) + (problems_[g].first_row + i) * rows_.d();
    }

    // Adds centroids to a group; false where all rows are within.
    bool split(std::size_t g)
    {
        const Assigned &assigned = assigned_[g];
        std::vector<std::int64_t> farthest(at(problems_[g].k), -1);
        std::vector<char> is_filled(farthest.size(), 0);
        for (std::int64_t i = 0; i < problems_[g].n_rows; ++i) {
            if (i % rows_per_poll == 0)
                monitor_.poll();
            std::int64_t &best = farthest[at(assigned.labels[at(i)])];
            is_filled[at(assigned.labels[at(i)])] = 1;
            if (is_beyond(assigned.distances[at(i)]) && (best < 0 || goes_before(g, i, best)))
                best = i;
        }
        const std::int64_t filled = std::count(is_filled.begin(), is_filled.end(), 1);
        std::erase(farthest, -1);
        if (!farthest.empty() && filled <= filled_[g] && is_stuck(g, farthest))
            throw Error(PGKM_INVALID, "option max_radius is below the precision of centroids");
        if (filled > filled_[g])
            rounds_[g] = 0;
        filled_[g] = std::max(filled_[g], filled);
        add(g, farthest);
        assigned_[g] = {};
        return !farthest.empty();
    }

    // A cluster may have lost all rows when max_iter came, and gets some again. Rows that no centroid can tell from
    // their own stay.
    bool is_stuck(std::size_t g, const std::vector<std::int64_t> &farthest)
    {
        return ++rounds_[g] > rounds_in_vain ||
               std::all_of(farthest.begin(), farthest.end(), [&](std::int64_t i) { return is_at_centroid(g, i); });
    }

    // Whether a centroid of the row alone may be no nearer than the one that it has. Such a centroid is the row's sum,
    // which has 44 bits below the range of a feature, with weights 90 bits below that of the heaviest row
    // (numeric/contract.hpp); to round it to its type brings it nearer to the row, if anything, twice as far at most.
    // For the metric cosine it is brought to unit length.
    bool is_at_centroid(std::size_t g, std::int64_t i) const
    {
        const Summary &summary = rows_.groups()[g].summary;
        const double *const weights = rows_.points().weights;
        const double share = weights == nullptr ? 1.0 : weights[problems_[g].first_row + i] / summary.max_weight;
        const T *const values = row(g, i);
        const T *const centroid = centroids_[g].data() + std::int64_t{assigned_[g].labels[at(i)]} * rows_.d();
        for (std::int32_t f = 0; f < rows_.d(); ++f) {
            const double of_sums = (0x1p-43 + 0x1p-88 / share) * (summary.max[at(f)] - summary.min[at(f)]);
            const double of_length = task_.options.metric == PGKM_COSINE
                                         ? 4.0 * std::numeric_limits<T>::epsilon() * std::fabs(double{centroid[f]})
                                         : 0.0;
            if (std::fabs(double{values[f]} - double{centroid[f]}) > 2.0 * of_sums + of_length)
                return false;
        }
        return true;
    }

    bool goes_before(std::size_t g, std::int64_t i, std::int64_t j) const
    {
        const LargeArray<double> &distances = assigned_[g].distances;
        if (distances[at(i)] != distances[at(j)])
            return distances[at(i)] > distances[at(j)];
        return compare_content(row(g, i), row(g, j), rows_.d()) < 0;
    }

    void add(std::size_t g, const std::vector<std::int64_t> &farthest)
    {
        const auto values = at(problems_[g].k) * at(rows_.d());
        centroids_[g].resize(values); // seeding may have found fewer than were wanted
        for (const std::int64_t i : farthest)
            for (std::int32_t f = 0; f < rows_.d(); ++f)
                centroids_[g].push_back(without_minus_zero(row(g, i)[f]));
        problems_[g].k += static_cast<std::int32_t>(farthest.size());
        problems_[g].centroids = centroids_[g].data();
    }

    void require_memory() const
    {
        const bool weighted = rows_.points().weights != nullptr;
        double bytes = 12.0 * static_cast<double>(rows_.points().n), clusters = 0.0;
        for (const PgkmProblem &problem : problems_) {
            const Shape fit = shape_of({nullptr, nullptr, problem.n_rows, problem.k}, rows_.d());
            bytes += bytes_of_fit(fit, rows_.points().element, weighted, false);
            clusters += fit.k;
        }
        if (task_.memory_limit != 0 && bytes > static_cast<double>(task_.memory_limit))
            throw Error(PGKM_LIMIT, "the " + std::to_string(static_cast<std::int64_t>(clusters)) +
                                        " clusters that option max_radius asks for need more than is left of "
                                        "pg_kmeans.memory_limit (" +
                                        std::to_string(task_.memory_limit / 1024) + " kB)");
    }

    void iterate(const std::vector<std::size_t> &open)
    {
        const PgkmFitParams params = {task_.options.metric, task_.options.max_iter};
        std::vector<PgkmProblem> problems;
        for (const std::size_t g : open)
            problems.push_back(problems_[g]);
        session_.run(&PgkmBackend::fit, problems, &params);
        for (std::size_t i = 0; i < open.size(); ++i) {
            problems[i].n_iter += problems_[open[i]].n_iter;
            problems_[open[i]] = problems[i];
        }
    }

    const LoadedRows &rows_;
    const FitTask &task_;
    Session &session_;
    Monitor &monitor_;
    std::vector<PgkmProblem> &problems_;
    std::vector<std::vector<T>> &centroids_;
    std::vector<std::int64_t> filled_; // most clusters with rows so far, of each group
    std::vector<int> rounds_;          // since then
    std::vector<Assigned> assigned_;
};

} // namespace

template <typename T>
void keep_within_radius(const LoadedRows &rows, const FitTask &task, Session &session, Monitor &monitor,
                        std::vector<PgkmProblem> &problems, std::vector<std::vector<T>> &centroids)
{
    Splitter<T>(rows, task, session, monitor, problems, centroids).run();
}

template void keep_within_radius<float>(const LoadedRows &, const FitTask &, Session &, Monitor &,
                                        std::vector<PgkmProblem> &, std::vector<std::vector<float>> &);
template void keep_within_radius<double>(const LoadedRows &, const FitTask &, Session &, Monitor &,
                                         std::vector<PgkmProblem> &, std::vector<std::vector<double>> &);

} // namespace pgkm
