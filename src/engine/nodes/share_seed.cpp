// share_seed.cpp - requests about masses by key, and about distances to chosen rows.
//
// The rows of a round of k-means||, and on a device the trials, meet the backend's assign(). On a CPU trials meet tiles
// of rows (cpu/seed), as on one server.
#include "engine/nodes/share_seed.hpp"

#include <algorithm>
#include <functional>

#include "backend/host.hpp"
#include "backend/update.hpp"
#include "engine/nodes/seeding.hpp"
#include "numeric/large_array.hpp"

namespace pgkm::nodes {
namespace {

constexpr std::int64_t rows_per_task = 1 << 14;

std::int64_t tasks_of(std::int64_t n)
{
    return (n + rows_per_task - 1) / rows_per_task;
}

// What is asked for comes in order and once, so that no answer has more than all rows.
std::vector<std::uint64_t> read_ascending(Reader &request)
{
    std::vector<std::uint64_t> values = request.get_all<std::uint64_t>();
    if (std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) != values.end())
        raise_shape();
    return values;
}

PgkmInt128 split_unsigned(UInt128 value)
{
    return split(static_cast<Int128>(value));
}

// An integer as bounds in float64, so wide that sums over all servers bound the sum.
cpu::GainBounds bounds_of(UInt128 value)
{
    const double near = static_cast<double>(value);
    return {near * (1.0 - 0x1p-40), near * (1.0 + 0x1p-40)};
}

// The buckets whose sums have changed, and by how much: in 64 bits where these are enough, then in 128.
void put_changes(KeyMasses &masses, Writer &reply)
{
    std::vector<std::uint32_t> buckets, wide_buckets;
    std::vector<std::int64_t> differences;
    std::vector<PgkmInt128> wide_differences;
    masses.take_changes([&](std::uint32_t bucket, Int128 difference) {
        if (difference == static_cast<std::int64_t>(difference)) {
            buckets.push_back(bucket);
            differences.push_back(static_cast<std::int64_t>(difference));
        } else {
            wide_buckets.push_back(bucket);
            wide_differences.push_back(split(difference));
        }
    });
    reply.put(buckets);
    reply.put(differences);
    reply.put(wide_buckets);
    reply.put(wide_differences);
}

} // namespace

template <typename T>
void ShareSeed<T>::serve(Operation operation, Reader &request, Writer &reply)
{
    switch (operation) {
    case Operation::seed_begin:
        return begin(request);
    case Operation::seed_sums:
        return sums(request, reply);
    case Operation::seed_keys:
        return keys(request, reply);
    case Operation::seed_rows:
        return rows(request, reply);
    case Operation::seed_last:
        return last(reply);
    case Operation::seed_add:
        return add(request, reply);
    case Operation::seed_gains:
        return gains(request, reply);
    case Operation::seed_exact:
        return exact_gains(request, reply);
    case Operation::seed_choose:
        return choose(request, reply);
    case Operation::seed_masses:
        return masses(request, reply);
    default:
        throw Error(PGKM_INVALID, "a node was asked for something it does not know");
    }
}

template <typename T>
Seeding<T> &ShareSeed<T>::seeding()
{
    if (state_.seeding == nullptr)
        throw Error(PGKM_INVALID, "a node was asked to seed before it was told to begin");
    return *static_cast<Seeding<T> *>(state_.seeding.get());
}

template <typename T>
void ShareSeed<T>::begin(Reader &request)
{
    const auto bits = request.get<std::int32_t>();
    if (bits < 0 || bits > most_bucket_bits)
        raise_shape();
    if (state_.seeding == nullptr || seeding().masses.bits() != bits) {
        state_.seeding.reset();
        state_.seeding = std::make_shared<Seeding<T>>(points_, open_, bits, !state_.unordered);
    }
    seeding().begin();
}

template <typename T>
void ShareSeed<T>::sums(Reader &request, Writer &reply)
{
    const auto kind = request.get<Mass>();
    const int exponent = clamp_exponent(request.get<std::int32_t>());
    if (kind < Mass::one || kind > Mass::square || (kind == Mass::weight && points_.weights == nullptr))
        raise_shape();
    seeding().weigh(kind, exponent);
    put_changes(seeding().masses, reply);
}

// Of each bucket that is asked for: how many keys, these in ascending order, and their masses.
template <typename T>
void ShareSeed<T>::keys(Reader &request, Writer &reply)
{
    const Seeding<T> &own = seeding();
    std::vector<std::uint64_t> counts, keys;
    std::vector<PgkmInt128> masses;
    for (const std::uint64_t bucket : read_ascending(request)) {
        poll(open_.host);
        if (bucket >> own.masses.bits() != 0)
            raise_shape();
        const std::size_t begin = keys.size();
        auto [place, end] = own.masses.places(bucket);
        while (place < end) {
            const std::uint64_t key = own.key_at(place);
            UInt128 sum = 0;
            for (std::int64_t next = place; next < end && own.key_at(next) == key; next = place) {
                place = own.run_end(next, end);
                sum += own.run_mass(next, place);
            }
            keys.push_back(key);
            masses.push_back(split_unsigned(sum));
            check_reply(keys.size() * (sizeof key + sizeof masses[0]));
        }
        counts.push_back(keys.size() - begin);
    }
    reply.put(counts);
    reply.put(keys);
    reply.put(masses);
}

