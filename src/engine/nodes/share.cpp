// share.cpp - ranges and moments, assignments, and sums in float64 of one server's rows.
#include "engine/nodes/share.hpp"

#include <algorithm>
#include <cmath>

#include "backend/host.hpp"
#include "backend/update.hpp"
#include "engine/nodes/cluster_sums.hpp"
#include "engine/nodes/model_request.hpp"
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

void raise_shape()
{
    throw Error(PGKM_INVALID, "a message between nodes has another shape than expected");
}

void check_reply(std::size_t bytes)
{
    if (bytes > most_reply_bytes)
        throw Error(PGKM_LIMIT, "an answer to another server exceeds the maximum size of a value");
}

template <typename T>
void check_values(const T *values, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i)
        if (!(std::fabs(static_cast<double>(values[i])) <= max_magnitude))
            throw Error(PGKM_INVALID, "a message between nodes has values that are not finite");
}
template void check_values(const float *, std::size_t);
template void check_values(const double *, std::size_t);

template <typename T>
LargeArray<std::int32_t> nearest_labels(Session &session, const PgkmPoints &points, std::int32_t k,
                                        const std::vector<double> &centroids)
{
    std::vector<T> own(centroids.size());
    std::transform(centroids.begin(), centroids.end(), own.begin(), [](double value) { return static_cast<T>(value); });
    check_values(own.data(), own.size());
    LargeArray<std::int32_t> labels(static_cast<std::size_t>(points.n));
    PgkmAssignment wanted = {};
    wanted.labels = labels.data();
    session.assign(points.n, k, own.data(), wanted);
    return labels;
}
template LargeArray<std::int32_t> nearest_labels<float>(Session &, const PgkmPoints &, std::int32_t,
                                                        const std::vector<double> &);
template LargeArray<std::int32_t> nearest_labels<double>(Session &, const PgkmPoints &, std::int32_t,
                                                         const std::vector<double> &);

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
        return assign<T>(request, reply);
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
    const auto metric = static_cast<PgkmMetric>(request.get<std::int32_t>());
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

template <typename T>
void Share::assign(Reader &request, Writer &reply)
{
    const auto k = static_cast<std::size_t>(request.get<std::int32_t>());
    std::vector<T> centroids = read_rows<T>(request, k, points_.d);
    PgkmProblem problem = whole();
    problem.k = static_cast<std::int32_t>(k);
    problem.centroids = centroids.data();
    problem.distance_exponent = clamp_exponent(request.get<std::int32_t>());
    const bool want_masses = request.get<std::uint8_t>() != 0;
    std::vector<PgkmInt128> within(k), masses(want_masses ? k : 0);
    std::vector<PgkmFeatureScale> scales;
    if (want_masses)
        scales = read_scales(request, problem);
    std::vector<std::int64_t> sizes(k);
    PgkmAssignment wanted = {};
    wanted.within = within.data();
    wanted.masses = want_masses ? masses.data() : nullptr;
    wanted.sizes = sizes.data();
    std::vector<PgkmProblem> problems = {problem};
    session_.run(&PgkmBackend::assign, problems, &wanted);
    reply.put(within);
    reply.put(masses);
    reply.put(sizes);
}

// --- sums in float64, of PCA and mixtures ---

void Share::cross(Reader &request, Writer &reply)
{
    CrossRequest asked(request, points_.d);
    std::vector<PgkmProblem> problems = {whole()};
    session_.run(&PgkmBackend::moments, problems, &asked.moments);
    asked.reply(reply);
}

template <typename T>
void Share::em_step(Reader &request, Writer &reply)
{
    MixtureRequest asked(request, points_.d);
    std::vector<PgkmProblem> problems = {whole()};
    LargeArray<std::int32_t> labels;
    if (asked.wants_labels()) {
        labels = nearest_labels<T>(session_, points_, asked.mixture.k, asked.means);
        asked.mixture.labels = labels.data();
    }
    session_.run(&PgkmBackend::em_step, problems, &asked.mixture, &asked.sums);
    asked.reply(reply);
}

} // namespace pgkm::nodes
