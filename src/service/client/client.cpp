// client.cpp - the client's function table, and what is asked without a context.
#include "service/client/client.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "numeric/error.hpp"
#include "service/client/call.hpp"
#include "service/client/sums.hpp"
#include "service/client/handover.hpp"

namespace pgkm::service {
namespace {

constexpr std::int32_t most_devices = PGKM_SERVICE_DEVICES;

Link *self(PgkmContext *context)
{
    return reinterpret_cast<Link *>(context);
}
LoadedRows *self(PgkmData *data)
{
    return reinterpret_cast<LoadedRows *>(data);
}

PgkmStatus probe(PgkmDevice *, std::int32_t, std::int32_t *count, PgkmError *error)
{
    *count = 0;
    return set_error(error, PGKM_UNAVAILABLE, "the GPU service is asked over a connection");
}

const char *const *strategies(const char *)
{
    static const char *const none[] = {nullptr};
    return none;
}

PgkmStatus open(const PgkmOpen *options, PgkmContext **context, PgkmError *error)
{
    *context = nullptr;
    return guarded(error, [&] {
        if (options->struct_size != sizeof(PgkmOpen) || options->channel <= 0)
            throw Error(PGKM_INVALID, "the GPU service was opened without a connection");
        auto link = std::make_unique<Link>(options->channel, options->host, options->segment, options->memory_limit);
        Request request = request_of(Op::open);
        request.open.device = options->device;
        request.open.n_devices = std::clamp(options->n_devices, 0, PGKM_MOST_DEVICES);
        std::copy_n(options->devices, request.open.n_devices, request.open.devices);
        request.open.threads = options->threads;
        request.open.most_threads = options->most_threads;
        request.open.memory_limit = options->memory_limit;
        request.open.device_memory_limit = options->device_memory_limit;
        if (!pack_names(options->tuning, &request.open.tuning))
            throw Error(PGKM_UNSUPPORTED, "there is no strategy with so long a name");
        link->ask(request, link->arena().fd());
        *context = reinterpret_cast<PgkmContext *>(link.release());
    });
}

void close(PgkmContext *context)
{
    if (context != nullptr)
        self(context)->tell(Op::close);
    delete self(context);
}

PgkmStatus load(PgkmContext *context, const PgkmPoints *points, PgkmData **data, PgkmError *error)
{
    *data = nullptr;
    return guarded(error, [&] {
        Link &link = *self(context);
        link.check_cancelled();
        auto rows = std::make_unique<LoadedRows>(LoadedRows{link, {points->d, points->element}});
        Request request = request_of(Op::load);
        int file;
        request.load = place_rows(link, *points, &file);
        File copy;
        if (file < 0)
            copy = copy_rows(link, *points, request.load);
        link.ask(request, file < 0 ? copy.get() : file);
        *data = reinterpret_cast<PgkmData *>(rows.release());
    });
}

void unload(PgkmData *data)
{
    if (data != nullptr)
        self(data)->link.tell(Op::unload);
    delete self(data);
}

// Problems with the centroids that a call begins with; parts(i) are the other arrays of problem i.
template <typename Parts>
void describe_clusters(Call &call, const PgkmProblem *problems, Parts &&parts)
{
    call.describe(
        [&](std::size_t i) {
            const PgkmProblem &from = problems[i];
            WireProblem to = wire_range(from, parts(i) | part_centroids | part_if(from.feature_scales, part_scales));
            to.k = from.k;
            to.weight_exponent = from.weight_exponent;
            to.distance_exponent = from.distance_exponent;
            to.tol = from.tol;
            to.restart = from.restart;
            return to;
        },
        [&](std::size_t i, const Arrays &arrays) {
            std::memcpy(arrays.centroids, problems[i].centroids, problems[i].k * call.row_bytes());
            copy_array(arrays.scales, problems[i].feature_scales, call.d());
        });
}

PgkmStatus summarise(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems, std::int32_t want_moments,
                     PgkmSummary *summaries, PgkmError *error)
{
    return guarded(error, [&] {
        Call call(data, Op::summarise, n_problems);
        call.request().want_moments = want_moments;
        call.describe([&](std::size_t i) { return wire_range(problems[i], part_statistics); },
                      [](std::size_t, const Arrays &) {});
        call.run([&](std::size_t i, const WireProblem &problem, const Arrays &arrays) {
            const std::uint64_t d = call.d();
            PgkmSummary &to = summaries[i];
            copy_array(to.min, arrays.statistics, d);
            copy_array(to.max, arrays.statistics + d, d);
            if (want_moments != 0) {
                copy_array(to.mean, arrays.statistics + 2 * d, d);
                copy_array(to.variance, arrays.statistics + 3 * d, d);
            }
            to.max_weight = problem.max_weight;
        });
    });
}

// seed() and fit() write centroids and what follows from them.
void take_centroids(const Call &call, PgkmProblem &to, const WireProblem &problem, const Arrays &arrays)
{
    to.k = std::min(to.k, problem.found_k);
    std::memcpy(to.centroids, arrays.centroids, to.k * call.row_bytes());
}

PgkmStatus seed(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams *params,
                PgkmError *error)
{
    return guarded(error, [&] {
        Call call(data, Op::seed, n_problems);
        PgkmSeedParams &to = call.request().seed; // field by field: what lies between them stays zero
        to.init = params->init;
        to.seed = params->seed;
        to.restart = params->restart;
        describe_clusters(call, problems, [](std::size_t) { return 0u; });
        call.run([&](std::size_t i, const WireProblem &problem, const Arrays &arrays) {
            take_centroids(call, problems[i], problem, arrays);
        });
    });
}

PgkmStatus fit(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params,
               PgkmError *error)
{
    return guarded(error, [&] {
        Call call(data, Op::fit, n_problems);
        call.request().fit = *params;
        describe_clusters(call, problems, [](std::size_t) { return 0u; });
        call.run([&](std::size_t i, const WireProblem &problem, const Arrays &arrays) {
            take_centroids(call, problems[i], problem, arrays);
            problems[i].n_iter = problem.n_iter;
            problems[i].converged = problem.converged;
            problems[i].shift = problem.shift;
        });
    });
}

PgkmStatus assign(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems, PgkmAssignment *assignments,
                  PgkmError *error)
{
    return guarded(error, [&] {
        Call call(data, Op::assign, n_problems);
        describe_clusters(call, problems, [&](std::size_t i) {
            const PgkmAssignment &to = assignments[i];
            return part_if(to.labels, part_labels) | part_if(to.distances, part_distances) |
                   part_if(to.totals, part_totals) | part_if(to.masses, part_masses) | part_if(to.within, part_within) |
                   part_if(to.sizes, part_sizes);
        });
        call.run([&](std::size_t i, const WireProblem &, const Arrays &arrays) {
            const PgkmAssignment &to = assignments[i];
            const auto n = static_cast<std::uint64_t>(problems[i].n_rows),
                       k = static_cast<std::uint64_t>(problems[i].k);
            copy_array(to.labels, arrays.labels, n);
            copy_array(to.distances, arrays.distances, n);
            copy_array(to.totals, arrays.totals, k * call.d());
            copy_array(to.masses, arrays.masses, k);
            copy_array(to.within, arrays.within, k);
            copy_array(to.sizes, arrays.sizes, k);
        });
    });
}

} // namespace

const PgkmBackend *client_backend()
{
    static const PgkmBackend table = {PGKM_BACKEND_ABI,
                                      sizeof(PgkmBackend),
                                      "cuda",
                                      probe,
                                      strategies,
                                      open,
                                      close,
                                      load,
                                      unload,
                                      summarise,
                                      seed,
                                      fit,
                                      assign,
                                      client_moments,
                                      client_em_step,
                                      client_reduce};
    return &table;
}

bool hello(int channel)
{
    const Request request = request_of(Op::hello);
    return send_message(channel, &request, sizeof request);
}

int await_hello(int channel, int milliseconds, PgkmError *error)
{
    Reply reply;
    set_error(error, PGKM_OK, "");
    const Received received = receive_message(channel, &reply, sizeof reply, milliseconds);
    const bool earlier = received == Received::message && reply.magic == magic && reply.serial != 0;
    if (received == Received::nothing || earlier)
        return 0;
    if (received == Received::other || (received == Received::message && reply.magic != magic))
        set_error(error, PGKM_UNAVAILABLE, "the GPU service belongs to another version of pg_kmeans");
    else if (received == Received::message && reply.serial == 0) {
        note_reduce(reply.has_reduce != 0);
        return 1;
    }
    return -1;
}

std::vector<PgkmDevice> devices(int channel, std::chrono::milliseconds limit, PgkmServiceCounts *counts)
{
    using Clock = std::chrono::steady_clock;
    Clock::time_point end = Clock::now() + limit;
    const auto is_late = [](void *until) { return Clock::now() > *static_cast<Clock::time_point *>(until) ? 1 : 0; };
    Link link(channel, {is_late, nullptr, &end}, {}, 0);
    link.arena().grow(sizeof(PgkmServiceCounts) + most_devices * sizeof(PgkmDevice));
    const Reply reply = link.ask(request_of(Op::probe), link.arena().fd());
    *counts = *reinterpret_cast<const PgkmServiceCounts *>(link.arena().get());
    const auto *list = reinterpret_cast<const PgkmDevice *>(link.arena().get() + sizeof(PgkmServiceCounts));
    return {list, list + std::clamp(reply.count, 0, most_devices)};
}

} // namespace pgkm::service