// Of each bucket of so many bits that is asked for (64: a key): how many contents, their keys, masses and values, in
// canonical order.
template <typename T>
void ShareSeed<T>::rows(Reader &request, Writer &reply)
{
    const Seeding<T> &own = seeding();
    const auto bits = request.get<std::int32_t>();
    if (bits != own.masses.bits() && bits != 64)
        raise_shape();
    std::vector<std::uint64_t> counts, keys;
    std::vector<PgkmInt128> masses;
    std::vector<T> values;
    for (const std::uint64_t bucket : read_ascending(request)) {
        poll(open_.host);
        if (bits < 64 && bucket >> bits != 0)
            raise_shape();
        const std::size_t begin = masses.size();
        auto [place, end] = own.masses.places(bits < 64 ? bucket : bucket_of(bucket, own.masses.bits()));
        for (std::int64_t last = end; bits == 64 && place < last;) { // the first row that has the key
            const std::int64_t middle = place + (last - place) / 2;
            if (own.key_at(middle) < bucket)
                place = middle + 1;
            else
                last = middle;
        }
        while (place < end && bucket_of(own.key_at(place), bits) == bucket) {
            const std::int64_t next = own.run_end(place, end);
            const T *content = own.row_at(place);
            keys.push_back(own.key_at(place));
            masses.push_back(split_unsigned(own.run_mass(place, next)));
            values.insert(values.end(), content, content + points_.d);
            check_reply(masses.size() * (sizeof keys[0] + sizeof masses[0]) + values.size() * sizeof(T));
            place = next;
        }
        counts.push_back(masses.size() - begin);
    }
    reply.put(counts);
    reply.put(keys);
    reply.put(masses);
    reply.put(values);
}

template <typename T>
void ShareSeed<T>::last(Writer &reply)
{
    const std::int64_t place = points_.n - 1;
    reply.put(seeding().key_at(place));
    reply.put(seeding().row_at(place), static_cast<std::size_t>(points_.d));
}

// Brings distances to these rows, of which the first is chosen row number `first`.
template <typename T>
void ShareSeed<T>::meet(const std::vector<T> &rows, std::int32_t first)
{
    Seeding<T> &own = seeding();
    std::vector<T> values = rows;
    LargeArray<std::int32_t> labels(static_cast<std::size_t>(points_.n));
    LargeArray<double> squares(static_cast<std::size_t>(points_.n));
    PgkmAssignment wanted = {};
    wanted.labels = labels.data();
    wanted.distances = squares.data();
    session_.assign(points_.n, static_cast<std::int32_t>(values.size()) / points_.d, values.data(), wanted);
    own.trials.reset();
    own.runner.run(tasks_of(points_.n), [&](std::int64_t task) {
        for (std::int64_t row = task * rows_per_task; row < std::min(points_.n, (task + 1) * rows_per_task); ++row) {
            const auto i = static_cast<std::size_t>(row);
            if (squares[i] < own.nearest[i]) {
                own.nearest[i] = squares[i];
                own.labels[i] = first + labels[i];
            }
        }
    });
}

// The rows `values`, the first of which is chosen row number `first`. The largest weight times squared distance that is
// left.
template <typename T>
void ShareSeed<T>::add(Reader &request, Writer &reply)
{
    const auto first = request.get<std::int32_t>();
    const std::vector<T> values = read_rows<T>(request, points_.d);
    Seeding<T> &own = seeding();
    if (first != static_cast<std::int32_t>(own.chosen.size()))
        raise_shape();
    own.trial_rows.clear();
    meet(values, first);
    const double largest = own.largest(); // this may fail, too: what failed is served again
    for (auto row = values.begin(); row != values.end(); row += points_.d)
        own.choose({row, row + points_.d});
    reply.put(largest);
}

// By how much each trial would lower the potential, one after the other.
template <typename T>
std::vector<UInt128> ShareSeed<T>::gains_on_device(const std::vector<T> &values)
{
    const Seeding<T> &own = seeding();
    const std::int64_t tasks = tasks_of(points_.n);
    LargeArray<double> squares(static_cast<std::size_t>(points_.n));
    std::vector<UInt128> gains;
    for (auto row = values.begin(); row != values.end(); row += points_.d) {
        std::vector<T> trial(row, row + points_.d);
        PgkmAssignment wanted = {};
        wanted.distances = squares.data();
        session_.assign(points_.n, 1, trial.data(), wanted);
        std::vector<std::uint64_t> each(static_cast<std::size_t>(tasks), 0);
        own.runner.run(tasks, [&](std::int64_t task) {
            std::uint64_t gain = 0; // 2^14 masses below 2^46
            for (std::int64_t r = task * rows_per_task; r < std::min(points_.n, (task + 1) * rows_per_task); ++r) {
                const auto i = static_cast<std::size_t>(r);
                if (squares[i] < own.nearest[i])
                    gain += static_cast<std::uint64_t>(quantise_mass(own.rows.weight(r) * own.nearest[i], own.scale) -
                                                       quantise_mass(own.rows.weight(r) * squares[i], own.scale));
            }
            each[static_cast<std::size_t>(task)] = gain;
        });
        UInt128 gain = 0;
        for (const std::uint64_t one : each)
            gain += one;
        gains.push_back(gain);
    }
    return gains;
}

