// loaded_rows.cpp - gathers, transforms, loads and summarises the rows of a request.
#include "engine/kmeans/loaded_rows.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine/kmeans/batch_order.hpp"
#include "engine/kmeans/options.hpp"
#include "engine/nodes/nodes.hpp"
#include "numeric/thread_pool.hpp"
#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

// Fresh memory takes most of the time of a copy: a thread for some milliseconds of it.
constexpr std::int64_t values_per_thread = 4 << 20;
// Of centroids, between two looks at the cancel flag.
constexpr std::int32_t values_per_poll = 1 << 21;

// Rows of zeros are rows as others are.
void require_magnitude(const Summary &summary)
{
    const double least = *std::min_element(summary.min.begin(), summary.min.end());
    const double most = *std::max_element(summary.max.begin(), summary.max.end());
    const double largest = summary.max_weight * std::max(most, -least);
    if (largest > 0.0 && largest < min_magnitude)
        throw Error(PGKM_INVALID, "features are too small: their squares underflow");
}

// A deviation of 0 would be taken for that of a constant.
void require_variance(const Summary &raw)
{
    for (std::size_t f = 0; f < raw.variance.size(); ++f)
        if (raw.variance[f] == 0.0 && raw.max[f] > raw.min[f])
            throw Error(PGKM_INVALID, "feature " + std::to_string(f + 1) + " varies too little to be standardized");
}

template <typename T>
T *allocate(std::unique_ptr<std::byte[]> &memory, const PgkmPoints &points)
{
    memory.reset(new std::byte[static_cast<std::size_t>(points.n) * static_cast<std::size_t>(points.d) * sizeof(T)]);
    return reinterpret_cast<T *>(memory.get());
}

} // namespace

LoadedRows::LoadedRows(const PgkmRequest &request, const PgkmOptions &options, Session &session, Monitor &monitor)
    : points_(request.points), is_spread_(is_spread(request)), has_moments_(options.tol > 0.0)
{
    if (points_.element == PGKM_FLOAT32)
        prepare<float>(request, options, session, monitor);
    else
        prepare<double>(request, options, session, monitor);
}

LoadedRows::LoadedRows(const LoadedRows &from, const std::vector<std::int64_t> &order,
                       const std::vector<std::int64_t> &sizes, int threads, Session &session, Monitor &monitor)
    : points_(from.points_), is_spread_(false), has_moments_(from.has_moments_)
{
    points_.n = 0;
    for (const std::int64_t size : sizes) {
        groups_.push_back({points_.n, size, {}, Summary(points_.d), {}, 0});
        points_.n += size;
    }
    if (points_.element == PGKM_FLOAT32) {
        bring_into_order<float>(order, threads, monitor);
        summarise<float>(session, monitor);
    } else {
        bring_into_order<double>(order, threads, monitor);
        summarise<double>(session, monitor);
    }
}

template <typename T>
void LoadedRows::prepare(const PgkmRequest &request, const PgkmOptions &options, Session &session,
                         const Monitor &monitor)
{
    const std::vector<PgkmGroup> groups = groups_of(request);
    std::int64_t first = 0;
    for (const PgkmGroup &group : groups) {
        groups_.push_back({first, group.n, {}, Summary(points_.d), {}, 0});
        first += group.n;
    }
    if (request.n_groups > 0)
        gather<T>(groups, pgkm_cpu_threads(&request.settings), monitor);
    if (are_transformed(options))
        transform<T>(options, session, monitor);
    if (options.batch_size > 0)
        bring_into_batch_order<T>(options.seed, pgkm_cpu_threads(&request.settings), monitor);
    summarise<T>(session, monitor);
}

