// relocation.cu (fit) - the rows farthest from their centroids, found on the device slice by slice, and the choice
// among them, made on the host as every backend makes it (src/backend/update.hpp).
#include "fit/relocation.hpp"

#include <optional>

#include "assign/measure.hpp"
#include "backend/peers.hpp"
#include "relocation/farthest.hpp"
#include "relocation/kept_labels.hpp"
#include "relocation/labels_differ.hpp"

namespace pgkm::cuda {
namespace {

// Brings the labels of the last iteration, which changed no centroid, into problem.labels: they were kept by row or in
// the pivots' order, or stand there, or are made once more.
template <typename T>
void last_labels(DeviceProblem<T> &problem, const View<T> &rows, std::int64_t first)
{
    const std::int64_t n = problem.problem.n_rows;
    const Moves moves = problem.plan.moves;
    const std::int32_t *order = moves == Moves::strips ? problem.order->rows.order : nullptr;
    if (problem.kept.get() != nullptr && moves != Moves::leaves && moves != Moves::sorted)
        spread_labels(problem.context, {problem.kept.get(), problem.k > 255}, order, n, first, rows.n,
                      problem.labels.get());
    else if (moves == Moves::leaves || problem.plan.execution != Execution::multi_pass || rows.n != n)
        problem.assign_rows(rows, problem.control.get(), problem.labels.get());
}

template <typename T>
std::vector<FarRow> farthest_rows(DeviceProblem<T> &problem, std::size_t most)
{
    Context &context = problem.context;
    const std::size_t slice_rows = problem.labels.count();
    context.make_room(slice_rows * sizeof(double) + FarthestRows<T>::bytes(most, slice_rows, problem.d));
    DeviceArray<double> squares(context.budget, slice_rows);
    FarthestRows<T> farthest(context, {problem.data.host, problem.problem.first_row}, most, slice_rows);
    const Control *control = problem.control.get();
    problem.each_slice(0, [&](const View<T> &rows, std::int64_t first) {
        last_labels(problem, rows, first);
        measure<T>({rows, problem.labels.get(), squares.get(), nullptr, 0, control}, context.facts.multiprocessors, 0,
                   problem.stream());
        problem.wait();
        farthest.add(rows, squares.get(), problem.labels.get(), first);
    });
    return farthest.rows();
}

} // namespace

template <typename T>
void relocate(DeviceProblem<T> &problem, Sums &sums)
{
    std::optional<Claim> claim;
    relocate_by_farthest_of_peers<T>(problem.data.host, problem.problem, sums, [&](std::size_t most) {
        claim.reset();
        claim.emplace(problem.context.host_budget, FarthestRows<T>::host_bytes(most, problem.labels.count()));
        return farthest_rows(problem, most);
    });
}

template <typename T>
bool same_labels(DeviceProblem<T> &problem, int set, int other)
{
    Context &context = problem.context;
    context.make_room(sizeof(std::int32_t));
    DeviceArray<std::int32_t> differ(context.budget, 1);
    differ.fill_zero(problem.stream());
    const Control *control = problem.control.get();
    std::int32_t different = 0;
    problem.each_slice(set, [&](const View<T> &rows, std::int64_t) {
        if (different != 0)
            return;
        // The operands belong to the current centroids: other sets are assigned without a filter.
        if (set == 0)
            problem.assign_rows(rows, control, problem.labels.get());
        else
            assign_generic(problem.stage(control), rows, problem.labels.get());
        labels_differ(problem.stage(control), problem.under(other, rows), problem.labels.get(), differ.get());
        problem.wait();
        different = context.fetch(differ)[0];
    });
    return different == 0;
}

template void relocate<float>(DeviceProblem<float> &, Sums &);
template void relocate<double>(DeviceProblem<double> &, Sums &);
template bool same_labels<float>(DeviceProblem<float> &, int, int);
template bool same_labels<double>(DeviceProblem<double> &, int, int);

} // namespace pgkm::cuda
