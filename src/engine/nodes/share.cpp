// share.cpp - ranges and moments, assignments, and sums in float64 of one server's rows.
#include "engine/nodes/share.hpp"

#include <algorithm>
#include <cmath>

#include "backend/host.hpp"
#include "backend/update.hpp"
#include "engine/nodes/cluster_sums.hpp"
#include "engine/nodes/fields.hpp"
#include "engine/nodes/share_seed.hpp"
#include "engine/rows/prepare.hpp"
#include "numeric/contract.hpp"
#include "numeric/thread_pool.hpp"

namespace pgkm::nodes {
namespace {

constexpr std::int64_t rows_per_task = 1 << 14;
constexpr std::size_t most_reply_bytes = std::size_t{1} << 30; // of a value in SQL

// Integer sums of one feature.
struct MomentSums {
    Int128 value = 0, square = 0;
};

} // namespace

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

void check_reply(std::size_t bytes)
{
    if (bytes > most_reply_bytes)
        throw Error(PGKM_LIMIT, "an answer to another server exceeds the maximum size of a value");
}

template <typename T>
LargeArray<std::int32_t> nearest_labels(Session &session, const PgkmPoints &points, std::int32_t k,
                                        const double *centroids)
{
    std::vector<T> own(static_cast<std::size_t>(k) * static_cast<std::size_t>(points.d));
    std::transform(centroids, centroids + own.size(), own.begin(), [](double value) { return static_cast<T>(value); });
    check_values(own.data(), own.size());
    LargeArray<std::int32_t> labels(static_cast<std::size_t>(points.n));
    PgkmAssignment wanted = {};
    wanted.labels = labels.data();
    session.assign(points.n, k, own.data(), wanted);
    return labels;
}
template LargeArray<std::int32_t> nearest_labels<float>(Session &, const PgkmPoints &, std::int32_t, const double *);
template LargeArray<std::int32_t> nearest_labels<double>(Session &, const PgkmPoints &, std::int32_t, const double *);

Share::Share(Session &session, const PgkmPoints &points, ShareState &state, const PgkmOpen &open)
    : session_(session), points_(clustered(points, state)), raw_(points), state_(state), open_(open)
{
}

PgkmProblem Share::whole() const
{
    PgkmProblem problem = {};
    problem.n_rows = points_.n;
    return problem;
}

void Share::serve(Reader &request, Writer &reply)
{
    const Operation operation = request.operation();
    session_.load_own(points_);
    if (points_.element == PGKM_FLOAT32)
        serve_as<float>(operation, request, reply);
    else
        serve_as<double>(operation, request, reply);
    request.finish();
}

template <typename T>
void Share::serve_as(Operation operation, Reader &request, Writer &reply)
{
    switch (operation) {
    case Operation::ranges:
        return ranges<T>(reply);
    case Operation::moments:
        return moments<T>(request, reply);
    case Operation::transform:
        return transform<T>(request);
    case Operation::iterate:
        return iterate<T>(request, reply);
    case Operation::farthest:
        return farthest<T>(request, reply);
    case Operation::assign:
        return assign(request, reply);
    case Operation::cross:
        return cross(request, reply);
    case Operation::em_step:
        return em_step<T>(request, reply);
    case Operation::cluster_totals:
    case Operation::cluster_spreads:
        return serve_cluster_sums<T>(session_, points_, open_.threads, open_.host, operation, request, reply);
    default:
        return ShareSeed<T>(session_, points_, state_, open_).serve(operation, request, reply);
    }
}

template <typename T>
void Share::ranges(Writer &reply)
{
    std::vector<PgkmProblem> problems = {whole()};
    const std::vector<Summary> summaries = session_.summarise(problems, false);
    reply.put(summaries[0].min);
    reply.put(summaries[0].max);
    reply.put(summaries[0].max_weight);
}

template <typename T>
void Share::moments(Reader &request, Writer &reply)
{
    const auto d = static_cast<std::size_t>(points_.d);
    const std::vector<double> min = request.get_all<double>(d), max = request.get_all<double>(d);
    std::vector<MomentScale> scales;
    for (std::size_t f = 0; f < d; ++f)
        scales.push_back(moment_scale(min[f], max[f]));
    const std::int64_t tasks = (points_.n + rows_per_task - 1) / rows_per_task;
    ThreadPool pool(static_cast<int>(std::min<std::int64_t>(open_.threads, tasks)));
    std::vector<std::vector<MomentSums>> sums(static_cast<std::size_t>(pool.size()), std::vector<MomentSums>(d));
    pool.run(tasks, [&](std::int64_t task, int worker) {
        poll(open_.host);
        const auto *values = static_cast<const T *>(points_.values);
        std::vector<MomentSums> &own = sums[static_cast<std::size_t>(worker)];
        for (std::int64_t row = task * rows_per_task; row < std::min(points_.n, (task + 1) * rows_per_task); ++row)
            for (std::size_t f = 0; f < d; ++f) {
                const MomentScale &scale = scales[f];
                const double centred =
                    static_cast<double>(values[row * points_.d + static_cast<std::int64_t>(f)]) - scale.middle;
                const Limbs limbs = quantise_square(centred * centred, power_of_two(scale.square_exponent));
                own[f].value += quantise(centred, power_of_two(scale.value_exponent));
                own[f].square += join_limbs(limbs.hi, limbs.lo);
            }
    });
    std::vector<PgkmInt128> value(d), square(d);
    for (std::size_t f = 0; f < d; ++f) {
        MomentSums all;
        for (const std::vector<MomentSums> &own : sums) {
            all.value += own[f].value;
            all.square += own[f].square;
        }
        value[f] = split(all.value);
        square[f] = split(all.square);
    }
    reply.put(value);
    reply.put(square);
}

template <typename T>
void Share::transform(Reader &request)
{
    const Standardization standardization = {request.get_all<double>(), request.get_all<double>()};
    const auto metric = request.get_choice(PGKM_COSINE);
    const auto size = static_cast<std::size_t>(raw_.n) * static_cast<std::size_t>(raw_.d) * sizeof(T);
    if (standardization.center.size() != standardization.scale.size() ||
        (!standardization.center.empty() && standardization.center.size() != static_cast<std::size_t>(raw_.d)))
        raise_shape();
    session_.unload();
    state_.seeding.reset();
    state_.transformed.reset(); // before the next ones are allocated
    if (standardization.center.empty() && metric == PGKM_L2)
        return;
    std::unique_ptr<std::byte[]> transformed(new std::byte[size]);
    transform_rows(
        static_cast<const T *>(raw_.values), raw_.n, raw_.d, standardization, metric, [&] { poll(open_.host); },
        reinterpret_cast<T *>(transformed.get()));
    check_values(reinterpret_cast<const T *>(transformed.get()), size / sizeof(T));
    state_.transformed = std::move(transformed);
}

void Share::assign(Reader &request, Writer &reply)
{
    AskedCall asked(Function::assign, request, points_);
    std::vector<PgkmProblem> problems = {asked.problem};
    session_.run(&PgkmBackend::assign, problems, &asked.assignment);
    asked.reply(reply);
}

// --- sums in float64, of PCA and mixtures ---

void Share::cross(Reader &request, Writer &reply)
{
    AskedCall asked(Function::moments, request, points_);
    std::vector<PgkmProblem> problems = {asked.problem};
    session_.run(&PgkmBackend::moments, problems, &asked.moments);
    asked.reply(reply);
}

template <typename T>
void Share::em_step(Reader &request, Writer &reply)
{
    AskedCall asked(Function::em_step, request, points_);
    std::vector<PgkmProblem> problems = {asked.problem};
    PgkmMixture mixture = asked.mixture;
    LargeArray<std::int32_t> labels;
    if (mixture.factors == nullptr) {
        labels = nearest_labels<T>(session_, points_, mixture.k, mixture.means);
        mixture.labels = labels.data();
    }
    session_.run(&PgkmBackend::em_step, problems, &mixture, &asked.sums);
    asked.reply(reply);
}

} // namespace pgkm::nodes
