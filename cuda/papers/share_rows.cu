// share_rows.cu - the CPU's share of streamed rows: assigned by the contract's distance where they lie, summed a thread
// for itself, joined at the end. A counter deals rows out, so that each side takes as many as it gets through.
#include "papers/share_rows.hpp"

#include <atomic>

#if defined(__x86_64__)
#define PGKM_WITH_FMA __attribute__((target("fma")))
#else
#define PGKM_WITH_FMA
#endif

namespace pgkm::cuda {
namespace {

template <typename T>
inline std::size_t least(const T *row, const T *centroids, std::int32_t k, std::int32_t d)
{
    double best = std::numeric_limits<double>::infinity();
    std::int32_t label = 0;
    for (std::int32_t j = 0; j < k; ++j) {
        const double distance = exact_distance(row, centroids + std::int64_t{j} * d, d);
        if (distance < best) {
            best = distance;
            label = j;
        }
    }
    return static_cast<std::size_t>(label);
}

// The same by the instruction that each step of the distance is, where the processor has it.
template <typename T>
PGKM_WITH_FMA std::size_t least_by_fma(const T *row, const T *centroids, std::int32_t k, std::int32_t d)
{
    return least(row, centroids, k, d);
}

bool has_fma()
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("fma") != 0;
#else
    return true;
#endif
}

template <typename T>
void add_rows(const PgkmPoints &points, const PgkmProblem &problem, const T *centroids, std::int64_t first,
              std::int64_t rows, Sums &sums)
{
    const std::int32_t d = points.d;
    const auto nearest = has_fma() ? least_by_fma<T> : least<T>;
    for (std::int64_t row = problem.first_row + first; row < problem.first_row + first + rows; ++row) {
        const std::size_t label = nearest(static_cast<const T *>(points.values) + row * d, centroids, problem.k, d);
        sums.masses[label] += row_mass(points, problem, row);
        Int128 *totals = sums.totals.data() + label * static_cast<std::size_t>(d);
        for (std::int32_t f = 0; f < d; ++f)
            totals[f] += row_feature<T>(points, problem, row, f);
    }
}

void add(const Sums &from, Sums &to)
{
    for (std::size_t i = 0; i < from.totals.size(); ++i)
        to.totals[i] += from.totals[i];
    for (std::size_t j = 0; j < from.masses.size(); ++j)
        to.masses[j] += from.masses[j];
}

// Sums of each thread; where memory is short, the device has all rows.
int threads_within(Budget &budget, int threads, std::int64_t n_sums, Claim &claim)
{
    const bool fits = within_limit([&] {
        claim = Claim(budget, static_cast<std::uint64_t>(n_sums) * static_cast<unsigned>(threads) * sizeof(Int128));
    });
    return fits ? threads : 1;
}

} // namespace

CpuShare::CpuShare(Context &context, std::int32_t k, std::int32_t d)
    : context_(context), n_sums_(std::int64_t{k} * (d + 1)),
      pool_(threads_within(context.host_budget, context.cpu_threads, n_sums_, claim_)),
      sums_(static_cast<std::size_t>(pool_.size()))
{
}

template <typename T>
const Sums &CpuShare::add_up(const PgkmPoints &points, const PgkmProblem &problem, const T *centroids,
                             const std::function<void(const NextRows &)> &device)
{
    std::atomic<std::int64_t> taken{0};
    std::atomic<bool> failed{false};
    const NextRows next = [&](std::int64_t rows) { return failed ? problem.n_rows : taken.fetch_add(rows); };
    const auto hand_over = [&] {
        try {
            device(next);
        } catch (...) {
            failed = true;
            throw;
        }
    };
    for (Sums &one : sums_)
        one.reset(problem.k, points.d);
    const std::int64_t some = std::max<std::int64_t>(4'000'000 / n_sums_, 1); // rows between two polls
    bool handed = false;                                                      // read by this thread alone
    pool_.run(pool_.size(), [&](std::int64_t, int worker) {
        if (worker == 0)
            return std::exchange(handed, true) ? void() : hand_over();
        for (std::int64_t first = next(some); first < problem.n_rows; first = next(some)) {
            context_.poll();
            add_rows(points, problem, centroids, first, std::min(some, problem.n_rows - first),
                     sums_[static_cast<std::size_t>(worker)]);
        }
    });
    if (!handed)
        hand_over();
    for (std::size_t i = 1; i < sums_.size(); ++i)
        add(sums_[i], sums_[0]);
    return sums_[0];
}

template const Sums &CpuShare::add_up(const PgkmPoints &, const PgkmProblem &, const float *,
                                      const std::function<void(const NextRows &)> &);
template const Sums &CpuShare::add_up(const PgkmPoints &, const PgkmProblem &, const double *,
                                      const std::function<void(const NextRows &)> &);

} // namespace pgkm::cuda
