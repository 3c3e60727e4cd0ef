#include "fit/job.hpp"

#include <cmath>

namespace pgkm::cuda {
namespace {

// Rows whose labels are held at a time, so that labels never need much memory.
std::int64_t label_rows(const Data &data, const PgkmProblem &problem)
{
    const std::int64_t most = data.resident ? std::int64_t{1} << 25 : data.chunks.rows;
    std::int64_t rows = std::min(problem.n_rows, most);
    const Budget &budget = data.context.budget;
    if (budget.limit != 0)
        rows = std::min(rows, std::max<std::int64_t>(static_cast<std::int64_t>(budget.room() / 32), 1024));
    return std::max<std::int64_t>(rows, 1);
}

// Device memory that a problem needs beside its rows, whatever the strategies.
template <typename T>
std::uint64_t least_bytes(std::int32_t d, std::int32_t k, std::uint64_t parts)
{
    const auto cells = static_cast<std::uint64_t>(k) * static_cast<std::uint64_t>(d);
    const std::uint64_t per_cell = 4 * sizeof(T) + 16 * parts; // three sets of centroids, fresh ones, totals
    return cells * per_cell + static_cast<std::uint64_t>(k) * (8 + 16 * parts + 48) + static_cast<std::uint64_t>(d) * 16 + 65536;
}

} // namespace

template <typename T>
Job<T>::Job(Data &owner, const PgkmProblem &given)
    : data(owner), context(owner.context), problem(given), d(owner.host.d), k(given.k),
      weighted(owner.host.weights != nullptr), constant(owner.context)
{
    if (k < 1 || problem.n_rows < 1 || problem.first_row < 0 || problem.first_row + problem.n_rows > data.host.n)
        throw Error(PGKM_INVALID, "a problem needs k >= 1 and rows within the points");
    const Shape shape = {problem.n_rows, d, k, sizeof(T) == 8, weighted};
    plan = choose(shape, context.facts, context.forced);
    const auto parts = static_cast<std::size_t>(parts_of(weighted));
    const std::size_t cells = static_cast<std::size_t>(k) * static_cast<std::size_t>(d);
    DeviceMemory &budget = context.budget;
    context.make_room(least_bytes<T>(d, k, parts));
    if (!budget.fits(least_bytes<T>(d, k, parts)))
        data.stream();
    centroids = DeviceArray<T>(budget, 3 * cells);
    centroids.fill_zero(stream()); // the history of a first iteration is copied before it means anything
    fresh = DeviceArray<T>(budget, cells);
    shifts = DeviceArray<double>(budget, static_cast<std::size_t>(k));
    totals = DeviceArray<std::int64_t>(budget, parts * 2 * cells);
    masses = DeviceArray<std::int64_t>(budget, parts * 2 * static_cast<std::size_t>(k));
    exponents = DeviceArray<std::int32_t>(budget, static_cast<std::size_t>(d));
    control = DeviceArray<Control>(budget, 1);
    control.fill_zero(stream());
    stop_flag.emplace(context, &control.get()->stop);
    if (problem.feature_exponent != nullptr)
        exponents.upload(problem.feature_exponent, static_cast<std::size_t>(d), stream());
    else
        exponents.fill_zero(stream());
    if (plan.assignment == Assignment::register_constant || plan.assignment == Assignment::generic_constant)
        constant.take();
    make_filter();
    make_groups();
    Plan named = plan;
    if (plan.execution == Execution::single_pass)
        named.assignment = fused_assignment();
    context.use(named);
    labels = DeviceArray<std::int32_t>(budget, static_cast<std::size_t>(label_rows(data, problem)));
}

// The filters' shift is the middle of each feature's range, and the box bounds |x'|: with c the
// half-width of a feature, |x - s| <= c plus one rounding of s and one of x - s.
template <typename T>
void Job<T>::make_filter()
{
    const bool wanted = plan.assignment == Assignment::register_ || plan.execution == Execution::single_pass;
    const int panel_d = register_size(d);
    if (!wanted || panel_d == 0 || sizeof(T) == 8)
        return;
    const Box box = feature_box(data, problem);
    std::vector<T> middle(static_cast<std::size_t>(d));
    double square = 0.0;
    for (std::size_t f = 0; f < middle.size(); ++f) {
        middle[f] = static_cast<T>(box.min[f] + (box.max[f] - box.min[f]) / 2);
        const double reach = std::max(box.max[f] - static_cast<double>(middle[f]), static_cast<double>(middle[f]) - box.min[f]);
        square += reach * reach;
    }
    FilterHead bounds = {0.0f, static_cast<float>(std::sqrt(square) * (1.0 + 0x1p-20))};
    const auto groups = static_cast<std::size_t>((k + panel_group - 1) / panel_group);
    const bool made = within_limit([&] {
        shift = DeviceArray<T>(context.budget, middle.size());
        head = DeviceArray<FilterHead>(context.budget, 1);
        operands.panel_d = panel_d;
        panel = DeviceArray<float>(context.budget, groups * static_cast<std::size_t>(operands.panel_stride()));
    });
    if (!made) { // no panel: the generic kernels
        operands = {};
        return;
    }
    shift.upload(middle.data(), middle.size(), stream());
    head.upload(&bounds, 1, stream());
    panel.fill_zero(stream()); // what lies between two groups is copied with them
    operands.shift = shift.get();
    operands.head = head.get();
    operands.panel = panel.get();
    checked("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(stream()); }); // the sources are locals
}

// Resident rows are grouped; those that come in parts (streamed, or more than labels are held
// for) are taken as they come, around the middle of the box. Where the device's limit has no
// room for the groups' lists, the generic kernels serve, which need none.
template <typename T>
void Job<T>::make_groups()
{
    if (plan.assignment != Assignment::tiled)
        return;
    if (within_limit([&] { group(); }))
        return;
    grouping = {};
    whole = {};
    plan.assignment = Assignment::generic;
}

template <typename T>
void Job<T>::group()
{
    if (data.resident && problem.n_rows < (std::int64_t{1} << 31))
        grouping = group_rows(context, reinterpret_cast<const T *>(data.values.get()) + problem.first_row * d,
                              problem.n_rows, d, k);
    if (!data.resident || problem.n_rows > label_rows(data, problem))
        whole = one_group<T>(context, feature_box(data, problem), d, k);
}

template <typename T>
Stage<T> Job<T>::stage_for(const View<T> &rows, const Control *watched)
{
    const bool all = rows.n == problem.n_rows && grouping.groups.count > 0;
    return {context, stream(), watched, operands, all ? grouping.groups : whole.groups};
}

template <typename T>
void Job<T>::prepare_tiles(const Control *watched)
{
    prepare_groups(grouping.groups, centroids.get(), k, d, watched, stream());
    prepare_groups(whole.groups, centroids.get(), k, d, watched, stream());
}

template <typename T>
void Job<T>::prepare_operands(const PgkmFitParams *params)
{
    if (operands.panel != nullptr)
        prepare(update_arguments(params, nullptr), stream());
    prepare_tiles(nullptr);
}

template <typename T>
UpdateArguments<T> Job<T>::update_arguments(const PgkmFitParams *params, Progress *progress) const
{
    UpdateArguments<T> a{};
    a.control = control.get();
    a.progress = progress;
    a.sums = {totals.get(), masses.get(), weighted};
    a.centroids = centroids.get();
    a.fresh = fresh.get();
    a.shifts = shifts.get();
    a.feature_exponent = exponents.get();
    a.weight_exponent = problem.weight_exponent;
    a.k = k;
    a.d = d;
    a.cosine = params != nullptr && params->metric == PGKM_COSINE;
    a.operands = operands;
    return a;
}

template <typename T>
void Job<T>::upload_centroids(const void *values, const PgkmFitParams *params)
{
    const std::size_t cells = static_cast<std::size_t>(k) * static_cast<std::size_t>(d);
    centroids.upload(static_cast<const T *>(values), cells, stream());
    begin_anew(params);
}

template <typename T>
void Job<T>::begin_anew(const PgkmFitParams *params)
{
    totals.fill_zero(stream());
    masses.fill_zero(stream());
    forget_labels();
    prepare_operands(params);
}

template <typename T>
View<T> Job<T>::view(const T *values, const double *weights, std::int64_t rows, int set) const
{
    return under(set, {values, weights, rows, d, k, nullptr, exponents.get(), problem.weight_exponent});
}

template <typename T>
void Job<T>::assign_rows(const View<T> &rows, const Control *watched, std::int32_t *out)
{
    const Shape shape = {rows.n, d, k, sizeof(T) == 8, false};
    switch (plan.assignment) {
    case Assignment::register_:
        if (sizeof(T) == 8 || (fits_register(shape, context.facts) && operands.panel != nullptr))
            return assign_register(stage(watched), rows, out);
        break;
    case Assignment::register_constant:
        return assign_register_constant(stage(watched), rows, out);
    case Assignment::register_shared:
        return assign_register_shared(stage(watched), rows, out);
    case Assignment::register_global:
        return assign_register_global(stage(watched), rows, out);
    case Assignment::generic_constant:
        return assign_generic_constant(stage(watched), rows, out);
    case Assignment::tiled:
        return assign_tiled(stage_for(rows, watched), rows, out);
    case Assignment::tensor_core:
        return assign_tensor(stage(watched), rows, out);
    default:
        break;
    }
    assign_generic(stage(watched), rows, out);
}

template <typename T>
void Job<T>::sum_features(const View<T> &rows, const Control *watched, const std::int32_t *of)
{
    SumFunction<T> function = sum_features_atomic<T>;
    switch (plan.feature_sum) {
    case FeatureSum::cluster_merge: function = sum_features_cluster_merge<T>; break;
    case FeatureSum::partitioned_features: function = sum_features_partitioned<T>; break;
    case FeatureSum::ballot: function = sum_features_ballot<T>; break;
    case FeatureSum::divide_and_conquer: function = sum_features_divide_and_conquer<T>; break;
    case FeatureSum::sorted: function = sum_features_sorted<T>; break;
    default: break;
    }
    sum_parts(function, rows, watched, of, totals);
}

template <typename T>
void Job<T>::sum_masses(const View<T> &rows, const Control *watched, const std::int32_t *of)
{
    SumFunction<T> function = sum_masses_global_atomic<T>;
    switch (plan.mass_sum) {
    case MassSum::partitioned_global: function = sum_masses_partitioned_global<T>; break;
    case MassSum::partitioned_local: function = sum_masses_partitioned_local<T>; break;
    case MassSum::partitioned_private: function = sum_masses_partitioned_private<T>; break;
    default: break;
    }
    sum_parts(function, rows, watched, of, masses);
}

template <typename T>
void Job<T>::sum_parts(SumFunction<T> function, View<T> rows, const Control *watched, const std::int32_t *of,
                       const DeviceArray<std::int64_t> &sums)
{
    const int parts = parts_of(weighted);
    for (rows.part = 0; rows.part < parts; ++rows.part)
        function(stage(watched), rows, of, sums.get() + static_cast<std::size_t>(rows.part) * (sums.count() / 2));
}

template <typename T>
Assignment Job<T>::fused_assignment() const
{
    if (plan.assignment == Assignment::tiled)
        return Assignment::tiled;
    const Shape shape = {problem.n_rows, d, k, sizeof(T) == 8, weighted};
    return operands.panel != nullptr && fits_fused_register(shape, context.facts) ? Assignment::register_ : Assignment::generic;
}

template <typename T>
void Job<T>::fused_pass(const View<T> &rows, const Control *watched)
{
    const Accumulators sums = {totals.get(), masses.get()};
    const Assignment assignment = fused_assignment();
    if constexpr (sizeof(T) == 4) {
        if (assignment == Assignment::tiled && fits_narrow(d, context.facts))
            return fused_narrow(stage_for(rows, watched), rows, sums);
        if (assignment == Assignment::register_)
            return fused_register(stage(watched), rows, sums);
    }
    if (assignment == Assignment::tiled)
        return fused_tiled(stage_for(rows, watched), rows, sums);
    fused_generic(stage(watched), rows, sums);
}

template <typename T>
void Job<T>::pass(const View<T> &rows, const Control *watched)
{
    if (plan.execution == Execution::single_pass)
        return fused_pass(rows, watched);
    const auto most = static_cast<std::int64_t>(labels.count());
    for (std::int64_t done = 0; done < rows.n; done += most) {
        const View<T> part = slice(rows, done, std::min(most, rows.n - done));
        assign_rows(part, watched, labels.get());
        sum_features(part, watched, labels.get());
        sum_masses(part, watched, labels.get());
    }
}

template <typename T>
void Job<T>::iteration(const UpdateArguments<T> &arguments, const Control *watched)
{
    if (sizeof(T) == 4 && keeps_labels())
        return iterate_moves(arguments);
    data.template each_chunk<T>(problem.first_row, problem.n_rows,
                                [&](const T *values, const double *weights, std::int64_t, std::int64_t rows) {
                                    pass(view(values, weights, rows), watched);
                                });
    update(arguments, stream());
    prepare_tiles(watched);
}

template struct Job<float>;
template struct Job<double>;

} // namespace pgkm::cuda
