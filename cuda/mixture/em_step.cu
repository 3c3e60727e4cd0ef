// em_step.cu (mixture) - one E step with the sums of the M step: problems in batches of like ones.
//
// Shape: any; a batch holds as many problems as a quarter of the memory limit has room for.
// Reference: test/reference/mixture.hpp.
// Paper: Dempster, Laird, Rubin 1977, Maximum likelihood from incomplete data via the EM algorithm.
#include <algorithm>
#include <cmath>
#include <vector>

#include "plugin/operations.hpp"
#include "plugin/parallel.hpp"
#include "mixture/batch.hpp"

namespace pgkm::cuda {
namespace mixture {
namespace {

constexpr std::int64_t most_tasks = 16384; // of a batch

template <typename T>
void run_batch(Data &data, const std::vector<Task> &tasks)
{
    if (tasks.empty())
        return;
    data.context.poll();
    Batch<T>(data, tasks).run();
    for (const Task &task : tasks)
        if (!task.given() && !std::isfinite(task.out->log_likelihood))
            throw Error(PGKM_INVALID, "features are too large: their squares overflow");
}

// Whether two tasks may share their launches.
bool alike(const Task &a, const Task &b)
{
    if (a.way != b.way)
        return false;
    // Coefficients are packed for the kernel's number of components.
    if (a.way == Way::fused && (a.mixture->k + 3) / 4 != (b.mixture->k + 3) / 4)
        return false;
    return a.mixture->covariance_type == b.mixture->covariance_type && a.given() == b.given() &&
           (a.out->masses == nullptr) == (b.out->masses == nullptr) &&
           (a.out->labels == nullptr) == (b.out->labels == nullptr);
}

template <typename T>
std::vector<Task> plan_tasks(const Data &data, const PgkmProblem *problems, std::int64_t count,
                             const PgkmMixture *mixtures, PgkmMixtureSums *sums)
{
    std::vector<Task> tasks(static_cast<std::size_t>(count));
    for_each_of(data.context, count, 64, [&](std::int64_t i) {
        tasks[static_cast<std::size_t>(i)] =
            plan_task<T>(data.context, problems[i], mixtures[i], sums[i], data.host.d, data.host.weights != nullptr);
    });
    return tasks;
}

} // namespace
} // namespace mixture

template <typename T>
void em_step_problems(Data &data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmMixture *mixtures,
                      PgkmMixtureSums *sums)
{
    using namespace mixture;
    // How much lies in the workspace must not decide how rows are summed: the same call gives the same bits.
    const std::uint64_t most = data.context.scratch_limit() / 4;
    if (!data.context.budget.fits(2 * most))
        data.context.make_room(2 * most);
    std::vector<Task> planned, tasks;
    std::uint64_t bytes = 0, held = 0; // of tasks; for which there is room
    for (std::int64_t p = 0; p < n_problems; ++p) {
        data.context.poll();
        if (p % most_tasks == 0)
            planned = plan_tasks<T>(data, problems + p, std::min(most_tasks, n_problems - p), mixtures + p, sums + p);
        Task &task = planned[static_cast<std::size_t>(p % most_tasks)];
        const std::uint64_t more = parameter_bytes(task, data.host.d) +
                                   16 * static_cast<std::uint64_t>(layout_of(*task.mixture, data.host.d).values());
        const std::uint64_t least = 8 * tile_rows * (static_cast<std::uint64_t>(data.host.d + task.mixture->k) + 2);
        if (!tasks.empty() &&
            (!alike(tasks[0], task) || bytes + more > most || static_cast<std::int64_t>(tasks.size()) == most_tasks)) {
            run_batch<T>(data, tasks);
            tasks.clear();
            bytes = 0;
        }
        // Rows give way to what the step itself needs, within the limit and what is free, as where they were loaded:
        // from then on they come in chunks.
        if (data.resident && 2 * (more + least) > held) {
            held = 2 * (more + least);
            if (!data.context.scratch_holds(held))
                data.stream();
        }
        tasks.push_back(std::move(task));
        bytes += more;
    }
    run_batch<T>(data, tasks);
}

template void em_step_problems<float>(Data &, const PgkmProblem *, std::int64_t, const PgkmMixture *,
                                      PgkmMixtureSums *);
template void em_step_problems<double>(Data &, const PgkmProblem *, std::int64_t, const PgkmMixture *,
                                       PgkmMixtureSums *);

} // namespace pgkm::cuda
