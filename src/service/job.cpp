#include "service/job.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "engine/error.hpp"

namespace pgkm::service {
namespace {

// Calls of less work than this (rows x features x clusters), about a millisecond of a device,
// never wait for a long one's end.
constexpr double small_work = 1e9;

// Beside the rows a fit keeps distances, labels, an order of the rows, and copies of rows and
// centroids in the layout of its kernels.
std::uint64_t memory_for(const PgkmPoints &points, std::uint64_t bytes)
{
    constexpr std::uint64_t per_row = 48, per_job = std::uint64_t{64} << 20;
    return 2 * bytes + per_row * static_cast<std::uint64_t>(points.n) + per_job;
}

std::uint64_t bytes_of(const PgkmPoints &points)
{
    const Shape shape = {points.d, points.element};
    return static_cast<std::uint64_t>(points.n) * static_cast<std::uint64_t>(points.d) * shape.element_bytes() +
           (points.weights == nullptr ? 0 : static_cast<std::uint64_t>(points.n) * sizeof(double));
}

std::int32_t choose_device(const std::vector<PgkmDevice> &devices, std::int32_t wanted)
{
    std::string why = devices.empty() ? "no device was found" : "there is no device " + std::to_string(wanted);
    for (const PgkmDevice &device : devices) {
        if (wanted >= 0 && device.ordinal != wanted)
            continue;
        if (device.usable != 0)
            return device.ordinal;
        why = device.reason;
    }
    throw Error(PGKM_UNAVAILABLE, "no usable CUDA device: " + why);
}

const char *name_or_null(char (&name)[name_bytes])
{
    name[name_bytes - 1] = '\0';
    return name[0] == '\0' ? nullptr : name;
}

int cancelled_callback(void *job)
{
    return static_cast<const Job *>(job)->is_cancelled() ? 1 : 0;
}

void progress_callback(void *job, const PgkmProgress *progress)
{
    static_cast<const Job *>(job)->arena().write_progress(*progress);
}

[[noreturn]] void refuse(const char *what)
{
    throw Error(PGKM_INVALID, std::string("the GPU service got ") + what);
}

} // namespace

// The structs of one call, copied out of the arena, and the addresses in it.
struct Job::Problems {
    std::vector<WireProblem> wires;
    std::vector<Arrays> arrays;
    std::vector<PgkmProblem> problems;
    std::vector<PgkmSummary> summaries;      // of summarise
    std::vector<PgkmAssignment> assignments; // of assign
    double work = 0;

