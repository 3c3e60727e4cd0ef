// cluster_sums.cpp - moves rows between clusters, and brings the workers' partial sums into the totals.
#include "cpu/sums/cluster_sums.hpp"

#include <algorithm>

#include "numeric/contract.hpp"

namespace pgkm::cpu {
namespace {

// Sums per task when partial sums are brought together.
constexpr std::size_t sums_per_task = 1 << 15;

// The sum of two limbs, which are 0 from then on.
Int128 take(Buffer<std::int64_t> &sums, std::size_t upper, std::size_t lower)
{
    return join_limbs(std::exchange(sums[upper], 0), std::exchange(sums[lower], 0));
}

} // namespace

template <typename T>
ClusterSums<T>::ClusterSums(const Rows<T> &rows, const PgkmProblem &problem)
    : rows_(rows), kernels_(sum_kernels(rows.context.instruction_set)), limbs_(rows.weights == nullptr ? 1 : 2),
      scale_(rows.context.budget, 2 * static_cast<std::size_t>(rows.d)),
      weight_scale_(rows.weights == nullptr ? 1.0 : power_of_two(problem.weight_exponent)),
      totals_(Buffer<Int128>::zeros(rows.context.budget, std::int64_t{rows.k} * rows.d)),
      masses_(rows.context.budget, rows.k, 0)
{
    const auto k = static_cast<std::size_t>(rows.k), d = static_cast<std::size_t>(rows.d);
    for (std::size_t f = 0; f < d; ++f) {
        scale_[f] = problem.feature_scales[f].origin;
        scale_[d + f] = power_of_two(problem.feature_scales[f].exponent);
    }
    for (int worker = 0; worker < rows.pool.size(); ++worker)
        partials_.push_back({Buffer<std::int64_t>::zeros(rows.context.budget, k * limbs_ * d),
                             Buffer<std::int64_t>(rows.context.budget, k * limbs_, 0), 0});
}

template <typename T>
std::pair<int, std::int64_t> ClusterSums<T>::fitting(std::int64_t first, int count, const std::int32_t *from,
                                                     const std::int32_t *to) const
{
    if (rows_.counts == nullptr)
        return {count, count};
    std::int64_t copies = 0;
    for (int i = 0; i < count; ++i) {
        const std::int64_t own = from[i] == to[i] ? 0 : rows_.counts[first + i];
        if (copies + own > partial_sum_length)
            return {i, copies};
        copies += own;
    }
    return {count, copies};
}

template <typename T>
std::int64_t ClusterSums<T>::move(int worker, std::int64_t first, int count, const std::int32_t *from,
                                  const std::int32_t *to)
{
    Partial &partial = partials_[worker];
    const auto stride = static_cast<std::int64_t>(limbs_) * rows_.d;
    const SumTarget target = {partial.features.data(), partial.masses.data(),   stride,
                              scale_.data(),           scale_.data() + rows_.d, weight_scale_};
    const int batch = static_cast<int>(std::max<std::int64_t>(1, work_per_poll / rows_.d));
    std::int64_t moved = 0;
    for (int done = 0; done < count;) {
        if (done > 0)
            rows_.context.poll();
        const std::int64_t row = first + done;
        const auto [size, copies] = fitting(row, std::min(batch, count - done), from + done, to + done);
        if (partial.used + copies > partial_sum_length) {
            rows_.context.poll();
            const std::lock_guard lock(mutex_);
            add(partial, 0, totals_.size());
            add_masses(partial);
            partial.used = 0;
        }
        const std::int64_t some = kernels_.move(rows_.row(row), size, rows_.d, from + done, to + done,
                                                rows_.weights == nullptr ? nullptr : rows_.weights + row,
                                                rows_.counts == nullptr ? nullptr : rows_.counts + row, target);
        partial.used += rows_.counts == nullptr ? some : copies;
        moved += some;
        done += size;
    }
    return moved;
}

template <typename T>
void ClusterSums<T>::add(Partial &partial, std::size_t first, std::size_t last)
{
    const auto d = static_cast<std::size_t>(rows_.d);
    if (limbs_ == 1)
        for (std::size_t i = first; i < last; ++i)
            totals_[i] += std::exchange(partial.features[i], 0);
    else
        for (std::size_t i = first; i < last; ++i) {
            const std::size_t upper = i + i / d * d; // clusters before this one have 2 d sums each
            totals_[i] += take(partial.features, upper, upper + d);
        }
}

template <typename T>
void ClusterSums<T>::add_masses(Partial &partial)
{
    for (std::size_t j = 0; j < masses_.size(); ++j)
        masses_[j] += limbs_ == 1 ? std::exchange(partial.masses[j], 0) : take(partial.masses, 2 * j, 2 * j + 1);
}

template <typename T>
void ClusterSums<T>::combine()
{
    rows_.for_ranges(totals_.size(), sums_per_task, [&](std::int64_t first, std::int64_t last, int) {
        for (Partial &partial : partials_)
            if (partial.used != 0)
                add(partial, first, last);
    });
    for (Partial &partial : partials_) {
        if (partial.used != 0)
            add_masses(partial);
        partial.used = 0;
    }
}

template <typename T>
bool ClusterSums<T>::has_empty() const
{
    return std::find(masses_.begin(), masses_.end(), 0) != masses_.end();
}

template <typename T>
Sums ClusterSums<T>::copy() const
{
    return {{totals_.begin(), totals_.end()}, {masses_.begin(), masses_.end()}};
}

template class ClusterSums<float>;
template class ClusterSums<double>;

} // namespace pgkm::cpu
