#include "parameters.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "../upload.hpp"
#include "fused.hpp"
#include "stages.hpp"

namespace pgkm::cuda::mixture {
namespace {

constexpr std::uint64_t most_sum_bytes = std::uint64_t{64} << 20; // of all copies, where one is smaller
constexpr std::int64_t most_pending = 2 << 20;                    // values that travel together
constexpr std::size_t threads_pay = 4 << 20;                      // bytes that several threads carry
constexpr std::int64_t large = 65536;                             // values that travel by themselves

std::size_t at(std::int64_t i)
{
    return static_cast<std::size_t>(i);
}

std::int64_t factor_count(const PgkmMixture &mixture, std::int64_t d)
{
    if (mixture.labels != nullptr)
        return 0;
    if (mixture.covariance_type == PGKM_COVARIANCE_FULL)
        return mixture.k * d * d;
    return mixture.covariance_type == PGKM_COVARIANCE_TIED ? d * d : mixture.k * d;
}

// Copies of the sums of each problem: one for every rows_per_slot rows, fewer where the device's limit
// or most_sum_bytes would be passed.
std::vector<std::int32_t> slots_of(const Context &context, const std::vector<Task> &tasks, std::int64_t d,
                                   std::int64_t rows_per_slot)
{
    std::vector<std::int32_t> slots;
    double bytes = 0.0;
    for (const Task &task : tasks) {
        const std::int64_t wanted = (task.problem->n_rows + rows_per_slot - 1) / rows_per_slot;
        slots.push_back(static_cast<std::int32_t>(std::max<std::int64_t>(wanted, 1)));
        bytes += 8.0 * static_cast<double>(slots.back()) * static_cast<double>(layout_of(*task.mixture, d).values());
    }
    const double room = static_cast<double>(std::min(most_sum_bytes, context.budget.room() / 4));
    if (bytes > room)
        for (std::int32_t &count : slots)
            count = std::max(1, static_cast<std::int32_t>(count * (room / bytes)));
    return slots;
}

} // namespace

SumsLayout layout_of(const PgkmMixture &mixture, std::int64_t d)
{
    const std::int64_t second = mixture.covariance_type == PGKM_COVARIANCE_FULL   ? d * (d + 1) / 2
                                : mixture.covariance_type == PGKM_COVARIANCE_TIED ? 0
                                                                                  : d;
    return {mixture.k, d, second};
}

double log_constant(const PgkmMixture &mixture, std::int64_t j, std::int64_t d)
{
    return mixture.log_weights[j] + mixture.log_determinants[j] -
           0.5 * static_cast<double>(d) * std::log(2.0 * std::numbers::pi);
}

std::uint64_t parameter_bytes(const PgkmMixture &mixture, std::int64_t d)
{
    // Whichever road it takes.
    std::int64_t packed = 0;
    if (mixture.covariance_type == PGKM_COVARIANCE_FULL && FullShape(mixture.k, d).fits(mixture.k))
        packed = FullShape(mixture.k, d).coefficient_count(mixture.k);
    else if (mixture.covariance_type != PGKM_COVARIANCE_FULL && DiagonalShape::fits(mixture.k, d))
        packed = DiagonalShape(mixture.k, d).coefficient_count();
    const std::int64_t staged = factor_count(mixture, d) + 2 * mixture.k * d + mixture.k;
    return static_cast<std::uint64_t>(std::max(packed, staged) + d) * 8 +
           sizeof(MixtureView);
}

Parameters::Parameters(Context &context, const std::vector<Task> &tasks, std::int64_t d, std::int64_t rows_per_slot)
    : context_(context)
{
    std::int64_t count = 0, sums = 0, results = 0;
    for (const Task &task : tasks)
        count += static_cast<std::int64_t>(parameter_bytes(*task.mixture, d) - sizeof(MixtureView)) / 8;
    values_ = DeviceArray<double>(context.budget, at(count));
    views_ = DeviceArray<MixtureView>(context.budget, tasks.size());
    const std::vector<std::int32_t> slots = slots_of(context, tasks, d, rows_per_slot);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        MixtureView view = {};
        view.k = tasks[i].mixture->k;
        view.slots = slots[i];
        view.layout = layout_of(*tasks[i].mixture, d);
        most_values_ = std::max(most_values_, view.layout.values());
        sums += view.slots * view.layout.values();
        results += view.layout.values();
        host_views_.push_back(view);
    }
    sums_ = DeviceArray<double>(context.budget, at(sums));
    sums_.fill_zero(context.compute.get());
    results_ = DeviceArray<double>(context.budget, at(results));
    double *next_sums = sums_.get(), *next_results = results_.get();
    for (MixtureView &view : host_views_) {
        view.sums = next_sums;
        next_sums += view.slots * view.layout.values();
        view.results = next_results;
        next_results += view.layout.values();
    }
    upload(tasks, d);
}