    void write_back(WireProblem *to) const
    {
        for (std::size_t i = 0; i < wires.size(); ++i) {
            to[i].found_k = problems[i].k;
            to[i].n_iter = problems[i].n_iter;
            to[i].converged = problems[i].converged;
            to[i].shift = problems[i].shift;
            to[i].max_weight = summaries.empty() ? 1.0 : summaries[i].max_weight;
        }
    }
};

Job::Job(Shared &shared, const std::atomic<bool> &hung_up, const OpenRequest &request, File arena)
    : shared_(shared), hung_up_(hung_up), options_(request), arena_(std::move(arena))
{
    options_.device = choose_device(shared_.devices, request.device);
    open_backend(request.device_memory_limit);
    ++shared_.jobs;
}

Job::~Job()
{
    unload();
    shared_.table.close(context_);
    --shared_.jobs;
}

bool Job::is_cancelled() const
{
    return hung_up_.load(std::memory_order_relaxed) || shared_.has_failed() ||
           arena_.control().cancelled.load(std::memory_order_relaxed) != 0;
}

void Job::raise(PgkmStatus status, const PgkmError &error)
{
    if (status == PGKM_DEVICE_ERROR)
        shared_.fail(error.text);
    else if (status == PGKM_CANCELLED && shared_.has_failed() && arena_.control().cancelled.load() == 0)
        throw Error(PGKM_DEVICE_ERROR, shared_.failure());
    throw Error(status, error.text);
}

void Job::open_backend(std::uint64_t device_memory)
{
    shared_.table.close(context_);
    context_ = nullptr;
    PgkmOpen open = {};
    open.struct_size = sizeof open;
    open.device = options_.device;
    open.threads = options_.threads;
    open.memory_limit = options_.memory_limit;
    open.device_memory_limit = device_memory;
    open.tuning = {name_or_null(options_.tuning.assignment), name_or_null(options_.tuning.execution),
                   name_or_null(options_.tuning.feature_sum), name_or_null(options_.tuning.mass_sum),
                   name_or_null(options_.tuning.instruction_set)};
    open.host = {cancelled_callback, progress_callback, this};
    PgkmError error = {};
    const PgkmStatus status = shared_.table.open(&open, &context_, &error);
    if (status != PGKM_OK)
        raise(status, error);
}

// Runs a call of the table when it is this job's turn.
template <typename Body>
PgkmStatus Job::in_turn(double work, PgkmError *error, Body &&body)
{
    const bool small = work < small_work;
    const PgkmStatus waited =
        guarded(error, [&] { shared_.scheduler.begin(small, [this] { return is_cancelled(); }); });
    if (waited != PGKM_OK)
        return waited;
    const PgkmStatus status = body();
    shared_.scheduler.end(small);
    shared_.finished.fetch_add(1, std::memory_order_relaxed);
    return status;
}

void Job::map_rows(const LoadRequest &request, File passed)
{
    PgkmPoints points = {};
    points.element = request.element == PGKM_FLOAT32 ? PGKM_FLOAT32 : PGKM_FLOAT64;
    points.n = request.n;
    points.d = request.d;
    std::uint64_t cells = 0, values = 0;
    const std::size_t size = Shape{points.d, points.element}.element_bytes();
    const bool overflow =
        request.n < 1 || request.d < 1 ||
        __builtin_mul_overflow(static_cast<std::uint64_t>(request.n), static_cast<std::uint64_t>(request.d), &cells) ||
        __builtin_mul_overflow(cells, size, &values) || values > INT64_MAX / 2;
    const std::uint64_t weights =
        request.weighted != 0 && !overflow ? static_cast<std::uint64_t>(request.n) * sizeof(double) : 0;
    const auto outside = [&](std::uint64_t begin, std::uint64_t bytes) {
        return begin % 8 != 0 || begin > request.bytes || bytes > request.bytes - begin;
    };
    if (overflow || outside(request.values, values) || (weights != 0 && outside(request.weights, weights)))
        refuse("rows that lie outside their segment");
    const char *base;
    if (request.segment != 0) {
        segment_ = shared_.host.attach(request.segment);
        if (segment_.bytes < request.bytes)
            refuse("a segment that is shorter than the client says");
        base = static_cast<const char *>(segment_.base);
    } else {
        if (!passed.is_open() || !is_safe(passed.get(), request.bytes))
            refuse("no rows");
        copy_ = Mapping(passed.get(), 0, request.bytes);
        base = copy_.get();
    }
    points.values = base + request.values;
    points.weights = weights == 0 ? nullptr : reinterpret_cast<const double *>(base + request.weights);
    points_ = points;
}

std::uint64_t Job::most_memory() const
{
    return options_.device_memory_limit == 0 ? UINT64_MAX : options_.device_memory_limit;
}

// The rows onto the device, with so much memory for them and their fits, or what can be had.
void Job::bring_rows(std::uint64_t device_memory)
{
    lease_ = shared_.scheduler.lease(std::min(device_memory, most_memory()), [this] { return is_cancelled(); });
    open_backend(lease_.bytes);
    PgkmError error = {};
    const PgkmStatus status = in_turn(static_cast<double>(bytes_of(points_)), &error,
                                      [&] { return shared_.table.load(context_, &points_, &data_, &error); });
    if (status != PGKM_OK)
        raise(status, error);
}

void Job::drop_rows()
{
    shared_.table.unload(data_);
    data_ = nullptr;
    shared_.scheduler.give_back(lease_);
    lease_ = {0, false};
}

void Job::load(const LoadRequest &request, File passed)
{
    unload();
    map_rows(request, std::move(passed));
    try {
        bring_rows(memory_for(points_, bytes_of(points_)));
    } catch (...) {
        unload();
        throw;
    }
}

void Job::unload()
{
    drop_rows();
    points_ = {};
    copy_ = Mapping();
    if (segment_.handle != 0)
        shared_.host.detach(segment_);
    segment_ = {};
}

Job::Problems Job::read_problems(Op op, const CallRequest &request)
{
    Problems all;
    if (request.n_problems < 1 || static_cast<std::uint64_t>(request.n_problems) > arena_.bytes() / sizeof(WireProblem))
        refuse("a number of problems that cannot be");
    const auto count = static_cast<std::size_t>(request.n_problems);
    const auto *in_arena = reinterpret_cast<const WireProblem *>(arena_.get());
    all.wires.assign(in_arena, in_arena + count);
    const Shape shape = {points_.d, points_.element};
    Walk sizes(shape, request.n_problems, nullptr);
    for (WireProblem &wire : all.wires) {
        const std::uint32_t needed = op == Op::summarise ? part_statistics : part_centroids;
        if (wire.n_rows < 1 || wire.first_row < 0 || wire.first_row > points_.n - wire.n_rows ||
            wire.k < (op == Op::summarise ? 0 : 1) || (wire.parts & needed) == 0)
            refuse("a problem that cannot be");
        sizes.next(wire);
        all.work += static_cast<double>(wire.n_rows) * points_.d * std::max(1, wire.k);
    }
    if (sizes.end() > arena_.bytes())
        refuse("an arena that is too short");
    Walk walk(shape, request.n_problems, arena_.get());
    for (const WireProblem &wire : all.wires) {
        const Arrays at = walk.next(wire);
        PgkmProblem problem = {};
        problem.first_row = wire.first_row;
        problem.n_rows = wire.n_rows;
        problem.k = wire.k;
        problem.centroids = at.centroids;
        problem.feature_exponent = at.exponents;
        problem.weight_exponent = wire.weight_exponent;
        problem.distance_exponent = wire.distance_exponent;
        problem.tol = wire.tol;
        all.problems.push_back(problem);
        all.arrays.push_back(at);
        double *statistics = at.statistics;
        if (op == Op::summarise)
            all.summaries.push_back({statistics, statistics + points_.d, statistics + 2 * std::int64_t{points_.d},
                                     statistics + 3 * std::int64_t{points_.d}, statistics + 4 * std::int64_t{points_.d},
                                     1.0});
        if (op == Op::assign)
            all.assignments.push_back({at.labels, at.distances, at.totals, at.masses, at.within, at.sizes});
    }
    return all;
}

PgkmStatus Job::run(Op op, const CallRequest &request, Problems &all, PgkmError *error)
{
    const PgkmBackend &table = shared_.table;
    const std::int64_t n = request.n_problems;
    return in_turn(all.work, error, [&] {
        switch (op) {
        case Op::summarise:
            return table.summarise(data_, all.problems.data(), n, request.want_moments, all.summaries.data(), error);
        case Op::seed:
            return table.seed(data_, all.problems.data(), n, &request.seed, error);
        case Op::fit:
            return table.fit(data_, all.problems.data(), n, &request.fit, error);
        default:
            return table.assign(data_, all.problems.data(), n, all.assignments.data(), error);
        }
    });
}

void Job::call(Op op, const CallRequest &request, std::uint64_t arena_bytes)
{
    if (points_.n == 0)
        refuse("a call before any rows");
    arena_.follow(arena_bytes);
    Problems all = read_problems(op, request);
    PgkmError error = {};
    const PgkmStatus status = run(op, request, all, &error);
    if (status != PGKM_OK)
        raise(status, error);
    all.write_back(reinterpret_cast<WireProblem *>(arena_.get()));
}

} // namespace pgkm::service
