// parameters.cu (mixture) - mixtures to the device and sums back, for one problem or for ten thousand.
//
// Data: all arrays of a batch lie behind each other, one mixture's after the other, so that small ones travel in one
// copy which several threads fill; a large one travels array by array. All values are float64.
#include "mixture/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "plugin/parallel.hpp"
#include "plugin/upload.hpp"
#include "mixture/fused.hpp"
#include "mixture/products.hpp"
#include "mixture/stages.hpp"

namespace pgkm::cuda::mixture {
namespace {

constexpr std::uint64_t most_sum_bytes = std::uint64_t{64} << 20; // of all copies, where one is smaller
// Values that travel together: few enough that malloc() keeps their pages from call to call, which up to 32 MB it does,
// and more than several threads' transfers begin with (upload.cu).
constexpr std::int64_t most_travelling = 3 << 20;
constexpr std::int64_t tasks_of_thread = 64; // below, threads cost more than they bring

std::size_t at(std::int64_t i)
{
    return static_cast<std::size_t>(i);
}

std::int64_t factor_count(const PgkmMixture &mixture, std::int64_t d)
{
    if (mixture.covariance_type == PGKM_COVARIANCE_FULL)
        return mixture.k * d * d;
    if (mixture.covariance_type == PGKM_COVARIANCE_SPHERICAL)
        return mixture.k;
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
    const double room = static_cast<double>(std::min(most_sum_bytes, context.scratch_limit() / 4));
    if (bytes > room)
        for (std::int32_t &count : slots)
            count = std::max(1, static_cast<std::int32_t>(count * (room / bytes)));
    return slots;
}

// Calls array(member, count, values, make) for each array of a task's parameters on the device, in the order in which
// they lie there. member: where a view has its address; values: the caller's, or nullptr; make(to) writes them.
template <typename Array>
void for_each_array(const Task &task, std::int64_t d, Array &&array)
{
    const PgkmMixture &mixture = *task.mixture;
    const auto copy = [&](auto member, const double *values, std::int64_t count) {
        array(member, count, values, [=](double *to) { std::copy_n(values, count, to); });
    };
    if (!task.origin.empty())
        copy(&MixtureView::origin, task.origin.data(), d);
    if (task.way == Way::fused) {
        const std::int64_t count = FusedShape(mixture.covariance_type, mixture.k, d).coefficient_count(mixture.k);
        return array(&MixtureView::coefficients, count, nullptr, [&](double *to) {
            std::fill_n(to, count, 0.0);
            pack_coefficients(mixture, d, task.origin, to);
        });
    }
    copy(&MixtureView::means, mixture.means, mixture.k * d);
    if (task.given())
        return;
    array(&MixtureView::constants, mixture.k, nullptr, [&](double *to) {
        for (std::int64_t j = 0; j < mixture.k; ++j)
            to[j] = log_constant(mixture, j, d);
    });
    copy(&MixtureView::factors, mixture.factors, factor_count(mixture, d));
}

// Tied: targets, in pairs.
std::int64_t target_count(const PgkmMixture &mixture, std::int64_t d)
{
    return (mixture.k * d + 1) / 2 * 2;
}

// Room for what rotate_means() or prepare_products() makes.
std::int64_t made_count(const Task &task, std::int64_t d)
{
    const PgkmMixture &mixture = *task.mixture;
    if (task.way == Way::products)
        return ProductLayout(mixture.k, d, mixture.covariance_type == PGKM_COVARIANCE_DIAG).values();
    return mixture.covariance_type == PGKM_COVARIANCE_TIED && !task.given()
               ? target_count(mixture, d) + ProductLayout(mixture.k, d, false).values()
               : 0;
}

// Values that a task's arrays take, without what kernels make.
std::int64_t value_count(const Task &task, std::int64_t d)
{
    std::int64_t values = 0;
    for_each_array(task, d, [&](auto, std::int64_t count, auto &&...) { values += count; });
    return values;
}

// Calls use(first, last, values) for runs of tasks that have so few values, by size(i), that they travel together;
// a task with more than that is a run by itself.
template <typename Size, typename Use>
void for_runs(std::size_t count, Size &&size, Use &&use)
{
    for (std::size_t first = 0; first < count;) {
        std::int64_t values = 0;
        std::size_t last = first;
        while (last < count && (last == first || values + size(last) <= most_travelling))
            values += size(last++);
        use(first, last, values);
        first = last;
    }
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

std::uint64_t parameter_bytes(const Task &task, std::int64_t d)
{
    return static_cast<std::uint64_t>(value_count(task, d) + made_count(task, d)) * sizeof(double) +
           sizeof(MixtureView);
}

Parameters::Parameters(Context &context, const std::vector<Task> &tasks, std::int64_t d, std::int64_t rows_per_slot)
    : context_(context), d_(d)
{
    std::int64_t count = 1;
    for (const Task &task : tasks)
        count += value_count(task, d) + made_count(task, d);
    values_ = DeviceArray<double>(context.budget, at(count));
    views_ = DeviceArray<MixtureView>(context.budget, tasks.size());
    place_sums(tasks, rows_per_slot);
    const std::int64_t most = std::min(most_travelling, std::max(count, static_cast<std::int64_t>(results_.count())));
    claim_ = Claim(context.host_budget, static_cast<std::uint64_t>(most) * sizeof(double));
    travelling_ = std::make_unique_for_overwrite<double[]>(at(most));
    upload(tasks);
}

void Parameters::place_sums(const std::vector<Task> &tasks, std::int64_t rows_per_slot)
{
    const std::vector<std::int32_t> slots = slots_of(context_, tasks, d_, rows_per_slot);
    std::int64_t sums = 0, results = 0;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        MixtureView view = {};
        view.k = tasks[i].mixture->k;
        view.slots = slots[i];
        view.layout = layout_of(*tasks[i].mixture, d_);
        slots_ += view.slots;
        most_values_ = std::max(most_values_, view.layout.values());
        sums += view.slots * view.layout.values();
        results += view.layout.values();
        host_views_.push_back(view);
    }
    sums_ = zeros<double>(context_.budget, at(sums), context_.compute.get());
    results_ = DeviceArray<double>(context_.budget, at(results));
    double *next_sums = sums_.get(), *next_results = results_.get();
    for (MixtureView &view : host_views_) {
        view.sums = next_sums;
        next_sums += view.slots * view.layout.values();
        view.results = next_results;
        next_results += view.layout.values();
    }
}

void Parameters::upload(const std::vector<Task> &tasks)
{
    double *next = values_.get();
    const auto size = [&](std::size_t i) { return value_count(tasks[i], d_); };
    for_runs(tasks.size(), size, [&](std::size_t first, std::size_t last, std::int64_t values) {
        context_.poll();
        if (values > most_travelling) {
            upload_large(tasks[first], next, host_views_[first]);
        } else {
            std::vector<std::int64_t> offsets = {0};
            for (std::size_t i = first; i < last; ++i)
                offsets.push_back(offsets.back() + size(i));
            for_each_of(context_, static_cast<std::int64_t>(last - first), tasks_of_thread, [&](std::int64_t i) {
                std::int64_t offset = offsets[at(i)];
                MixtureView &view = host_views_[first + at(i)];
                for_each_array(tasks[first + at(i)], d_,
                               [&](auto member, std::int64_t count, const double *, auto &&make) {
                                   view.*member = next + offset;
                                   make(travelling_.get() + offset);
                                   offset += count;
                               });
            });
            cuda::upload(context_, next, travelling_.get(), at(values) * sizeof(double));
        }
        next += values;
    });
    next += (next - values_.get()) % 2; // what kernels make is copied in pairs
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        host_views_[i].targets = host_views_[i].products = next;
        if (tasks[i].mixture->covariance_type == PGKM_COVARIANCE_TIED)
            host_views_[i].products += target_count(*tasks[i].mixture, d_);
        next += made_count(tasks[i], d_);
    }
    views_.upload(host_views_.data(), host_views_.size(), context_.compute.get());
}

// Array by array, most of them from where the caller has them.
void Parameters::upload_large(const Task &task, double *to, MixtureView &view)
{
    for_each_array(task, d_, [&](auto member, std::int64_t count, const double *values, auto &&make) {
        view.*member = to;
        std::vector<double> made;
        if (values == nullptr) {
            made.resize(at(count));
            make(made.data());
            values = made.data();
        }
        cuda::upload(context_, to, values, at(count) * sizeof(double));
        to += count;
    });
}

// copy(to, from, count): values of the mixture's sums, from the from-th on, to where they belong.
template <typename Copy>
void Parameters::hand_out(const Task &task, const SumsLayout &layout, Copy &&copy) const
{
    PgkmMixtureSums &out = *task.out;
    copy(&out.log_likelihood, layout.k, 1);
    if (out.masses == nullptr)
        return;
    copy(out.masses, 0, layout.k);
    copy(out.first, layout.first(0), layout.k * layout.d);
    copy(out.second, layout.second(0), layout.k * layout.second_size);
    if (task.way == Way::fused) // whose sums are about an origin
        recentre(*task.mixture, d_, task.origin, out);
}

void Parameters::store(const std::vector<Task> &tasks, bool from_origin, std::int32_t *stop)
{
    const auto n_tasks = static_cast<std::int64_t>(tasks.size());
    combine_sums(views_.get(), n_tasks, most_values_, context_.compute.get());
    if (from_origin)
        recentre_products(views_.get(), n_tasks, most_values_, context_.compute.get());
    context_.wait(context_.compute.get(), stop);
    const auto size = [&](std::size_t i) { return host_views_[i].layout.values(); };
    for_runs(tasks.size(), size, [&](std::size_t first, std::size_t last, std::int64_t values) {
        context_.poll();
        const double *const start = host_views_[first].results;
        if (values > most_travelling) // straight to where they belong
            return hand_out(tasks[first], host_views_[first].layout,
                            [&](double *to, std::int64_t from, std::int64_t count) {
                                if (count != 0)
                                    download(context_, to, start + from, at(count) * sizeof(double));
                            });
        download(context_, travelling_.get(), start, at(values) * sizeof(double));
        for_each_of(context_, static_cast<std::int64_t>(last - first), tasks_of_thread, [&](std::int64_t i) {
            const MixtureView &view = host_views_[first + at(i)];
            const double *const results = travelling_.get() + (view.results - start);
            hand_out(tasks[first + at(i)], view.layout, [&](double *to, std::int64_t from, std::int64_t count) {
                std::copy_n(results + from, count, to);
            });
        });
    });
}

} // namespace pgkm::cuda::mixture
