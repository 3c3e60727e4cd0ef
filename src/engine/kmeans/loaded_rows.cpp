// loaded_rows.cpp - gathers, transforms, loads and summarises the rows of a request.
#include "engine/kmeans/loaded_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "backend/calls.hpp"
#include "engine/kmeans/options.hpp"
#include "engine/nodes/nodes.hpp"
#include "engine/rows/batch_order.hpp"
#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

// Of centroids, between two looks at the cancel flag.
constexpr std::int32_t values_per_poll = 1 << 21;

// For a copy, which fresh memory takes most of the time of: one for some milliseconds of it.
std::int64_t threads_for(const PgkmPoints &points)
{
    constexpr std::int64_t values_per_thread = 4 << 20;
    return points.n * points.d / values_per_thread + 1;
}

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

} // namespace

LoadedRows::LoadedRows(const PgkmRequest &request, const PgkmOptions &options, Session &session, Monitor &monitor)
    : points_(request.points), is_spread_(is_spread(request)), has_moments_(options.tol > 0.0)
{
    const std::vector<PgkmGroup> groups = groups_of(request);
    for (const PgkmGroup &group : groups)
        add_group(group.n);
    if (request.n_groups > 0)
        gather(groups, session, monitor);
    if (are_transformed(options))
        transform(options, session, monitor);
    if (options.batch_size > 0)
        bring_into_batch_order(options.seed, session, monitor);
    summarise(session, monitor);
}

LoadedRows::LoadedRows(const LoadedRows &from, const std::vector<std::int64_t> &order,
                       const std::vector<std::int64_t> &sizes, Session &session, Monitor &monitor)
    : points_(from.points_), has_moments_(from.has_moments_)
{
    for (const std::int64_t size : sizes)
        add_group(size);
    bring_into_order(order, session, monitor);
    summarise(session, monitor);
}

void LoadedRows::add_group(std::int64_t n)
{
    const std::int64_t first = groups_.empty() ? 0 : groups_.back().first_row + groups_.back().n;
    groups_.push_back({first, n, {}, Summary(points_.d), {}, 0});
}

// Loads the rows, and takes the statistics of each group.
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
        // Refuses what would overflow before any work is done.
        distance_bound<double>(group, points_.d, nullptr, 0, monitor);
    }
}

// Brings the groups together: a backend works on rows that lie together.
void LoadedRows::gather(const std::vector<PgkmGroup> &groups, Session &session, const Monitor &monitor)
{
    points_.n = groups_.back().first_row + groups_.back().n;
    const std::size_t row_bytes = shape_of(points_).row_bytes();
    values_.reset(new std::byte[at(points_.n) * row_bytes]);
    if (groups[0].weights != nullptr)
        weights_.reset(new double[at(points_.n)]);
    session.run_tasks(std::ssize(groups), threads_for(points_), [&](std::int64_t task, int) {
        monitor.poll();
        const PgkmGroup &group = groups[at(task)];
        const std::size_t first = at(groups_[at(task)].first_row);
        std::memcpy(values_.get() + first * row_bytes, group.values, at(group.n) * row_bytes);
        if (weights_ != nullptr)
            std::copy_n(group.weights, group.n, weights_.get() + first);
    });
    points_.values = values_.get();
    points_.weights = weights_.get();
}

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
    } else if (points_.element == PGKM_FLOAT32) {
        transform_here<float>(options.metric, monitor);
    } else {
        transform_here<double>(options.metric, monitor);
    }
}

template <typename T>
void LoadedRows::transform_here(PgkmMetric metric, const Monitor &monitor)
{
    if (values_ == nullptr) // else what was gathered is a copy already
        values_.reset(new std::byte[shape_of(points_).value_bytes()]);
    for (const LoadedGroup &group : groups_) {
        const std::int64_t first = group.first_row * points_.d;
        transform_rows(
            static_cast<const T *>(points_.values) + first, group.n, points_.d, group.standardization, metric,
            [&] { monitor.poll(); }, reinterpret_cast<T *>(values_.get()) + first);
    }
    points_.values = values_.get();
}

void LoadedRows::bring_into_batch_order(std::uint64_t seed, Session &session, const Monitor &monitor)
{
    std::vector<std::int64_t> rows;
    for (const LoadedGroup &group : groups_) {
        order_ = batch_order(points_, group.first_row, group.n, seed, [&] { monitor.poll(); });
        for (const std::int64_t row : order_)
            rows.push_back(group.first_row + row);
    }
    bring_into_order(rows, session, monitor);
}

// Rows of points_, whose memory may be this one's, into memory of their own.
void LoadedRows::bring_into_order(const std::vector<std::int64_t> &order, Session &session, const Monitor &monitor)
{
    const PgkmPoints from = points_;
    const auto *const rows = static_cast<const std::byte *>(from.values);
    const std::unique_ptr<std::byte[]> before = std::move(values_);
    const std::unique_ptr<double[]> weights_before = std::move(weights_);
    points_.n = std::ssize(order);
    const std::size_t row_bytes = shape_of(points_).row_bytes();
    values_.reset(new std::byte[order.size() * row_bytes]);
    if (from.weights != nullptr)
        weights_.reset(new double[order.size()]);
    const std::int64_t rows_per_task = values_per_poll / from.d + 1, tasks = (points_.n - 1) / rows_per_task + 1;
    session.run_tasks(tasks, threads_for(points_), [&](std::int64_t task, int) {
        monitor.poll();
        const std::int64_t last = std::min((task + 1) * rows_per_task, points_.n);
        for (std::size_t i = at(task * rows_per_task); i < at(last); ++i) {
            std::memcpy(values_.get() + i * row_bytes, rows + at(order[i]) * row_bytes, row_bytes);
            if (weights_ != nullptr)
                weights_[i] = from.weights[order[i]];
        }
    });
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

double reach_of(const LoadedGroup &group, std::int32_t d, const Monitor &monitor)
{
    const double heaviest = group.summary.max_weight;
    return heaviest * std::sqrt(distance_bound<double>(group, d, nullptr, 0, monitor) / heaviest);
}

template double distance_bound<float>(const LoadedGroup &, std::int32_t, const float *, std::int32_t, const Monitor &);
template double distance_bound<double>(const LoadedGroup &, std::int32_t, const double *, std::int32_t,
                                       const Monitor &);

} // namespace pgkm