// Loads the rows, and takes the statistics of each group.
template <typename T>
void LoadedRows::summarise(Session &session, const Monitor &monitor)
{
    std::vector<Summary> summaries = load(session, has_moments_);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        LoadedGroup &group = groups_[g];
        require_magnitude(summaries[g]);
        group.summary = std::move(summaries[g]);
        const Summary &summary = group.summary;
        for (std::size_t f = 0; f < summary.min.size(); ++f)
            group.feature_scales.push_back(sum_scale(summary.min[f], summary.max[f], summary.max_weight));
        if (points_.weights != nullptr)
            group.weight_exponent = scale_exponent(group.summary.max_weight);
        distance_bound<T>(group, points_.d, nullptr, 0, monitor); // refuses what would overflow before any work is done
    }
}

// Brings the groups together: a backend works on rows that lie together.
template <typename T>
void LoadedRows::gather(const std::vector<PgkmGroup> &groups, int threads, const Monitor &monitor)
{
    points_.n = groups_.back().first_row + groups_.back().n;
    T *const to = allocate<T>(values_, points_);
    if (groups[0].weights != nullptr)
        weights_.reset(new double[static_cast<std::size_t>(points_.n)]);
    const std::int64_t wanted = points_.n * points_.d / values_per_thread + 1;
    ThreadPool pool(static_cast<int>(std::min<std::int64_t>(threads, wanted)));
    pool.run(static_cast<std::int64_t>(groups.size()), [&](std::int64_t task, int) {
        monitor.poll();
        const PgkmGroup &group = groups[static_cast<std::size_t>(task)];
        const std::int64_t first = groups_[static_cast<std::size_t>(task)].first_row;
        std::copy_n(static_cast<const T *>(group.values), group.n * points_.d, to + first * points_.d);
        if (weights_ != nullptr)
            std::copy_n(group.weights, group.n, weights_.get() + first);
    });
    points_.values = values_.get();
    points_.weights = weights_.get();
}

template <typename T>
void LoadedRows::transform(const PgkmOptions &options, Session &session, const Monitor &monitor)
{
    if (is_spread_) { // where an attempt on another device may have left them otherwise
        session.load_own(points_);
        nodes::transform(session.data(), {}, {}, PGKM_L2);
    }
    if (model_is_given(options) && options.standardize != 0) {
        const PgkmGivenModel &model = options.init_model;
        for (LoadedGroup &group : groups_)
            group.standardization = {{model.center.values, model.center.values + points_.d},
                                     {model.scale.values, model.scale.values + points_.d}};
    } else if (options.standardize != 0) {
        const std::vector<Summary> raw = load(session, true);
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            require_variance(raw[g]);
            groups_[g].standardization = standardization_of(raw[g].mean, raw[g].variance);
        }
    }
    if (is_spread_) { // which keep the copies
        session.load_own(points_);
        const Standardization &standardization = groups_[0].standardization;
        nodes::transform(session.data(), standardization.center, standardization.scale, options.metric);
        return;
    }
    // What was gathered is a copy already.
    T *const to = values_ == nullptr ? allocate<T>(values_, points_) : reinterpret_cast<T *>(values_.get());
    for (const LoadedGroup &group : groups_) {
        const std::int64_t from = group.first_row * points_.d;
        transform_rows(
            static_cast<const T *>(points_.values) + from, group.n, points_.d, group.standardization, options.metric,
            [&] { monitor.poll(); }, to + from);
    }
    points_.values = values_.get();
}

template <typename T>
void LoadedRows::bring_into_batch_order(std::uint64_t seed, int threads, const Monitor &monitor)
{
    std::vector<std::int64_t> rows;
    for (const LoadedGroup &group : groups_) {
        order_ = batch_order<T>(points_, group.first_row, group.n, seed, [&] { monitor.poll(); });
        for (const std::int64_t row : order_)
            rows.push_back(group.first_row + row);
    }
    bring_into_order<T>(rows, threads, monitor);
}

