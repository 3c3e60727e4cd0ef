// part_seed.cpp - masses by key, and distances to chosen rows.
//
// Buckets are rows whose keys share their upper bits: in canonical order they follow one another. Distances come from
// the backend's assign(), so that a GPU finds them where there is one.
#include "engine/nodes/part_seed.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "backend/update.hpp"
#include "numeric/contract.hpp"
#include "numeric/row_key.hpp"
#include "numeric/thread_pool.hpp"

namespace pgkm::nodes {
namespace {

constexpr std::int64_t rows_per_task = 1 << 14;
constexpr int most_sort_bits = 12;
constexpr std::size_t most_reply_bytes = std::size_t{1} << 30; // of a value in SQL

std::uint64_t bucket_of(std::uint64_t key, int bits)
{
    return bits == 0 ? 0 : key >> (64 - bits);
}

std::int64_t tasks_of(std::int64_t n)
{
    return (n + rows_per_task - 1) / rows_per_task;
}

void check_bits(std::int32_t bits)
{
    if (bits < 0 || bits > most_bucket_bits)
        raise_shape();
}

// What is asked for comes in order and once, so that no answer has more than all rows.
void check_ascending(const std::vector<std::uint64_t> &values)
{
    if (std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) != values.end())
        raise_shape();
}

void check_reply(std::size_t bytes)
{
    if (bytes > most_reply_bytes)
        throw Error(PGKM_LIMIT, "an answer to another server exceeds the maximum size of a value");
}

PgkmInt128 split_unsigned(UInt128 value)
{
    return split(static_cast<Int128>(value));
}

} // namespace

template <typename T>
void PartSeed<T>::poll() const
{
    if (host_.cancelled != nullptr && host_.cancelled(host_.arg) != 0)
        throw Error(PGKM_CANCELLED, "cancelled");
}

template <typename T>
void PartSeed<T>::serve(Operation operation, Reader &request, Writer &reply)
{
    if (operation != Operation::seed_begin && state_.nearest.size() != static_cast<std::size_t>(points_.n))
        throw Error(PGKM_INVALID, "a node was asked to seed before it was told to begin");
    switch (operation) {
    case Operation::seed_begin:
        return begin();
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
    case Operation::seed_masses:
        return masses(request, reply);
    default:
        throw Error(PGKM_INVALID, "a node was asked for something it does not know");
    }
}

// Rows are dealt out by the upper bits of their keys, and each share is sorted by itself.
template <typename T>
void PartSeed<T>::begin()
{
    const auto n = static_cast<std::size_t>(points_.n);
    state_.nearest.assign(n, std::numeric_limits<double>::infinity());
    state_.chosen.assign(n, 0);
    state_.n_chosen = 0;
    if (state_.order.size() == n)
        return;
    state_.order.resize(n);
    if (!state_.given.empty()) { // candidates keep their order
        for (std::size_t i = 0; i < n; ++i)
            state_.order[i] = {i, i};
        return;
    }
    ThreadPool pool(static_cast<int>(std::min<std::int64_t>(threads_, tasks_of(points_.n))));
    LargeArray<std::uint64_t> keys(n);
    pool.run(tasks_of(points_.n), [&](std::int64_t task, int) {
        poll();
        for (std::int64_t i = task * rows_per_task; i < std::min(points_.n, (task + 1) * rows_per_task); ++i)
            keys[static_cast<std::size_t>(i)] = row_key(row(static_cast<std::uint64_t>(i)), points_.d);
    });
    int bits = 0;
    while (bits < most_sort_bits && n >> bits > 4096)
        ++bits;
    std::vector<std::size_t> ends((std::size_t{1} << bits) + 1, 0);
    for (const std::uint64_t key : keys)
        ++ends[bucket_of(key, bits) + 1];
    for (std::size_t b = 1; b < ends.size(); ++b)
        ends[b] += ends[b - 1];
    poll();
    std::vector<std::size_t> next = ends;
    for (std::size_t i = 0; i < n; ++i)
        state_.order[next[bucket_of(keys[i], bits)]++] = {keys[i], i};
    const auto before = [&](const KeyedRow &a, const KeyedRow &b) {
        return a.first != b.first ? a.first < b.first : compare_content(row(a.second), row(b.second), points_.d) < 0;
    };
    pool.run(static_cast<std::int64_t>(ends.size()) - 1, [&](std::int64_t b, int) {
        poll();
        const auto first = state_.order.begin();
        std::sort(first + static_cast<std::ptrdiff_t>(ends[static_cast<std::size_t>(b)]),
                  first + static_cast<std::ptrdiff_t>(ends[static_cast<std::size_t>(b) + 1]), before);
    });
}

