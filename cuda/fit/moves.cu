// moves.cu (fit) - iterations in which sums follow the rows: what is kept from one to the next, and whose kernels run.
#include <algorithm>
#include <cmath>

#include "fit/device_problem.hpp"
#include "fused/moves.hpp"
#include "sums/sorted.hpp"

namespace pgkm::cuda {
namespace {

// A few rows, as far apart as they can be, side by side.
std::vector<float> sample_rows(Context &context, const float *values, std::int64_t n, int d)
{
    const auto rows = static_cast<std::size_t>(n), count = std::min<std::size_t>(128, rows);
    const auto width = static_cast<std::size_t>(d);
    const DeviceArray<float> sampled(context.budget, count * width);
    const std::size_t row_bytes = width * sizeof(float);
    checked("cudaMemcpy2DAsync", [&] {
        return cudaMemcpy2DAsync(sampled.get(), row_bytes, values, rows / count * row_bytes, row_bytes, count,
                                 cudaMemcpyDeviceToDevice, context.compute.get());
    });
    return context.fetch(sampled);
}

// Whether a few of these rows lie much farther out than the others, so that their box says little of where rows are.
// Waits for the compute stream.
bool has_heavy_tails(Context &context, const float *values, std::int64_t n, int d, const Box &box)
{
    const std::vector<float> rows = sample_rows(context, values, n, d);
    const std::size_t width = box.min.size();
    const double count = static_cast<double>(rows.size() / width);
    double range = 0.0, spread = 0.0;
    for (std::size_t f = 0; f < width; ++f) {
        double mean = 0.0, deviation = 0.0;
        for (std::size_t i = f; i < rows.size(); i += width)
            mean += static_cast<double>(rows[i]) / count;
        for (std::size_t i = f; i < rows.size(); i += width)
            deviation += std::abs(static_cast<double>(rows[i]) - mean) / count;
        range = std::hypot(range, box.max[f] - box.min[f]);
        spread = std::hypot(spread, deviation);
    }
    return !(range <= 64.0 * spread); // uniform rows: 4, normal ones: 13
}

} // namespace

template <typename T>
bool DeviceProblem<T>::takes_floats() const
{
    bool fits = true;
    for (std::int32_t f = 0; f < d && problem.feature_scales != nullptr; ++f)
        fits = fits && cuda::takes_floats(problem.feature_scales[f].exponent);
    return fits;
}

// Memory for the labels and entries of all rows; an assignment needs most of what the device's limit leaves.
template <typename T>
bool DeviceProblem<T>::keeps_entries()
{
    if (!data.resident || problem.n_rows > static_cast<std::int64_t>(labels.count()))
        return false;
    const std::size_t bytes = entry_bytes(problem.n_rows, k, true);
    if (kept.get() == nullptr && bytes <= context.budget.room() / 4 &&
        within_limit([&] { kept = DeviceArray<char>(context.budget, bytes); }))
        forget_labels();
    return kept.get() != nullptr;
}

// Sums follow the rows where the plan has it and there is memory for their labels.
template <typename T>
bool DeviceProblem<T>::keeps_labels()
{
    if (plan.moves == Moves::sorted) {
        if (!keeps_entries())
            plan.moves = Moves::none;
        return plan.moves == Moves::sorted;
    }
    if (sizeof(T) == 8 || plan.moves == Moves::none || !data.resident ||
        (plan.moves == Moves::few && middle.shift == nullptr))
        return false;
    if (kept.get() != nullptr)
        return true;
    const float *values = reinterpret_cast<const float *>(data.values.get()) + problem.first_row * d;
    const auto has_tails = [&] {
        return has_heavy_tails(context, values, problem.n_rows, d, feature_box(data, problem));
    };
    const bool fits_few = middle.shift != nullptr && fused_assignment() == Assignment::register_;
    if (plan.moves == Moves::leaves && fits_few && (few_iterations || (k <= tails_k(d) && !has_tails())))
        plan.moves = Moves::few;
    const std::size_t bytes = static_cast<std::size_t>(problem.n_rows) * (k > 255 ? 2 : 1);
    if (!within_limit([&] { kept = DeviceArray<char>(context.budget, bytes); })) {
        plan.moves = Moves::none;
        return false;
    }
    const bool ordered = within_limit([&] {
        if (plan.moves == Moves::leaves)
            leaves.emplace(context, values, problem.n_rows, d, k);
        else if (plan.moves == Moves::strips)
            order = order_of_loaded(context, values, problem.n_rows, d, pivots_for(problem.n_rows, d, k), false);
    });
    if (!ordered) {
        kept = {};
        plan.moves = plan.moves == Moves::leaves && fits_few ? Moves::few : Moves::none;
        return keeps_labels();
    }
    forget_labels();
    return true;
}

template <typename T>
void DeviceProblem<T>::forget_labels()
{
    if (leaves)
        leaves->forget(stream());
    if (kept.get() != nullptr)
        enqueue_fill(kept.get(), 0xff, kept.bytes(), stream());
}

template <typename T>
MoveArguments DeviceProblem<T>::move_arguments(const UpdateArguments<T> &arguments, const View<T> &rows) const
{
    MoveArguments moves{};
    if constexpr (sizeof(T) == 4) {
        moves.view = rows;
        moves.shift = middle.shift;
        moves.reach = middle.reach;
        if (order)
            moves.ordered = order->rows;
        moves.update = arguments;
        moves.last = {kept.get(), k > 255};
        moves.finish = problem.peers == nullptr;
        moves.floats = takes_floats();
    }
    return moves;
}

// Assignment, sums and update by themselves.
template <typename T>
void DeviceProblem<T>::iterate_apart(UpdateArguments<T> arguments)
{
    Carver carver(kept.get());
    const Entries entries = carve_entries(carver, problem.n_rows, k, true);
    each_chunk([&](const View<T> &rows) {
        assign_rows(rows, arguments.control, labels.get());
        follow_rows(stage(arguments.control), rows, labels.get(), entries, arguments.sums);
    });
    if (problem.peers != nullptr)
        return;
    arguments.sums_stay = true;
    update(arguments, stream());
}

template <typename T>
void DeviceProblem<T>::iterate_moves(const UpdateArguments<T> &arguments)
{
    if (plan.moves == Moves::sorted)
        return iterate_apart(arguments);
    if constexpr (sizeof(T) == 4)
        each_chunk([&](const View<T> &rows) {
            const MoveArguments moves = move_arguments(arguments, rows);
            switch (plan.moves) {
            case Moves::few:
                return iterate_few(stage(arguments.control), moves);
            case Moves::leaves:
                return iterate_leaves(stage(arguments.control), moves, *leaves);
            default:
                return iterate_strips(stage(arguments.control), moves);
            }
        });
}

// Rows of no sum yet move into one: what the first iteration does. Their labels are forgotten.
template <typename T>
void DeviceProblem<T>::register_pass(const View<T> &rows, const Control *watched)
{
    if constexpr (sizeof(T) == 4) {
        MoveArguments moves = move_arguments(update_arguments(nullptr, nullptr), rows);
        moves.update.control = const_cast<Control *>(watched); // read alone
        moves.last.values = labels.get();
        moves.finish = false;
        const auto most = static_cast<std::int64_t>(labels.count());
        for (std::int64_t done = 0; done < rows.n; done += most) {
            moves.view = slice(rows, done, std::min(most, rows.n - done));
            const std::size_t bytes = static_cast<std::size_t>(moves.view.n) * (moves.last.wide ? 2 : 1);
            enqueue_fill(labels.get(), 0xff, bytes, stream());
            iterate_few(stage(watched), moves);
        }
    }
}

template bool DeviceProblem<float>::keeps_labels();
template void DeviceProblem<float>::forget_labels();
template void DeviceProblem<float>::iterate_moves(const UpdateArguments<float> &);
template void DeviceProblem<float>::register_pass(const View<float> &, const Control *);
template bool DeviceProblem<double>::keeps_labels();
template void DeviceProblem<double>::forget_labels();
template void DeviceProblem<double>::iterate_moves(const UpdateArguments<double> &);
template void DeviceProblem<double>::register_pass(const View<double> &, const Control *);

} // namespace pgkm::cuda
