// share.cpp - ranges and moments, functions of the table, and sums of clusters.
#include "engine/nodes/share.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/host.hpp"
#include "backend/update.hpp"
#include "engine/rows/cluster_sums.hpp"
#include "engine/rows/prepare.hpp"

namespace pgkm::nodes {
namespace {

constexpr std::size_t values_per_poll = std::size_t{1} << 20;

// What a seeding has of rows that are asked in another form from now on.
void leave_rows(ShareState &state, const PgkmPoints &like)
{
    if (state.seeding != nullptr)
        with_element(like, [&](auto element) {
            static_cast<cpu::Seeding<decltype(element)> *>(state.seeding.get())->leave_rows();
        });
}

} // namespace

void give_up_entries(ShareState &state, const PgkmPoints &like)
{
    if (state.entries == nullptr)
        return;
    leave_rows(state, like);
    state.labels = {};
    state.entries.reset();
    state.may_repeat = false;
}

void make_room(ShareState &state, const PgkmPoints &like, PgkmContext *context, std::uint64_t bytes)
{
    if (state.entries != nullptr && !cpu::self(context)->budget.allows(bytes))
        give_up_entries(state, like);
}

PgkmPoints clustered(PgkmPoints points, const ShareState &state)
{
    if (state.transformed != nullptr)
        points.values = state.transformed.get();
    if (state.drawn >= 0) {
        points.n = state.drawn;
        points.weights = points.weights == nullptr ? nullptr : state.weights.data();
    }
    return points;
}

Centroids centroids_of(const PgkmProblem &problem, const RowShape &rows)
{
    const auto *values = static_cast<const std::byte *>(problem.centroids);
    const std::int64_t count = size_of_product(problem.k, rows.d);
    return {problem.k, {values, values + static_cast<std::size_t>(count) * rows.element_bytes()}};
}

void check_message(PgkmContext *context, std::uint64_t bytes)
{
    if (bytes > most_message_bytes)
        throw Error(PGKM_LIMIT, "a message between servers exceeds the maximum size of a value");
    const cpu::HeldMemory room(context, 2 * bytes);
}

LargeArray<std::int32_t> nearest_labels(Session &session, const PgkmPoints &points, std::int32_t k,
                                        const double *centroids)
{
    LargeArray<std::int32_t> labels(static_cast<std::size_t>(points.n));
    PgkmAssignment wanted = {};
    wanted.labels = labels.data();
    with_element(points, [&](auto element) {
        using T = decltype(element);
        std::vector<T> own(static_cast<std::size_t>(k) * static_cast<std::size_t>(points.d));
        std::transform(centroids, centroids + own.size(), own.begin(), [](double x) { return static_cast<T>(x); });
        check_values(own.data(), own.size());
        session.assign(points.n, k, own.data(), wanted);
    });
    return labels;
}

Share::Share(Session &session, const PgkmPoints &points, ShareState &state, const PgkmOpen &open)
    : session_(session), points_(clustered(points, state)), raw_(points), state_(state), open_(open)
{
    // They serve the CPU alone, in the memory of its job.
    if (state_.entries != nullptr && (session_.table() != cpu_backend() || session_.cpu() != state_.context))
        give_up_entries(state_, points_);
    session_.load_own(points_);
}

void serve_rows(Session &session, const PgkmPoints &points, ShareState &state, const PgkmOpen &open,
                const std::function<void(Share &)> &body)
{
    Share share(session, points, state, open);
    try {
        return body(share);
    } catch (const Error &error) {
        if (error.status() != PGKM_LIMIT || state.entries == nullptr)
            throw;
    }
    give_up_entries(state, share.points());
    body(share);
}

// Where the CPU serves rows that stay.
void Share::find_entries()
{
    if (state_.passing || !state_.may_repeat || state_.entries != nullptr || points_.n < cpu::least_rows_of_entries ||
        cpu_data(session_) == nullptr)
        return;
    state_.context = session_.cpu();
    state_.entries = cpu::make_entries({*cpu::self(state_.context.get()), points_}, {points_.n});
    state_.may_repeat = state_.entries != nullptr;
    if (!state_.may_repeat)
        return;
    state_.entries->entry_of = {}; // nobody asks for labels of rows
    leave_rows(state_, points_);   // of a seeding by rows, which is at rest
}

void Share::assign(std::int32_t k, void *centroids, PgkmAssignment &wanted)
{
    if (state_.entries == nullptr)
        return session_.assign(points_.n, k, centroids, wanted);
    PgkmProblem problem = {};
    problem.k = k;
    problem.centroids = centroids;
    assign_entries(problem, wanted);
}

void Share::assign_entries(PgkmProblem problem, PgkmAssignment &wanted)
{
    problem.n_rows = state_.entries->size();
    cpu::assign(state_.entries->data, &problem, 1, &wanted);
}

PgkmProblem Share::whole() const
{
    PgkmProblem problem = {};
    problem.n_rows = points_.n;
    return problem;
}

// The least and the greatest values, then the largest weight.
std::vector<double> Share::ranges()
{
    if (state_.ranges.empty()) {
        std::vector<PgkmProblem> problems = {whole()};
        const Summary summary = session_.summarise(problems, false)[0];
        state_.ranges = summary.min;
        state_.ranges.insert(state_.ranges.end(), summary.max.begin(), summary.max.end());
        state_.ranges.push_back(summary.max_weight);
    }
    return state_.ranges;
}

// About the middles of such ranges, those of all rows: of each feature the sums of values and of squares.
std::vector<PgkmInt128> Share::moments(const std::vector<double> &ranges)
{
    const auto d = static_cast<std::size_t>(points_.d);
    require_shape(ranges.size() == 2 * d + 1);
    check_values(ranges.data(), ranges.size());
    std::vector<double> all = ranges;
    const std::vector<double> own = this->ranges();
    for (std::size_t i = 0; i < 2 * d; ++i)
        require_shape(i < d ? all[i] <= own[i] : all[i] >= own[i]);
    cpu::Data data = {*cpu::self(session_.cpu().get()), points_};
    const std::vector<Int128> found =
        cpu::moment_sums(data, whole(), {all.data(), all.data() + d, nullptr, nullptr, all.back()});
    std::vector<PgkmInt128> sums(found.size());
    std::transform(found.begin(), found.end(), sums.begin(), split);
    return sums;
}

template <typename T>
void Share::transform(const std::vector<double> &center, const std::vector<double> &scale, std::int32_t metric)
{
    const auto size = static_cast<std::size_t>(raw_.n) * static_cast<std::size_t>(raw_.d);
    require_shape(center.size() == scale.size() && metric >= PGKM_L2 && metric <= PGKM_COSINE &&
                  (center.empty() || center.size() == static_cast<std::size_t>(raw_.d)));
    session_.unload();
    state_.seeding.reset();
    state_.entries.reset();
    state_.may_repeat = true;
    state_.ranges.clear();
    state_.transformed.reset(); // before the next ones are allocated
    if (center.empty() && metric == PGKM_L2)
        return;
    std::unique_ptr<std::byte[]> transformed(new std::byte[size * sizeof(T)]);
    T *const rows = reinterpret_cast<T *>(transformed.get());
    transform_rows(
        static_cast<const T *>(raw_.values), raw_.n, raw_.d, {center, scale}, static_cast<PgkmMetric>(metric),
        [&] { poll(open_.host); }, rows);
    for (std::size_t begin = 0; begin < size; begin += values_per_poll) {
        poll(open_.host);
        check_values(rows + begin, std::min(values_per_poll, size - begin));
    }
    state_.transformed = std::move(transformed);
}

// A mixture without factors gives each row to the component of the nearest mean.
bool Share::call(Call &call, Iteration iteration)
{
    if (iteration != Iteration::none)
        return iterate(call, iteration == Iteration::first);
    if (call.function == Function::em_step) // wants all memory, and has no use for entries
        give_up_entries(state_, points_);
    if (call.function == Function::assign && state_.entries != nullptr) {
        assign_entries(*call.problems, *call.assignments);
        return false;
    }
    if (call.function != Function::em_step || call.mixtures->factors != nullptr) {
        session_.run(call);
        return false;
    }
    const LargeArray<std::int32_t> labels = nearest_labels(session_, points_, call.mixtures->k, call.mixtures->means);
    call.mixtures->labels = labels.data();
    session_.run(call);
    call.mixtures->labels = nullptr;
    return false;
}

Bytes Share::held(std::uint64_t first, std::uint64_t count)
{
    Bytes &all = state_.held;
    require_shape(first <= all.size() && count <= all.size() - first);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    Bytes some(begin, begin + static_cast<std::ptrdiff_t>(count));
    if (first + count == all.size())
        all = {};
    return some;
}

void Share::part(std::uint64_t all, std::uint64_t first, const Bytes &bytes)
{
    Bytes &parts = state_.parts;
    if (first == 0) {
        parts = {};
        require_shape(all <= most_message_bytes);
        check_message(session_.cpu().get(), all);
        state_.parts_bytes = all;
        parts.reserve(all);
    }
    require_shape(all == state_.parts_bytes && first == parts.size() && bytes.size() <= all - first);
    parts.insert(parts.end(), bytes.begin(), bytes.end());
}

LargeArray<std::int32_t> Share::labels(Centroids of) const
{
    LargeArray<std::int32_t> labels(static_cast<std::size_t>(points_.n));
    PgkmAssignment wanted = {};
    wanted.labels = labels.data();
    session_.assign(points_.n, of.k, of.values.data(), wanted);
    return labels;
}

// Of the rows of clusters, labelled anew, which is a small part of the fit before it.
std::vector<double> Share::cluster_sums(std::int32_t k, const std::vector<double> &centroids,
                                        const std::vector<double> &means)
{
    check_rows(centroids, points_.d);
    require_shape(k >= 1 && centroids.size() == static_cast<std::size_t>(k) * static_cast<std::size_t>(points_.d) &&
                  means.size() == centroids.size());
    const LargeArray<std::int32_t> labels = nearest_labels(session_, points_, k, centroids.data());
    const LabelledRows rows = {points_, labels.data(), k, session_.pool(), [&] { poll(open_.host); }};
    return rows.spreads(means.data(), centroids.data());
}

template <typename T>
void Share::seed_begin(std::int32_t bits)
{
    require_shape(bits >= 0 && bits <= cpu::most_bucket_bits);
    auto seeding = std::static_pointer_cast<cpu::Seeding<T>>(state_.seeding);
    if (seeding == nullptr || seeding->was_given_up() || seeding->bits() != bits) {
        seeding.reset();
        state_.seeding.reset();
        find_entries();
        state_.seeding = seeding = make_seeding<T>(bits);
    }
    seeding->begin();
}

template <typename T>
std::shared_ptr<cpu::Seeding<T>> Share::make_seeding(std::int32_t bits)
{
    const auto check_answer = [context = session_.cpu()](std::uint64_t bytes) { check_message(context.get(), bytes); };
    const cpu::Data *const entries = state_.entries == nullptr ? nullptr : &state_.entries->data;
    return std::make_shared<cpu::Seeding<T>>(
        entries == nullptr ? points_ : entries->points, entries == nullptr ? nullptr : entries->counts,
        entries == nullptr ? session_.cpu() : state_.context, bits, !state_.unordered, check_answer);
}

template <typename T>
void Share::serve_by(cpu::Seeding<T> &seeding)
{
    seeding.serve_by([this](std::int32_t k, T *to, PgkmAssignment &wanted) { assign(k, to, wanted); },
                     state_.entries != nullptr || cpu_data(session_) != nullptr);
}

template <typename T>
cpu::Seeding<T> &Share::seeding()
{
    if (state_.seeding == nullptr || static_cast<cpu::Seeding<T> *>(state_.seeding.get())->is_at_rest())
        throw Error(PGKM_INVALID, "a node was asked to seed before it was told to begin");
    auto seeding = std::static_pointer_cast<cpu::Seeding<T>>(state_.seeding);
    if (seeding->was_given_up()) { // with its entries
        const auto before = std::exchange(seeding, make_seeding<T>(seeding->bits()));
        serve_by(*seeding);
        seeding->go_on_from(*before);
        state_.seeding = seeding;
    }
    serve_by(*seeding);
    return *seeding;
}

template void Share::transform<float>(const std::vector<double> &, const std::vector<double> &, std::int32_t);
template void Share::transform<double>(const std::vector<double> &, const std::vector<double> &, std::int32_t);
template void Share::seed_begin<float>(std::int32_t);
template void Share::seed_begin<double>(std::int32_t);
template cpu::Seeding<float> &Share::seeding();
template cpu::Seeding<double> &Share::seeding();

} // namespace pgkm::nodes