// Calls body(mass) where mass(row) is the integer by which the request wants rows to be drawn.
template <typename T>
template <typename Body>
void PartSeed<T>::with_mass(Reader &request, Body &&body)
{
    const auto kind = request.get<Mass>();
    const double scale = power_of_two(clamp_exponent(request.get<std::int32_t>()));
    if ((kind == Mass::weight && points_.weights == nullptr) ||
        (kind == Mass::given && state_.given.size() != static_cast<std::size_t>(points_.n)))
        raise_shape();
    switch (kind) {
    case Mass::one:
        return body([](std::uint64_t) { return std::uint64_t{1}; });
    case Mass::weight:
        return body(
            [&, scale](std::uint64_t i) { return static_cast<std::uint64_t>(quantise(points_.weights[i], scale)); });
    case Mass::square:
        return body([&, scale](std::uint64_t i) {
            return static_cast<std::uint64_t>(
                quantise_mass(weight(static_cast<std::int64_t>(i)) * state_.nearest[i], scale));
        });
    case Mass::given:
        return body([&](std::uint64_t i) { return static_cast<std::uint64_t>(state_.given[i]); });
    }
    throw Error(PGKM_INVALID, "a node was asked for something it does not know");
}

template <typename T>
void PartSeed<T>::sums(Reader &request, Writer &reply)
{
    with_mass(request, [&](auto mass) {
        const auto bits = request.get<std::int32_t>();
        check_bits(bits);
        const std::int64_t n = points_.n, tasks = tasks_of(n);
        std::vector<UInt128> sums(std::size_t{1} << bits, 0);
        // A bucket may begin in one task and end in another: those at the ends are added afterwards.
        std::vector<UInt128> first(static_cast<std::size_t>(tasks), 0), last(static_cast<std::size_t>(tasks), 0);
        const auto bucket = [&](std::int64_t place) {
            return bucket_of(state_.order[static_cast<std::size_t>(place)].first, bits);
        };
        parallel_for(tasks, threads_, [&](std::int64_t task, int) {
            poll();
            const std::int64_t begin = task * rows_per_task, end = std::min(n, begin + rows_per_task);
            const std::uint64_t head = bucket(begin), tail = bucket(end - 1);
            for (std::int64_t place = begin; place < end; ++place) {
                const std::uint64_t b = bucket(place), m = mass(state_.order[static_cast<std::size_t>(place)].second);
                (b == head   ? first[static_cast<std::size_t>(task)]
                 : b == tail ? last[static_cast<std::size_t>(task)]
                             : sums[b]) += m;
            }
        });
        for (std::int64_t task = 0; task < tasks; ++task) {
            sums[bucket(task * rows_per_task)] += first[static_cast<std::size_t>(task)];
            sums[bucket(std::min(n, (task + 1) * rows_per_task) - 1)] += last[static_cast<std::size_t>(task)];
        }
        std::vector<PgkmInt128> out(sums.size());
        std::transform(sums.begin(), sums.end(), out.begin(), split_unsigned);
        reply.put(out);
    });
}

// Of each bucket that is asked for: how many keys, these in ascending order, and their masses.
template <typename T>
void PartSeed<T>::keys(Reader &request, Writer &reply)
{
    with_mass(request, [&](auto mass) {
        const auto bits = request.get<std::int32_t>();
        check_bits(bits);
        const std::vector<std::uint64_t> buckets = request.get_all<std::uint64_t>();
        check_ascending(buckets);
        std::vector<std::uint64_t> counts, keys;
        std::vector<PgkmInt128> masses;
        for (const std::uint64_t bucket : buckets) {
            poll();
            const std::size_t begin = keys.size();
            auto place = std::partition_point(state_.order.begin(), state_.order.end(), [&](const KeyedRow &keyed) {
                return bucket_of(keyed.first, bits) < bucket;
            });
            while (place != state_.order.end() && bucket_of(place->first, bits) == bucket) {
                const std::uint64_t key = place->first;
                UInt128 sum = 0;
                for (; place != state_.order.end() && place->first == key; ++place)
                    sum += mass(place->second);
                keys.push_back(key);
                masses.push_back(split_unsigned(sum));
                check_reply(keys.size() * (sizeof key + sizeof masses[0]));
            }
            counts.push_back(keys.size() - begin);
        }
        reply.put(counts);
        reply.put(keys);
        reply.put(masses);
    });
}

// Of each key that is asked for: how many contents (one, unless keys clash), these in their order, and their masses.
template <typename T>
void PartSeed<T>::rows(Reader &request, Writer &reply)
{
    with_mass(request, [&](auto mass) {
        const std::vector<std::uint64_t> keys = request.get_all<std::uint64_t>();
        check_ascending(keys);
        std::vector<std::uint64_t> counts;
        std::vector<PgkmInt128> masses;
        std::vector<T> values;
        for (const std::uint64_t key : keys) {
            poll();
            const std::size_t begin = masses.size();
            auto place = std::partition_point(state_.order.begin(), state_.order.end(),
                                              [&](const KeyedRow &keyed) { return keyed.first < key; });
            while (place != state_.order.end() && place->first == key) {
                const T *content = row(place->second);
                UInt128 sum = 0;
                for (; place != state_.order.end() && place->first == key &&
                       compare_content(content, row(place->second), points_.d) == 0;
                     ++place)
                    sum += mass(place->second);
                values.insert(values.end(), content, content + points_.d);
                masses.push_back(split_unsigned(sum));
                check_reply(masses.size() * sizeof masses[0] + values.size() * sizeof(T));
            }
            counts.push_back(masses.size() - begin);
        }
        reply.put(counts);
        reply.put(masses);
        reply.put(values);
    });
}

