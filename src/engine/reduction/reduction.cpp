// reduction.cpp - a user's own reduction: its check, its cost, and the one call of a backend that makes it.
#include <algorithm>

#include "backend/reduction_program.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/reduce/reduce.hpp"
#include "engine/job/algorithm.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"
#include "numeric/large_array.hpp"

namespace pgkm {
namespace {

class Objects : public Models {
  public:
    explicit Objects(const PgkmReduction &program) : values_(at(values_in(program))), counts_(at(cells_in(program)))
    {
        reduced.values = values_.data();
        reduced.counts = counts_.data();
        reduced.row = -1;
    }
    void get(std::int64_t, PgkmResult *result) const override
    {
        result->n = n;
        result->d = d;
        result->reduced = &reduced;
    }

    PgkmReduced reduced = {};
    std::int64_t n = 0;
    std::int32_t d = 0;

  private:
    LargeArray<double> values_;
    LargeArray<std::int64_t> counts_;
};

void check_once(const PgkmRequest &request)
{
    if (request.is_checked == 0)
        check_program(request.reduction, request.points.d);
}

void check(const PgkmRequest &request, const PgkmGroup &)
{
    if (request.n_groups > 0 || is_spread(request) || request.points.weights != nullptr)
        throw Error(PGKM_INVALID, "a reduction takes rows of one server, without groups and weights");
    check_once(request);
}

// Estimates are asked for before the check.
bool is_valid(const PgkmRequest &request) noexcept
{
    try {
        check_once(request);
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

// Of a program that was checked.
Work work_of(const PgkmRequest &request, const PgkmGroup &group)
{
    const ProgramWork program = program_work(request.reduction);
    const double rows = static_cast<double>(group.n) * program.row;
    return {time_of(rows), time_of(fixed_operations + rows + program.once), true}; // not tried on a device yet
}

Work work(const PgkmRequest &request, const PgkmGroup &group)
{
    return is_valid(request) ? work_of(request, group) : Work{};
}

double fixed_bytes(const PgkmRequest &, double rows)
{
    return std::min(4e6, 2e5 + 2000.0 * rows);
}

// The results, and what the CPU takes beside them.
double bytes(const PgkmRequest &request, const PgkmGroup &group)
{
    const PgkmReduction &program = request.reduction;
    if (!is_valid(request))
        return 0.0;
    const double results = 8.0 * static_cast<double>(values_in(program) + cells_in(program));
    return results +
           cpu::reduce_bytes(program, request.points.d, group.n, threads_of(request, work_of(request, group)));
}

PgkmStatus supported(const PgkmRequest &, const PgkmBackend &table, PgkmError *error)
{
    return table.reduce(nullptr, nullptr, 0, nullptr, nullptr, error);
}

// Of the rows, of copies that have been filled from them, or of nothing.
void reduce(const PgkmRequest &request, Workplace *place, Monitor &monitor, PgkmReduced &out)
{
    if (place == nullptr) {
        if (request.copies.memory != nullptr) {
            monitor.begin_backend("cpu");
            monitor.enter(PGKM_ITERATING);
        }
        return cpu::finish_copies(open_options(request, 1, monitor.host()), request.reduction, request.copies, out);
    }
    place->session.load_own(request.points);
    monitor.enter(PGKM_ITERATING);
    std::vector<PgkmProblem> all(1);
    all[0].n_rows = request.points.n;
    place->session.run(&PgkmBackend::reduce, all, &request.reduction, &out);
}

// A device notes that a row fails, and leaves it to the CPU to say which one and why. With backend = auto the CPU
// follows anyway. Where the device is forced, the CPU looks for the row here; it throws as the CPU does where one
// fails.
void name_failing_row(const PgkmRequest &request, Monitor &monitor, PgkmReduced &out)
{
    Workplace place({cpu_backend(), -1, 0},
                    open_options(request,
                                 threads_of(request, work_of(request, {nullptr, nullptr, request.points.n, 1})),
                                 monitor.host()));
    reduce(request, &place, monitor, out);
}

std::unique_ptr<Models> fit(const PgkmRequest &request, Workplace *place, Monitor &monitor)
{
    auto objects = std::make_unique<Objects>(request.reduction);
    objects->n = request.points.n;
    objects->d = request.points.d;
    try {
        try {
            reduce(request, place, monitor, objects->reduced);
        } catch (const Error &error) {
            if (error.status() != PGKM_UNSUPPORTED || request.settings.backend != PGKM_BACKEND_CUDA)
                throw;
            name_failing_row(request, monitor, objects->reduced);
            throw;
        }
    } catch (const Error &error) {
        if (error.status() != PGKM_INVALID || objects->reduced.fault == PGKM_FAULT_NONE)
            throw;
    }
    return objects;
}

std::int64_t copies_wanted(const PgkmRequest &request, std::int32_t processes)
{
    // A worker hands on a byte in a good nanosecond, and vectors make four plain operations in one.
    constexpr double operations_per_byte = 8.0;
    const PgkmReduction &program = request.reduction;
    const double row_bytes = request.points.d * (request.points.element == PGKM_FLOAT32 ? 4.0 : 8.0);
    const bool slow = program_work(program).row > operations_per_byte * row_bytes;
    if (cpu::is_ordered(program) || request.settings.backend == PGKM_BACKEND_CUDA ||
        (slow && processes < pgkm_cpu_threads(&request.settings)))
        return 0;
    const auto bytes = static_cast<double>(cpu::copies_bytes(program, processes));
    return bytes < row_bytes * static_cast<double>(request.points.n) ? processes : 0;
}

} // namespace

const Algorithm reductions = {"a reduction", check, work, fixed_bytes, bytes, supported, fit, true};

} // namespace pgkm

PgkmStatus pgkm_reduction_check(PgkmRequest *request, PgkmError *error)
{
    request->is_checked = 0;
    return pgkm::guarded(error, [&] {
        pgkm::check_program(request->reduction, request->points.d);
        request->is_checked = 1;
    });
}

int64_t pgkm_copies_wanted(const PgkmRequest *request, int32_t processes)
{
    std::int64_t wanted = 0;
    PgkmError error;
    pgkm::guarded(&error, [&] { wanted = pgkm::copies_wanted(*request, processes); });
    return wanted;
}

uint64_t pgkm_copies_bytes(const PgkmReduction *reduction, int64_t count)
{
    return static_cast<std::uint64_t>(pgkm::cpu::copies_bytes(*reduction, count));
}

PgkmStatus pgkm_copies_reduce(const PgkmRequest *request, int64_t copy, int measure, PgkmInterrupted interrupted,
                              PgkmError *error)
{
    return pgkm::guarded(error, [&] {
        PgkmHost host = {};
        host.arg = reinterpret_cast<void *>(interrupted);
        if (interrupted != nullptr)
            host.cancelled = [](void *arg) { return reinterpret_cast<PgkmInterrupted>(arg)(); };
        pgkm::cpu::reduce_into(pgkm::open_options(*request, 1, host), request->points, request->reduction,
                               request->copies, copy,
                               measure != 0 ? pgkm::cpu::CopyStep::measure : pgkm::cpu::CopyStep::fill);
    });
}
