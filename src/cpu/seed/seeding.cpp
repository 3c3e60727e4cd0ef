// seeding.cpp - rows in order, their masses, and distances to chosen rows.
#include "cpu/seed/seeding.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "backend/random_places.hpp"
#include "backend/update.hpp"
#include "numeric/large_array.hpp"
#include "numeric/told.hpp"

namespace pgkm::cpu {
namespace {

PgkmInt128 split_unsigned(UInt128 value)
{
    return split(static_cast<Int128>(value));
}

// An integer as bounds in float64, so wide that sums over all servers bound the sum.
GainBounds bounds_of(UInt128 value)
{
    const double near = static_cast<double>(value);
    return {near * (1.0 - 0x1p-40), near * (1.0 + 0x1p-40)};
}

template <typename Value>
bool is_ascending(const std::vector<Value> &values)
{
    return std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
}

} // namespace

template <typename T>
Seeding<T>::Seeding(const PgkmPoints &points, const std::uint16_t *counts, std::shared_ptr<PgkmContext> context,
                    std::int32_t bits, bool ordered, Check check_answer)
    : context_(std::move(context)), runner_(*self(context_.get()), true), points_(points),
      rows_{static_cast<const T *>(points.values), points.weights, points.n, points.d, nullptr, counts},
      check_answer_(std::move(check_answer)), bits_(bits),
      order_(ordered ? canonical_order(runner_, rows_) : Buffer<RowNumber>()),
      masses_(std::make_unique<KeyMasses>(runner_, order_, find_keys(runner_, rows_), bits)),
      nearest_(runner_.budget(), points.n), labels_(runner_.budget(), nearest_.size())
{
    runner_.budget().add(*this);
}

template <typename T>
Seeding<T>::~Seeding()
{
    runner_.budget().remove(*this);
}

// While iterations run, on any of their threads: nobody seeds.
template <typename T>
void Seeding<T>::give_up()
{
    if (is_at_rest_)
        leave_rows();
}

template <typename T>
void Seeding<T>::leave_rows()
{
    trials_.reset();
    masses_.reset();
    order_ = {};
    nearest_ = {};
    labels_ = {};
}

template <typename T>
void Seeding<T>::rest()
{
    forget_trials();
    is_at_rest_ = true;
}

template <typename T>
void Seeding<T>::begin()
{
    is_at_rest_ = false;
    std::fill(nearest_.begin(), nearest_.end(), std::numeric_limits<double>::infinity());
    std::fill(labels_.begin(), labels_.end(), 0);
    forget_trials();
    chosen_rows_.clear();
    chosen_.clear();
}

// Calls body(mass) where mass(row) is the integer by which rows are drawn at the moment.
template <typename T>
template <typename Body>
void Seeding<T>::with_mass(Body &&body) const
{
    switch (mass_) {
    case Mass::one:
        return body([&](std::int64_t row) { return rows_.copies(row); });
    case Mass::weight:
        return body([&](std::int64_t row) {
            return rows_.copies(row) * static_cast<std::uint64_t>(quantise(rows_.weights[row], scale_));
        });
    case Mass::square:
        return body([&](std::int64_t row) { return rows_.mass(row, nearest_[static_cast<std::size_t>(row)], scale_); });
    case Mass::apart:
        return body([&](std::int64_t row) {
            const bool is_apart = nearest_[static_cast<std::size_t>(row)] != 0.0;
            return is_apart ? rows_.copies(row) * drawn_mass(rows_.weights[row], scale_) : 0;
        });
    }
}

// What is to be told once: it is forgotten when all of it stands here.
template <typename T>
Changes Seeding<T>::take_changes()
{
    Changes all;
    masses_->for_changes([&](std::uint32_t bucket, Int128 difference) {
        while (difference != 0) {
            const auto part = static_cast<std::int64_t>(std::clamp<Int128>(difference, INT64_MIN, INT64_MAX));
            all.buckets.push_back(bucket);
            all.differences.push_back(part);
            difference -= part;
        }
        check_answer_(all.buckets.size() * (sizeof(std::uint32_t) + sizeof(std::int64_t)));
    });
    for (const std::uint32_t bucket : all.buckets)
        masses_->forget_change(bucket);
    return all;
}

// What was told of masses is told: no change waits.
template <typename T>
void Seeding<T>::go_on_from(const Seeding &other)
{
    begin();
    std::vector<T> chosen;
    for (const std::vector<T> &row : other.chosen_)
        chosen.insert(chosen.end(), row.begin(), row.end());
    if (!chosen.empty())
        add(0, chosen);
    mass_ = other.mass_;
    scale_ = other.scale_;
    if (!other.trial_rows_.empty())
        gains(other.trial_rows_);
}

template <typename T>
Changes Seeding<T>::weigh(Mass kind, std::int32_t exponent)
{
    const bool by_weight = kind == Mass::weight || kind == Mass::apart;
    require_shape(kind >= Mass::one && kind <= Mass::apart && (!by_weight || rows_.weights != nullptr));
    mass_ = kind;
    scale_ = power_of_two(clamp_exponent(exponent));
    with_mass([&](auto mass_of) { masses_->sum(mass_of); });
    Changes changes = take_changes();
    if (kind == Mass::apart)
        changes.largest = *std::max_element(rows_.weights, rows_.weights + rows_.n);
    return changes;
}

// The place behind the rows that equal that of `place`, up to `end`.
template <typename T>
std::int64_t Seeding<T>::run_end(std::int64_t place, std::int64_t end) const
{
    const T *content = row_at(place);
    const auto same = [&](RowNumber row) { return compare_content(content, rows_.row(row), rows_.d) == 0; };
    const RowNumber *const next = order_.begin() + place + 1, *const last = order_.begin() + end;
    return next == last || !same(*next) ? place + 1 : std::partition_point(next, last, same) - order_.begin();
}

template <typename T>
UInt128 Seeding<T>::run_mass(std::int64_t place, std::int64_t end) const
{
    UInt128 sum = 0;
    with_mass([&](auto mass_of) {
        if (rows_.weights == nullptr && rows_.counts == nullptr) { // they are equal in all
            sum = UInt128{mass_of(masses_->row_at(place))} * static_cast<std::uint64_t>(end - place);
            return;
        }
        for (std::int64_t next = place; next < end; ++next) {
            if (next % rows_per_task == 0)
                runner_.poll();
            sum += mass_of(masses_->row_at(next));
        }
    });
    return sum;
}

template <typename T>
Runs<T> Seeding<T>::runs(std::int32_t bits, std::uint8_t with_values, const std::vector<std::uint64_t> &buckets)
{
    require_shape((bits == masses_->bits() || bits == 64) && is_ascending(buckets));
    const std::size_t row_bytes = with_values == 0 ? 0 : static_cast<std::size_t>(rows_.d) * sizeof(T);
    Runs<T> found;
    for (const std::uint64_t bucket : buckets) {
        runner_.poll();
        const std::uint64_t own = bits == 64 ? bucket_of(bucket, masses_->bits()) : bucket;
        std::int64_t place = masses_->place_of(own);
        const std::int64_t end = masses_->place_of(own + 1);
        if (bits == 64) // the first row that has the key
            place = std::partition_point(order_.begin() + place, order_.begin() + end,
                                         [&](auto row) { return row_key(rows_.row(row), rows_.d) < bucket; }) -
                    order_.begin();
        while (place < end && bucket_of(key_at(place), bits) == bucket) {
            const std::int64_t next = run_end(place, end);
            found.keys.push_back(key_at(place));
            found.masses.push_back(split_unsigned(run_mass(place, next)));
            if (with_values != 0)
                found.values.insert(found.values.end(), row_at(place), row_at(place) + rows_.d);
            check_answer_(found.keys.size() * (sizeof(std::uint64_t) + sizeof(PgkmInt128) + row_bytes));
            place = next;
        }
    }
    return found;
}

// Brings distances to these rows, of which the first is chosen row number `first`. Calls nearer(row, square) for each
// row that is nearer to one of them than to those before.
template <typename T>
template <typename Nearer>
void Seeding<T>::meet(const std::vector<T> &values, std::int32_t first, Nearer &&nearer)
{
    std::vector<T> own = values;
    LargeArray<std::int32_t> labels(nearest_.size());
    LargeArray<double> squares(nearest_.size());
    PgkmAssignment wanted = {};
    wanted.labels = labels.data();
    wanted.distances = squares.data();
    assign_(static_cast<std::int32_t>(own.size()) / rows_.d, own.data(), wanted);
    trials_.reset();
    for_rows(runner_, rows_.n, [&](std::size_t row, std::size_t) {
        if (squares[row] < nearest_[row]) {
            nearer(static_cast<std::int64_t>(row), squares[row]);
            nearest_[row] = squares[row];
            labels_[row] = first + labels[row];
        }
    });
}

template <typename T>
void Seeding<T>::add_chosen(const T *row)
{
    chosen_.emplace_back(row, row + rows_.d);
    chosen_rows_.push_back(chosen_.back().data());
}

template <typename T>
double Seeding<T>::add(std::int32_t first, const std::vector<T> &values)
{
    check_rows(values, rows_.d);
    require_shape(first == static_cast<std::int32_t>(chosen_.size()));
    trial_rows_.clear();
    meet(values, first, [](std::int64_t, double) {}); // masses are summed anew
    // This may fail, too: what failed is served again.
    const double left = largest_square(runner_, rows_, nearest_.data());
    for (std::size_t at = 0; at < values.size(); at += static_cast<std::size_t>(rows_.d))
        add_chosen(values.data() + at);
    return left;
}

// Trials that are grouped around the chosen rows; there are none if this fails.
template <typename T>
void Seeding<T>::group_trials()
{
    if (auto trials = std::move(trials_)) {
        trials->group_again(chosen_rows_);
        trials_ = std::move(trials);
        return;
    }
    const auto n_chosen = static_cast<std::int32_t>(chosen_.size());
    // A request that was cancelled may have left others.
    require_shape(std::none_of(labels_.begin(), labels_.end(), [&](std::int32_t label) { return label >= n_chosen; }));
    auto made = std::make_unique<SeedTrials<T>>(runner_, rows_, nearest_.data(), labels_.data(), max_seed_candidates,
                                                rows_, 0.0);
    made->group(chosen_rows_);
    trials_ = std::move(made);
}

// By how much each trial would lower the potential, one after the other.
template <typename T>
std::vector<UInt128> Seeding<T>::gains_by_distances(const std::vector<T> &values)
{
    LargeArray<double> squares(nearest_.size());
    std::vector<UInt128> gains;
    for (auto row = values.begin(); row != values.end(); row += rows_.d) {
        std::vector<T> trial(row, row + rows_.d);
        PgkmAssignment wanted = {};
        wanted.distances = squares.data();
        assign_(1, trial.data(), wanted);
        std::vector<std::uint64_t> each(static_cast<std::size_t>(rows_.n / rows_per_task + 1), 0);
        for_rows(runner_, rows_.n, [&](std::size_t r, std::size_t task) { // 2^14 masses below 2^46, of one row each
            each[task] += lost_mass(static_cast<std::int64_t>(r), squares[r]);
        });
        gains.push_back(std::accumulate(each.begin(), each.end(), UInt128{0}));
    }
    return gains;
}

template <typename T>
std::vector<GainBounds> Seeding<T>::gains(const std::vector<T> &values)
{
    check_rows(values, rows_.d);
    require_shape(mass_ == Mass::square && !chosen_.empty() &&
                  values.size() <= std::size_t{max_seed_candidates} * static_cast<std::size_t>(rows_.d));
    std::vector<GainBounds> bounds;
    trial_gains_.clear();
    trial_rows_.clear();
    if (!on_cpu_ || order_.size() == 0) {
        trial_gains_ = gains_by_distances(values);
        std::transform(trial_gains_.begin(), trial_gains_.end(), std::back_inserter(bounds), bounds_of);
        trial_rows_ = values;
    } else {
        group_trials();
        std::vector<T> own = values; // which the trials look at until one is chosen
        std::vector<const T *> candidates;
        for (auto row = own.begin(); row != own.end(); row += rows_.d)
            candidates.push_back(&*row);
        bounds = trials_->bound_gains(candidates, scale_);
        trial_rows_ = std::move(own);
    }
    return bounds;
}

template <typename T>
std::vector<PgkmInt128> Seeding<T>::exact_gains(const std::vector<std::int32_t> &which)
{
    const auto n_trials = static_cast<std::int32_t>(trial_rows_.size()) / rows_.d;
    require_shape(!which.empty() && which.front() >= 0 && which.back() < n_trials && is_ascending(which) &&
                  (trials_ != nullptr || !trial_gains_.empty()));
    std::vector<UInt128> gains;
    if (trial_gains_.empty())
        gains = trials_->find_gains({which.begin(), which.end()}, scale_);
    else
        for (const std::int32_t trial : which)
            gains.push_back(trial_gains_[static_cast<std::size_t>(trial)]);
    std::vector<PgkmInt128> out(gains.size());
    std::transform(gains.begin(), gains.end(), out.begin(), split_unsigned);
    return out;
}

// What failed is served again: rows that have come nearer are not met twice, and their changes wait until they are
// told.
template <typename T>
Changes Seeding<T>::choose(std::int32_t best)
{
    require_shape(best >= 0 && best < static_cast<std::int32_t>(trial_rows_.size()) / rows_.d && mass_ == Mass::square);
    const auto row = trial_rows_.begin() + std::ptrdiff_t{best} * rows_.d;
    const std::vector<T> values(row, row + rows_.d);
    const auto index = static_cast<std::int32_t>(chosen_.size());
    auto trials = std::move(trials_); // there are none if this fails
    double left = 0.0;
    if (trials != nullptr && trial_gains_.empty()) {
        trials->choose(best, index, scale_, [&](std::int64_t r, std::uint64_t mass) { masses_->subtract(r, mass); });
        left = trials->largest();
    } else {
        trials.reset(); // of other trials, or of a choice that failed
        meet(values, index, [&](std::int64_t r, double square) { masses_->subtract(r, lost_mass(r, square)); });
        left = largest_square(runner_, rows_, nearest_.data());
    }
    Changes changes = take_changes();
    changes.largest = left;
    trial_rows_.clear();
    add_chosen(values.data());
    trials_ = std::move(trials);
    return changes;
}

template <typename T>
std::vector<PgkmInt128> Seeding<T>::masses_of_chosen(std::int32_t count, std::int32_t exponent)
{
    require_shape(count >= 1 && static_cast<std::size_t>(count) == chosen_.size());
    PgkmProblem problem = {};
    problem.n_rows = rows_.n;
    problem.weight_exponent = clamp_exponent(exponent);
    const std::vector<Int128> sums =
        masses_by_label(runner_, points_, problem, labels_.data(), chosen_.size(), rows_.counts);
    std::vector<PgkmInt128> out(sums.size());
    std::transform(sums.begin(), sums.end(), out.begin(), split);
    return out;
}

template class Seeding<float>;
template class Seeding<double>;

} // namespace pgkm::cpu