template <typename T>
void PartSeed<T>::last(Writer &reply)
{
    const KeyedRow &keyed = state_.order.back();
    reply.put(keyed.first);
    reply.put(row(keyed.second), static_cast<std::size_t>(points_.d));
}

// The rows `values`, the first of which is chosen row number `first`: brings distances to them. The largest weight
// times squared distance that is left.
template <typename T>
void PartSeed<T>::add(Reader &request, Writer &reply)
{
    const auto first = request.get<std::int32_t>();
    std::vector<T> values = read_rows<T>(request, points_.d);
    PgkmProblem problem = {};
    problem.n_rows = points_.n;
    problem.k = static_cast<std::int32_t>(values.size() / static_cast<std::size_t>(points_.d));
    if (first != state_.n_chosen)
        raise_shape();
    problem.centroids = values.data();
    LargeArray<std::int32_t> labels(static_cast<std::size_t>(points_.n));
    LargeArray<double> squares(static_cast<std::size_t>(points_.n));
    PgkmAssignment wanted = {};
    wanted.labels = labels.data();
    wanted.distances = squares.data();
    std::vector<PgkmProblem> problems = {problem};
    session_.run(&PgkmBackend::assign, problems, &wanted);
    std::vector<double> largest(static_cast<std::size_t>(tasks_of(points_.n)), 0.0);
    parallel_for(tasks_of(points_.n), threads_, [&](std::int64_t task, int) {
        poll();
        double most = 0.0;
        for (std::int64_t row = task * rows_per_task; row < std::min(points_.n, (task + 1) * rows_per_task); ++row) {
            const auto i = static_cast<std::size_t>(row);
            if (squares[i] < state_.nearest[i]) {
                state_.nearest[i] = squares[i];
                state_.chosen[i] = first + labels[i];
            }
            most = std::max(most, weight(row) * state_.nearest[i]);
        }
        largest[static_cast<std::size_t>(task)] = most;
    });
    state_.n_chosen += problem.k; // not before: a request that failed on a GPU is served again
    reply.put(*std::max_element(largest.begin(), largest.end()));
}

template <typename T>
void PartSeed<T>::gains(Reader &request, Writer &reply)
{
    const double scale = power_of_two(clamp_exponent(request.get<std::int32_t>()));
    std::vector<T> values = read_rows<T>(request, points_.d);
    const std::size_t trials = values.size() / static_cast<std::size_t>(points_.d);
    const std::int64_t tasks = tasks_of(points_.n);
    LargeArray<double> squares(static_cast<std::size_t>(points_.n));
    ThreadPool pool(static_cast<int>(std::min<std::int64_t>(threads_, tasks)));
    std::vector<PgkmInt128> gains;
    for (std::size_t trial = 0; trial < trials; ++trial) {
        PgkmProblem problem = {};
        problem.n_rows = points_.n;
        problem.k = 1;
        problem.centroids = values.data() + trial * static_cast<std::size_t>(points_.d);
        PgkmAssignment wanted = {};
        wanted.distances = squares.data();
        std::vector<PgkmProblem> problems = {problem};
        session_.run(&PgkmBackend::assign, problems, &wanted);
        std::vector<UInt128> parts(static_cast<std::size_t>(tasks), 0);
        pool.run(tasks, [&](std::int64_t task, int) {
            std::uint64_t gain = 0; // 2^14 masses below 2^46
            for (std::int64_t row = task * rows_per_task; row < std::min(points_.n, (task + 1) * rows_per_task);
                 ++row) {
                const auto i = static_cast<std::size_t>(row);
                if (squares[i] < state_.nearest[i])
                    gain += static_cast<std::uint64_t>(quantise_mass(weight(row) * state_.nearest[i], scale) -
                                                       quantise_mass(weight(row) * squares[i], scale));
            }
            parts[static_cast<std::size_t>(task)] = gain;
        });
        UInt128 gain = 0;
        for (const UInt128 part : parts)
            gain += part;
        gains.push_back(split_unsigned(gain));
    }
    reply.put(gains);
}

template <typename T>
void PartSeed<T>::masses(Reader &request, Writer &reply)
{
    const auto count = static_cast<std::size_t>(request.get<std::int32_t>());
    if (count != static_cast<std::size_t>(state_.n_chosen))
        raise_shape();
    PgkmProblem problem = {};
    problem.weight_exponent = clamp_exponent(request.get<std::int32_t>());
    std::vector<Int128> sums(count, 0);
    for (std::int64_t i = 0; i < points_.n; ++i) {
        if (i % rows_per_task == 0)
            poll();
        sums.at(static_cast<std::size_t>(state_.chosen[static_cast<std::size_t>(i)])) += row_mass(points_, problem, i);
    }
    std::vector<PgkmInt128> out(count);
    std::transform(sums.begin(), sums.end(), out.begin(), split);
    reply.put(out);
}

template class PartSeed<float>;
template class PartSeed<double>;

} // namespace pgkm::nodes