// Rows of points_, whose memory may be this one's, into memory of their own.
template <typename T>
void LoadedRows::bring_into_order(const std::vector<std::int64_t> &order, int threads, const Monitor &monitor)
{
    const PgkmPoints from = points_;
    std::unique_ptr<std::byte[]> memory;
    std::unique_ptr<double[]> weights;
    points_.n = static_cast<std::int64_t>(order.size());
    T *const to = allocate<T>(memory, points_);
    if (from.weights != nullptr)
        weights.reset(new double[order.size()]);
    const std::int64_t d = from.d, rows_per_task = values_per_poll / d + 1;
    ThreadPool pool(static_cast<int>(std::min<std::int64_t>(threads, points_.n * d / values_per_thread + 1)));
    pool.run((points_.n + rows_per_task - 1) / rows_per_task, [&](std::int64_t task, int) {
        monitor.poll();
        const std::int64_t last = std::min((task + 1) * rows_per_task, points_.n);
        for (std::int64_t row = task * rows_per_task; row < last; ++row) {
            std::copy_n(static_cast<const T *>(from.values) + order[at(row)] * d, d, to + row * d);
            if (weights != nullptr)
                weights[at(row)] = from.weights[order[at(row)]];
        }
    });
    values_ = std::move(memory);
    weights_ = std::move(weights);
    points_.values = values_.get();
    points_.weights = weights_.get();
}

std::vector<Summary> LoadedRows::load(Session &session, bool want_moments) const
{
    if (values_ == nullptr)
        session.load_own(points_);
    else
        session.load(points_);
    std::vector<PgkmProblem> all = problems();
    return session.summarise(all, want_moments);
}

const LoadedGroup &LoadedRows::group_of(const PgkmProblem &problem) const
{
    return *std::prev(
        std::upper_bound(groups_.begin(), groups_.end(), problem.first_row,
                         [](std::int64_t row, const LoadedGroup &group) { return row < group.first_row; }));
}

std::vector<PgkmProblem> LoadedRows::problems() const
{
    std::vector<PgkmProblem> problems(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        problems[g] = {};
        problems[g].first_row = groups_[g].first_row;
        problems[g].n_rows = groups_[g].n;
    }
    return problems;
}

std::shared_ptr<const LoadedRows> rows_in(Workplace &place, const PgkmRequest &request, const PgkmOptions &options,
                                          Monitor &monitor)
{
    const bool lasting = request.resident != nullptr && !are_copied(options);
    const auto kept = std::static_pointer_cast<const LoadedRows>(place.statistics.of(request.points));
    if (lasting && kept != nullptr && (kept->has_moments() || options.tol == 0.0)) {
        place.session.load_own(request.points);
        return kept;
    }
    const auto rows = std::make_shared<const LoadedRows>(request, options, place.session, monitor);
    if (lasting)
        place.statistics.keep(request.points, rows);
    return rows;
}

template <typename T>
double distance_bound(const LoadedGroup &group, std::int32_t d, const T *centroids, std::int32_t k,
                      const Monitor &monitor)
{
    std::vector<double> low = group.summary.min, high = group.summary.max;
    const auto features = static_cast<std::size_t>(d);
    const std::int32_t per_poll = values_per_poll / d + 1;
    for (std::int32_t j = 0; j < k; ++j) {
        if (j % per_poll == 0)
            monitor.poll();
        const T *centroid = centroids + std::int64_t{j} * d;
        for (std::size_t f = 0; f < features; ++f) {
            low[f] = std::min(low[f], static_cast<double>(centroid[f]));
            high[f] = std::max(high[f], static_cast<double>(centroid[f]));
        }
    }
    double bound = 0.0;
    for (std::size_t f = 0; f < features; ++f)
        bound += (high[f] - low[f]) * (high[f] - low[f]);
    bound *= group.summary.max_weight * (1.0 + 0x1p-20); // the margin covers every rounding
    if (!std::isfinite(bound))
        throw Error(PGKM_INVALID, "weights and features are too large together: their squares overflow");
    return bound;
}

template double distance_bound<float>(const LoadedGroup &, std::int32_t, const float *, std::int32_t, const Monitor &);
template double distance_bound<double>(const LoadedGroup &, std::int32_t, const double *, std::int32_t,
                                       const Monitor &);

} // namespace pgkm
