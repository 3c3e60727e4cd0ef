// reduction.cpp - a user's own reduction: its check, its cost, and the one call of a backend that makes it.
#include <algorithm>

#include "backend/reduction_program.hpp"
#include "cpu/cpu_backend.hpp"
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

void reduce_on(Session &session, const PgkmRequest &request, Monitor &monitor, PgkmReduced &out)
{
    session.load_own(request.points);
    monitor.enter(PGKM_ITERATING);
    std::vector<PgkmProblem> all(1);
    all[0].n_rows = request.points.n;
    session.run(&PgkmBackend::reduce, all, &request.reduction, &out);
}

// A device notes that a row fails, and leaves it to the CPU to say which one and why. With backend = auto the CPU
// follows anyway. Where the device is forced, the CPU looks for the row here; it throws as the CPU does where one
// fails.
void reduce(const PgkmRequest &request, Workplace &place, Monitor &monitor, PgkmReduced &out)
{
    try {
        reduce_on(place.session, request, monitor, out);
    } catch (const Error &error) {
        if (error.status() != PGKM_UNSUPPORTED || request.settings.backend != PGKM_BACKEND_CUDA)
            throw;
        Session cpu(place.session.cpu());
        reduce_on(cpu, request, monitor, out);
        throw;
    }
}

std::unique_ptr<Models> fit(const PgkmRequest &request, Workplace *place, Monitor &monitor)
{
    auto objects = std::make_unique<Objects>(request.reduction);
    objects->n = request.points.n;
    objects->d = request.points.d;
    try {
        if (place != nullptr)
            reduce(request, *place, monitor, objects->reduced);
        else
            cpu::reduce_nothing(open_options(request, 1, monitor.host()), request.reduction, objects->reduced);
    } catch (const Error &error) {
        if (error.status() != PGKM_INVALID || objects->reduced.fault == PGKM_FAULT_NONE)
            throw;
    }
    return objects;
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
