// device_problem.cu - the memory of a problem, and its stages by the kernels of the plan.
#include "fit/device_problem.hpp"

#include <algorithm>
#include <cmath>

#include "plan/bytes.hpp"

namespace pgkm::cuda {
namespace {

// Rows whose labels are held at a time, so that labels never need much memory.
std::int64_t label_rows(const Data &data, const PgkmProblem &problem)
{
    const std::int64_t most = data.resident ? std::int64_t{1} << 25 : data.chunks.rows;
    std::int64_t rows = std::min(problem.n_rows, most);
    const Budget &budget = data.context.budget; // rows were loaded so that labels fit what is free
    if (budget.limit != 0)
        rows = std::min(rows, std::max<std::int64_t>(static_cast<std::int64_t>(budget.room() / 32), 1024));
    return std::max<std::int64_t>(rows, 1);
}

// The kernels of the strategies that src/backend/strategies.hpp names.
template <typename Id, template <typename> typename Function>
struct Kernel {
    Id strategy;
    const Both<Function> &function;
};

const Kernel<Assignment, Assign> assignments[] = {
    {Assignment::generic, assign_generic},
    {Assignment::register_, assign_register},
    {Assignment::tiled, assign_tiled},
    {Assignment::tensor_core, assign_tensor},
    {Assignment::register_constant, assign_register_constant},
    {Assignment::register_shared, assign_register_shared},
    {Assignment::register_global, assign_register_global},
    {Assignment::generic_constant, assign_generic_constant},
    {Assignment::distance_matrix, assign_distance_matrix},
};
const Kernel<FeatureSum, Sum> feature_sums[] = {
    {FeatureSum::atomic, sum_features_atomic},
    {FeatureSum::block_merge, sum_features_block_merge},
    {FeatureSum::cluster_merge, sum_features_cluster_merge},
    {FeatureSum::partitioned_features, sum_features_partitioned},
    {FeatureSum::sorted, sum_features_sorted},
    {FeatureSum::ballot, sum_features_ballot},
    {FeatureSum::divide_and_conquer, sum_features_divide_and_conquer},
    {FeatureSum::staged_rows, sum_features_staged_rows},
};
const Kernel<MassSum, Sum> mass_sums[] = {
    {MassSum::global_atomic, sum_masses_global_atomic},
    {MassSum::partitioned_local, sum_masses_partitioned_local},
    {MassSum::partitioned_global, sum_masses_partitioned_global},
    {MassSum::partitioned_private, sum_masses_partitioned_private},
};

template <typename Id, template <typename> typename Function, std::size_t N>
const Both<Function> &find(const Kernel<Id, Function> (&kernels)[N], Id strategy)
{
    return std::find_if(kernels, kernels + N, [=](const auto &kernel) { return kernel.strategy == strategy; })
        ->function;
}

} // namespace

std::vector<std::int64_t> limbs_of(const std::vector<Int128> &sums, bool weighted)
{
    const std::size_t count = sums.size();
    std::vector<std::int64_t> limbs(count * 2 * static_cast<std::size_t>(parts_of(weighted)));
    const auto set = [&](std::size_t i, Int128 value) {
        const Int128 hi = value >> limb_bits;
        limbs[2 * i] = static_cast<std::int64_t>(hi);
        limbs[2 * i + 1] = static_cast<std::int64_t>(value - hi * (Int128{1} << limb_bits));
    };
    for (std::size_t i = 0; i < count; ++i) {
        const Int128 upper = weighted ? sums[i] >> lower_limb_bits : sums[i];
        set(i, upper);
        if (weighted)
            set(count + i, sums[i] - upper * (Int128{1} << lower_limb_bits));
    }
    return limbs;
}

template <typename T>
DeviceProblem<T>::DeviceProblem(Data &owner, const PgkmProblem &given, bool may_stream)
    : data(owner), context(owner.context), problem(given), d(owner.host.d), k(given.k),
      weighted(owner.host.weights != nullptr), constant(owner.context)
{
    if (k < 1 || problem.n_rows < 1 || problem.first_row < 0 || problem.first_row + problem.n_rows > data.host.n)
        throw Error(PGKM_INVALID, "a problem needs k >= 1 and rows within the points");
    const Shape shape = {problem.n_rows, d, k, sizeof(T) == 8, weighted, data.copies.rows != 0};
    plan = choose(shape, context.facts, context.forced);
    const auto parts = static_cast<std::size_t>(parts_of(weighted));
    const std::size_t n_values = static_cast<std::size_t>(k) * static_cast<std::size_t>(d);
    DeviceMemory &budget = context.budget;
    std::uint64_t least = least_bytes(shape, problem.peers != nullptr);
    if (problem.peers != nullptr) // the context keeps the copies for others from fit to fit
        least -= std::min<std::uint64_t>(context.for_peers.bytes(), peer_copy_bytes(sums_of(shape)));
    if (!context.make_room(least)) {
        if (!may_stream && data.resident)
            throw Error(PGKM_LIMIT, "a device has no room for centroids and sums beside the rows");
        data.stream();
    }
    // The history of a first iteration is copied before it means anything.
    centroids = zeros<T>(budget, 3 * n_values, stream());
    fresh = DeviceArray<T>(budget, n_values);
    shifts = DeviceArray<double>(budget, static_cast<std::size_t>(k));
    totals = DeviceArray<std::int64_t>(budget, parts * 2 * n_values);
    masses = DeviceArray<std::int64_t>(budget, parts * 2 * static_cast<std::size_t>(k));
    scales = DeviceArray<FeatureScale<T>>(budget, static_cast<std::size_t>(d));
    control = zeros<Control>(budget, 1, stream());
    stop_flag.emplace(context, &control.get()->stop);
    if (problem.peers != nullptr)
        peer_sums.emplace(context, *problem.peers, totals.count() + masses.count(), data.resident);
    upload_scales();
    if (plan.assignment == Assignment::register_constant || plan.assignment == Assignment::generic_constant)
        constant.take();
    find_middle();
    use_plan();
    // An assignment may begin from the labels before.
    labels = zeros<std::int32_t>(budget, static_cast<std::size_t>(label_rows(data, problem)), stream());
}

template <typename T>
void DeviceProblem<T>::upload_scales()
{
    if (problem.feature_scales == nullptr)
        return scales.fill_zero(stream());
    std::vector<FeatureScale<T>> of(static_cast<std::size_t>(d));
    std::transform(problem.feature_scales, problem.feature_scales + d, of.begin(), device_scale<T>);
    scales.upload(of.data(), of.size(), stream());
}

// The middle of each feature's range; with c the half-width of a feature, |x - s| <= c plus one rounding of s and one
// of x - s.
template <typename T>
void DeviceProblem<T>::find_middle()
{
    const bool wanted = plan.assignment == Assignment::register_ || plan.execution == Execution::single_pass;
    if (!wanted || d > register_d || sizeof(T) == 8)
        return;
    const Box box = feature_box(data, problem);
    std::vector<T> middle_of(static_cast<std::size_t>(d));
    double square = 0.0;
    for (std::size_t f = 0; f < middle_of.size(); ++f) {
        middle_of[f] = static_cast<T>(box.min[f] + (box.max[f] - box.min[f]) / 2);
        const double of = static_cast<double>(middle_of[f]), half = std::max(box.max[f] - of, of - box.min[f]);
        square += half * half;
    }
    shift = DeviceArray<T>(context.budget, middle_of.size());
    shift.upload(middle_of.data(), middle_of.size(), stream());
    middle = {shift.get(), static_cast<float>(std::sqrt(square) * (1.0 + 0x1p-20))};
}

// Tells whose kernels run.
template <typename T>
void DeviceProblem<T>::use_plan()
{
    Plan named = plan;
    if (plan.moves == Moves::strips && data.resident)
        named.execution = Execution::single_pass;
    else if (plan.execution == Execution::single_pass)
        named.assignment = fused_assignment();
    else if (plan.moves == Moves::sorted)
        named.feature_sum = FeatureSum::sorted;
    if (plan.travel == Travel::round_trip || (plan.travel != Travel::overlapped && !data.resident))
        named.execution = context.forced.execution;
    context.use(named);
}

template <typename T>
UpdateArguments<T> DeviceProblem<T>::update_arguments(const PgkmFitParams *params, Progress *progress) const
{
    UpdateArguments<T> a{};
    a.control = control.get();
    a.progress = progress;
    a.sums = {totals.get(), masses.get(), weighted};
    a.centroids = centroids.get();
    a.fresh = fresh.get();
    a.shifts = shifts.get();
    a.feature_scales = scales.get();
    a.weight_exponent = problem.weight_exponent;
    a.k = k;
    a.d = d;
    a.cosine = params != nullptr && params->metric == PGKM_COSINE;
    return a;
}

template <typename T>
void DeviceProblem<T>::upload_centroids(const void *values)
{
    const std::size_t n_values = static_cast<std::size_t>(k) * static_cast<std::size_t>(d);
    centroids.upload(static_cast<const T *>(values), n_values, stream());
    totals.fill_zero(stream());
    masses.fill_zero(stream());
    forget_labels();
}

template <typename T>
View<T> DeviceProblem<T>::view(const T *values, const double *weights, std::int64_t rows, int set) const
{
    return under(set, {values, weights, rows, d, k, nullptr, scales.get(), problem.weight_exponent, 0,
                       data.copies.counts.get()});
}

template <typename T>
void DeviceProblem<T>::assign_rows(const View<T> &rows, const Control *watched, std::int32_t *out)
{
    find(assignments, plan.assignment)(stage(watched), rows, out);
}

template <typename T>
void DeviceProblem<T>::sum_features(const View<T> &rows, const Control *watched, const std::int32_t *of)
{
    sum_parts(find(feature_sums, plan.feature_sum), rows, watched, of, totals);
}

template <typename T>
void DeviceProblem<T>::sum_masses(const View<T> &rows, const Control *watched, const std::int32_t *of)
{
    sum_parts(find(mass_sums, plan.mass_sum), rows, watched, of, masses);
}

// A sum over rows, part by part; `sums` has all parts.
template <typename T>
void DeviceProblem<T>::sum_parts(const Both<Sum> &function, View<T> rows, const Control *watched,
                                 const std::int32_t *of, const DeviceArray<std::int64_t> &sums)
{
    const int parts = parts_of(weighted);
    for (rows.part = 0; rows.part < parts; ++rows.part)
        function(stage(watched), rows, of, sums.get() + static_cast<std::size_t>(rows.part) * (sums.count() / 2));
}

template <typename T>
Assignment DeviceProblem<T>::fused_assignment() const
{
    const Shape shape = {problem.n_rows, d, k, sizeof(T) == 8, weighted};
    return fits_fused_register(shape, context.facts) ? Assignment::register_ : Assignment::tiled;
}

template <typename T>
void DeviceProblem<T>::fused_pass(const View<T> &rows, const Control *watched)
{
    if (fused_assignment() == Assignment::register_)
        return register_pass(rows, watched);
    const Accumulators sums = {totals.get(), masses.get()};
    fused_tiled(stage(watched), rows, sums);
}

template <typename T>
void DeviceProblem<T>::pass(const View<T> &rows, const Control *watched)
{
    if (plan.execution == Execution::single_pass)
        return fused_pass(rows, watched);
    const auto most = static_cast<std::int64_t>(labels.count());
    for (std::int64_t done = 0; done < rows.n; done += most) {
        const View<T> part = slice(rows, done, std::min(most, rows.n - done));
        assign_rows(part, watched, labels.get());
        there_and_back(part.values, static_cast<std::size_t>(part.n) * data.row_bytes());
        there_and_back(labels.get(), static_cast<std::size_t>(part.n) * sizeof(std::int32_t));
        sum_features(part, watched, labels.get());
        sum_masses(part, watched, labels.get());
        there_and_back(totals.get(), totals.bytes());
        there_and_back(masses.get(), masses.bytes());
    }
}

template <typename T>
void DeviceProblem<T>::iteration(const UpdateArguments<T> &arguments, const Control *watched)
{
    if (keeps_labels())
        return iterate_moves(arguments);
    const bool shared = !data.resident && plan.travel == Travel::shared;
    const bool serial = !data.resident && plan.travel == Travel::serial;
    if (shared)
        shared_pass(watched);
    else
        each_chunk([&](const View<T> &rows) {
            pass(rows, watched);
            if (serial) // Li, Zhao, Chu, Liu 2010, Algorithm 7: the next chunk comes when this one is done
                wait();
        });
    if (problem.peers != nullptr)
        return;
    update(arguments, stream());
    there_and_back(centroids.get(), centroids.bytes());
}

// Sums that follow this peer's rows stay what they are, beside those of all.
template <typename T>
void DeviceProblem<T>::iteration_of_peers(UpdateArguments<T> arguments)
{
    iteration(arguments, control.get());
    const bool stay = kept.get() != nullptr;
    peer_sums->add_up({totals.get(), totals.count(), masses.get(), masses.count(), stay}, control.get());
    take_all_sums(arguments);
    update(arguments, stream());
}

template <typename T>
void DeviceProblem<T>::take_all_sums(UpdateArguments<T> &arguments) const
{
    if (peer_sums)
        arguments.sums = {peer_sums->all(), peer_sums->all() + totals.count(), weighted};
    arguments.sums_stay = peer_sums.has_value() || kept.get() != nullptr;
}

template struct DeviceProblem<float>;
template struct DeviceProblem<double>;

} // namespace pgkm::cuda