// Bounds of what each of these trials would take from the potential.
template <typename T>
void ShareSeed<T>::gains(Reader &request, Writer &reply)
{
    std::vector<T> values = read_rows<T>(request, points_.d);
    Seeding<T> &own = seeding();
    if (own.mass != Mass::square || own.chosen.empty() ||
        values.size() > std::size_t{cpu::max_seed_candidates} * static_cast<std::size_t>(points_.d))
        raise_shape();
    std::vector<cpu::GainBounds> bounds;
    own.trial_gains.clear();
    own.trial_rows.clear();
    if (cpu_data(session_) == nullptr) {
        own.trial_gains = gains_on_device(values);
        std::transform(own.trial_gains.begin(), own.trial_gains.end(), std::back_inserter(bounds), bounds_of);
    } else {
        own.make_trials();
        std::vector<const T *> candidates; // which stay where they are
        for (auto row = values.begin(); row != values.end(); row += points_.d)
            candidates.push_back(&*row);
        bounds = own.trials->bound_gains(candidates, own.scale);
    }
    own.trial_rows = std::move(values);
    reply.put(bounds);
}

// The same exactly, of the trials that are asked for.
template <typename T>
void ShareSeed<T>::exact_gains(Reader &request, Writer &reply)
{
    const std::vector<std::int32_t> which = request.get_all<std::int32_t>();
    const Seeding<T> &own = seeding();
    if (which.empty() || which.front() < 0 || which.back() >= own.n_trials() ||
        std::adjacent_find(which.begin(), which.end(), std::greater_equal<>()) != which.end())
        raise_shape();
    std::vector<PgkmInt128> gains;
    if (own.trial_gains.empty()) {
        for (const UInt128 gain : own.trials->find_gains({which.begin(), which.end()}, own.scale))
            gains.push_back(split_unsigned(gain));
    } else {
        for (const std::int32_t trial : which)
            gains.push_back(split_unsigned(own.trial_gains[static_cast<std::size_t>(trial)]));
    }
    reply.put(gains);
}

// The trial becomes a chosen row. The largest weight times squared distance that is left, and how masses change.
template <typename T>
void ShareSeed<T>::choose(Reader &request, Writer &reply)
{
    const auto best = request.get<std::int32_t>();
    Seeding<T> &own = seeding();
    if (best < 0 || best >= own.n_trials() || own.mass != Mass::square)
        raise_shape();
    const auto row = own.trial_rows.begin() + std::ptrdiff_t{best} * points_.d;
    const std::vector<T> values(row, row + points_.d);
    const auto index = static_cast<std::int32_t>(own.chosen.size());
    if (own.trial_gains.empty()) {
        own.trials->choose(best, index, own.scale,
                           [&](std::int64_t r, std::uint64_t mass) { own.masses.subtract(r, mass); });
    } else {
        meet(values, index);
        own.with_mass([&](auto mass_of) { own.masses.sum(mass_of); });
    }
    const double largest = own.largest();
    own.trial_rows.clear();
    own.choose(values);
    if (auto trials = std::move(own.trials)) { // there are none if this fails
        trials->group_again(own.chosen_rows);
        own.trials = std::move(trials);
    }
    reply.put(largest);
    put_changes(own.masses, reply);
}

template <typename T>
void ShareSeed<T>::masses(Reader &request, Writer &reply)
{
    const Seeding<T> &own = seeding();
    const auto count = static_cast<std::size_t>(request.get<std::int32_t>());
    if (count == 0 || count != own.chosen.size())
        raise_shape();
    PgkmProblem problem = {};
    problem.weight_exponent = clamp_exponent(request.get<std::int32_t>());
    std::vector<Int128> sums(count, 0);
    for (std::int64_t i = 0; i < points_.n; ++i) {
        if (i % rows_per_task == 0)
            poll(open_.host);
        sums.at(static_cast<std::size_t>(own.labels[static_cast<std::size_t>(i)])) += row_mass(points_, problem, i);
    }
    std::vector<PgkmInt128> out(count);
    std::transform(sums.begin(), sums.end(), out.begin(), split);
    reply.put(out);
}

template class ShareSeed<float>;
template class ShareSeed<double>;

} // namespace pgkm::nodes
