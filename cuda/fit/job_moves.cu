// job_moves.cu - iterations in which sums follow the rows: what is kept from one to the next, and whose kernels run.
#include "fused/moves.hpp"
#include "fit/job.hpp"

namespace pgkm::cuda {

template <typename T>
bool Job<T>::takes_floats() const
{
    bool fits = true;
    for (std::int32_t f = 0; f < d && problem.feature_exponent != nullptr; ++f)
        fits = fits && cuda::takes_floats(problem.feature_exponent[f]);
    return fits;
}

// Sums follow the rows where the plan has it and there is memory for their labels.
template <typename T>
bool Job<T>::keeps_labels()
{
    const bool prepared = plan.moves == Moves::strips ? grouping.groups.count > 0 : head.get() != nullptr;
    if (plan.moves == Moves::none || !data.resident || !prepared)
        return false;
    if (kept.get() != nullptr)
        return true;
    const std::size_t bytes = static_cast<std::size_t>(problem.n_rows) * (k > 255 ? 2 : 1);
    if (!within_limit([&] { kept = DeviceArray<char>(context.budget, bytes); })) {
        plan.moves = Moves::none;
        return false;
    }
    if constexpr (sizeof(T) == 4)
        if (plan.moves == Moves::cells && !within_limit([&] { make_cells(); }))
            plan.moves = Moves::slots;
    const Shape shape = {problem.n_rows, d, k, sizeof(T) == 8, weighted};
    if (choose_resting(shape, plan.moves) && !within_limit([&] { make_resting(); }))
        resting.reset();
    if (plan.moves == Moves::strips)
        within_limit([&] { sole = DeviceArray<std::uint8_t>(context.budget, 2 * static_cast<std::size_t>(grouping.groups.count)); });
    forget_labels();
    return true;
}

template <typename T>
void Job<T>::make_cells()
{
    const T *values = reinterpret_cast<const T *>(data.values.get()) + problem.first_row * d;
    if constexpr (sizeof(T) == 4)
        cells.emplace(context, values, problem.n_rows, d, feature_box(data, problem));
}

template <typename T>
void Job<T>::make_resting()
{
    const T *values = reinterpret_cast<const T *>(data.values.get()) + problem.first_row * d;
    if constexpr (sizeof(T) == 4)
        resting.emplace(context, values, problem.n_rows, d, feature_box(data, problem));
}

template <typename T>
void Job<T>::forget_labels()
{
    if (cells)
        cells->forget(stream());
    if (resting)
        resting->forget(stream());
    if (sole.get() != nullptr)
        checked("cudaMemsetAsync", [&] { return cudaMemsetAsync(sole.get(), no_sole, sole.bytes(), stream()); });
    if (kept.get() != nullptr)
        checked("cudaMemsetAsync", [&] { return cudaMemsetAsync(kept.get(), 0xff, kept.bytes(), stream()); });
}

template <typename T>
MoveArguments Job<T>::move_arguments(const UpdateArguments<T> &arguments, const T *values, const double *weights,
                                     std::int64_t rows) const
{
    MoveArguments moves{};
    if constexpr (sizeof(T) == 4) {
        moves.view = view(values, weights, rows);
        moves.shift = shift.get();
        moves.head = head.get();
        moves.groups = grouping.groups;
        moves.update = arguments;
        moves.last = {kept.get(), k > 255};
        moves.floats = takes_floats();
        moves.sole = sole.get();
    }
    return moves;
}

template <typename T>
void Job<T>::iterate_moves(const UpdateArguments<T> &arguments)
{
    if constexpr (sizeof(T) == 4)
        data.template each_chunk<T>(problem.first_row, problem.n_rows, [&](const T *values, const double *weights, std::int64_t, std::int64_t rows) {
            const MoveArguments moves = move_arguments(arguments, values, weights, rows);
            switch (plan.moves) {
            case Moves::few: return iterate_few(stage(arguments.control), moves, resting ? &*resting : nullptr);
            case Moves::cells: return iterate_cells(stage(arguments.control), moves, *cells);
            case Moves::slots: return iterate_slots(stage(arguments.control), moves);
            default: return iterate_strips(stage(arguments.control), moves);
            }
        });
}

template <typename T>
bool Job<T>::iterations(const UpdateArguments<T> &arguments)
{
    if (sizeof(T) != 4 || plan.moves != Moves::strips || problem.n_rows > alone_rows(context.facts) || !keeps_labels())
        return false;
    constexpr std::size_t barriers = 2; // words behind the sums
    const std::size_t     words = totals.count() + masses.count() + barriers;
    if (other_sums.get() == nullptr && !within_limit([&] { other_sums = DeviceArray<std::int64_t>(context.budget, words); }))
        return false;
    const Accumulators other = {other_sums.get(), other_sums.get() + totals.count()};
    other_sums.fill_zero(stream());
    copy(totals, other.totals);
    copy(masses, other.masses);
    const LoopMemory memory = {other, reinterpret_cast<unsigned long long *>(other_sums.get() + words - barriers)};
    bool             launched = false;
    if constexpr (sizeof(T) == 4)
        data.template each_chunk<T>(problem.first_row, problem.n_rows, [&](const T *values, const double *weights, std::int64_t, std::int64_t rows) {
            launched = loop_strips(stage(arguments.control), move_arguments(arguments, values, weights, rows), memory);
        });
    return launched;
}

template <typename T>
void Job<T>::copy(const DeviceArray<std::int64_t> &from, std::int64_t *to) const
{
    checked("cudaMemcpyAsync",
            [&] { return cudaMemcpyAsync(to, from.get(), from.bytes(), cudaMemcpyDeviceToDevice, stream()); });
}

template bool Job<float>::keeps_labels();
template void Job<float>::forget_labels();
template void Job<float>::iterate_moves(const UpdateArguments<float> &);
template bool Job<float>::iterations(const UpdateArguments<float> &);
template bool Job<double>::keeps_labels();
template void Job<double>::forget_labels();
template void Job<double>::iterate_moves(const UpdateArguments<double> &);
template bool Job<double>::iterations(const UpdateArguments<double> &);

} // namespace pgkm::cuda
