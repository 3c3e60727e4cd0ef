// assign.cpp - assign(): one assignment to fixed centroids with what is summed over it.
#include "cpu/operations.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "cpu/fit/lloyd.hpp"
#include "cpu/for_problems.hpp"
#include "cpu/rows.hpp"
#include "numeric/contract.hpp"

namespace pgkm::cpu {
namespace {

// Per-cluster sums of squares and row counts of one worker.
struct Within {
    Within(Budget &budget, std::int32_t k)
        : hi(budget, k, 0), lo(budget, k, 0), sizes(budget, k, 0), total(budget, k, 0)
    {
    }

    template <typename T>
    void add(const Rows<T> &rows, std::int64_t first, int count, const std::int32_t *labels, const double *distances,
             double scale)
    {
        if (rows.counts != nullptr)
            return add_rows<true>(rows, first, count, labels, distances, scale);
        if (used + count > partial_sum_length)
            flush();
        used += count;
        add_rows<false>(rows, first, count, labels, distances, scale);
    }
    template <bool Counted, typename T>
    void add_rows(const Rows<T> &rows, std::int64_t first, int count, const std::int32_t *labels,
                  const double *distances, double scale)
    {
        for (int i = 0; i < count; ++i) {
            const std::int64_t copies = Counted ? rows.counts[first + i] : 1;
            if constexpr (Counted) {
                if (used + copies > partial_sum_length)
                    flush();
                used += copies;
            }
            const auto cluster = static_cast<std::size_t>(labels[i]);
            sizes[cluster] += copies;
            if (distances == nullptr)
                continue;
            const Limbs limbs =
                quantise_square(rows.weights == nullptr ? distances[i] : rows.weights[first + i] * distances[i], scale);
            hi[cluster] += limbs.hi * copies;
            lo[cluster] += limbs.lo * copies;
        }
    }
    void flush()
    {
        for (std::size_t j = 0; j < total.size(); ++j)
            total[j] += join_limbs(std::exchange(hi[j], 0), std::exchange(lo[j], 0));
        used = 0;
    }

    Buffer<std::int64_t> hi, lo, sizes;
    Buffer<Int128> total;
    std::int64_t used = 0;
};

void store_within(std::vector<Within> &parts, PgkmAssignment &out, std::int32_t k)
{
    for (Within &part : parts)
        part.flush();
    for (std::int32_t j = 0; j < k; ++j) {
        Int128 total = 0;
        std::int64_t size = 0;
        for (const Within &part : parts) {
            total += part.total[j];
            size += part.sizes[j];
        }
        if (out.within != nullptr)
            out.within[j] = split(total);
        if (out.sizes != nullptr)
            out.sizes[j] = size;
    }
}

template <typename T>
void store_sums(const ClusterSums<T> &sums, PgkmAssignment &out)
{
    if (out.totals != nullptr)
        std::transform(sums.totals().begin(), sums.totals().end(), out.totals, split);
    if (out.masses != nullptr)
        std::transform(sums.masses().begin(), sums.masses().end(), out.masses, split);
}

bool wants_distances(const PgkmAssignment &out)
{
    return out.distances != nullptr || out.within != nullptr;
}

} // namespace

template <typename T>
void assign_by(Assigner<T> &assigner, const Data &data, ThreadPool &pool, const PgkmProblem &problem,
               PgkmAssignment &out)
{
    const Rows<T> rows(data, pool, problem);
    Budget &budget = data.context.budget;
    const bool want_sums = out.totals != nullptr || out.masses != nullptr;
    const bool want_within = out.within != nullptr || out.sizes != nullptr;
    const bool want_distances = wants_distances(out);
    const int block = assigner.rows_at_once();
    std::vector<Buffer<std::int32_t>> labels;
    std::vector<Buffer<double>> distances;
    std::vector<Within> within;
    for (int worker = 0; worker < pool.size(); ++worker) {
        labels.emplace_back(budget, block);
        distances.emplace_back(budget, want_distances ? block : 0);
        within.emplace_back(budget, want_within ? rows.k : 0);
    }
    const Buffer<std::int32_t> none(budget, block, -1);
    std::unique_ptr<ClusterSums<T>> sums;
    if (want_sums)
        sums = std::make_unique<ClusterSums<T>>(rows, problem);
    const double scale = out.within == nullptr ? 1.0 : power_of_two(problem.distance_exponent);
    assigner.begin(static_cast<const T *>(problem.centroids));
    for_blocks(rows, block, [&](int worker, std::int64_t first, int count) {
        const auto w = static_cast<std::size_t>(worker);
        std::int32_t *now = out.labels != nullptr ? out.labels + first : labels[w].data();
        double *squares = out.distances != nullptr ? out.distances + first
                          : want_distances         ? distances[w].data()
                                                   : nullptr;
        std::fill_n(now, count, -1);
        assigner.assign(worker, first, count, now, squares);
        if (want_sums)
            sums->move(worker, first, count, none.data(), now);
        if (want_within)
            within[w].add(rows, first, count, now, out.within == nullptr ? nullptr : squares, scale);
    });
    if (want_sums) {
        sums->combine();
        store_sums(*sums, out);
    }
    if (want_within)
        store_within(within, out, rows.k);
}

template void assign_by(Assigner<float> &, const Data &, ThreadPool &, const PgkmProblem &, PgkmAssignment &);
template void assign_by(Assigner<double> &, const Data &, ThreadPool &, const PgkmProblem &, PgkmAssignment &);

void assign(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmAssignment *assignments)
{
    if (data.points.element == PGKM_BIT)
        return assign_bits(data, problems, n_problems, assignments);
    with_element(data.points, [&](auto element) {
        for_problems(data, problems, n_problems, [&](std::int64_t p, ThreadPool &pool) {
            const Rows<decltype(element)> rows(data, pool, problems[p]);
            std::unique_ptr<Assigner<decltype(element)>> assigner;
            assign_with<decltype(element)>(
                assigner, rows, wants_distances(assignments[p]) ? Purpose::distances : Purpose::single,
                [&](auto &made) { assign_by(made, data, pool, problems[p], assignments[p]); });
        });
    });
}

} // namespace pgkm::cpu