void Parameters::upload(const std::vector<Task> &tasks, std::int64_t d)
{
    const Claim claim(context_.host_budget, std::min<std::uint64_t>(values_.bytes(), 8 * most_pending));
    pending_.reserve(std::min(values_.count(), at(most_pending)));
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        context_.poll();
        append(tasks[i], d, host_views_[i]);
    }
    flush_pending();
    views_.upload(host_views_.data(), host_views_.size(), context_.compute.get());
}

void Parameters::flush_pending()
{
    const std::size_t bytes = pending_.size() * sizeof(double);
    if (bytes >= threads_pay)
        cuda::upload(context_, values_.get() + pending_at_, pending_.data(), bytes);
    else
        values_.upload(pending_.data(), pending_.size(), context_.compute.get(), at(pending_at_));
    pending_.clear();
    pending_at_ = used_;
}

// Room for `count` values, fewer than `large`, all 0, whose address on the device will be *address.
double *Parameters::reserve(std::int64_t count, const double **address)
{
    if (static_cast<std::int64_t>(pending_.size()) + count > most_pending)
        flush_pending();
    *address = values_.get() + used_;
    used_ += count;
    pending_.resize(pending_.size() + at(count));
    return pending_.data() + pending_.size() - count;
}

// The address that `count` values will have.
const double *Parameters::append(const double *values, std::int64_t count)
{
    const double *address = nullptr;
    if (count < large) {
        std::copy_n(values, count, reserve(count, &address));
        return address;
    }
    flush_pending();
    address = values_.get() + used_;
    values_.upload(values, at(count), context_.compute.get(), at(used_));
    used_ += count;
    pending_at_ = used_;
    return address;
}

void Parameters::append(const Task &task, std::int64_t d, MixtureView &view)
{
    const PgkmMixture &mixture = *task.mixture;
    if (!task.origin.empty())
        view.origin = append(task.origin.data(), d);
    if (task.road != Road::staged) {
        const bool full = task.road == Road::fused_full;
        double *const packed = reserve(full ? FullShape(mixture.k, d).coefficient_count(mixture.k)
                                            : DiagonalShape(mixture.k, d).coefficient_count(),
                                       &view.coefficients);
        return full ? full_coefficients(mixture, d, task.origin, packed)
                    : diagonal_coefficients(mixture, d, task.origin, packed);
    }
    view.means = append(mixture.means, mixture.k * d);
    if (task.given())
        return;
    std::vector<double> values;
    for (std::int32_t j = 0; j < mixture.k; ++j)
        values.push_back(log_constant(mixture, j, d));
    view.constants = append(values.data(), mixture.k);
    if (mixture.covariance_type == PGKM_COVARIANCE_SPHERICAL) {
        values.clear();
        for (std::int32_t j = 0; j < mixture.k; ++j)
            values.insert(values.end(), at(d), mixture.factors[j]);
        view.factors = append(values.data(), mixture.k * d);
    } else {
        view.factors = append(mixture.factors, factor_count(mixture, d));
    }
    if (mixture.covariance_type == PGKM_COVARIANCE_TIED) {
        const std::vector<double> room(at(mixture.k * d)); // for rotate_means()
        view.targets = const_cast<double *>(append(room.data(), mixture.k * d));
    }
}

void Parameters::store(const std::vector<Task> &tasks, std::int32_t *stop)
{
    const cudaStream_t stream = context_.compute.get();
    combine_sums(views_.get(), static_cast<std::int64_t>(tasks.size()), most_values_, stream);
    context_.wait(stream, stop);
    const auto hand_out = [&](auto &&copy) {
        for (std::size_t i = 0; i < tasks.size(); ++i) {
            const SumsLayout &layout = host_views_[i].layout;
            PgkmMixtureSums &out = *tasks[i].out;
            const std::int64_t base = host_views_[i].results - results_.get();
            copy(&out.log_likelihood, base + layout.k, 1);
            if (out.masses == nullptr)
                continue;
            copy(out.masses, base, layout.k);
            copy(out.first, base + layout.first(0), layout.k * layout.d);
            copy(out.second, base + layout.second(0), layout.k * layout.second_size);
        }
    };
    if (tasks.size() == 1 && results_.count() > at(large)) {
        hand_out([&](double *to, std::int64_t from, std::int64_t count) {
            results_.download(to, at(count), stream, at(from));
        });
        context_.wait(stream);
        return recentre_all(tasks);
    }
    const Claim claim(context_.host_budget, results_.bytes());
    std::vector<double> results(results_.count());
    if (results_.bytes() >= threads_pay) {
        download(context_, results.data(), results_.get(), results_.bytes());
    } else {
        results_.download(results.data(), results.size(), stream);
        context_.wait(stream);
    }
    hand_out([&](double *to, std::int64_t from, std::int64_t count) { std::copy_n(results.data() + from, count, to); });
    recentre_all(tasks);
}

// Sums of the fused kernels are about an origin.
void Parameters::recentre_all(const std::vector<Task> &tasks) const
{
    const std::int64_t d = host_views_[0].layout.d;
    for (const Task &task : tasks)
        if (task.road != Road::staged && task.out->masses != nullptr)
            recentre(*task.mixture, d, task.origin, *task.out);
}

} // namespace pgkm::cuda::mixture
