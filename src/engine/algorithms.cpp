// algorithms.cpp - the table of what the engine can fit, and the functions of api.h that look into it.
#include "engine/backends/registry.hpp"
#include "engine/job/job.hpp"
#include "numeric/error.hpp"

namespace pgkm {

const Algorithm &algorithm_of(const PgkmRequest &request)
{
    static const Algorithm *const table[] = {&kmeans,     &mixtures, &pca,    &serving,
                                             &reductions, &trees,    &judging}; // in the order of PgkmAlgorithm
    return *table[request.algorithm];
}

} // namespace pgkm

using pgkm::algorithm_of;

int pgkm_wants_device(const PgkmRequest *request)
{
    return pgkm::has_rows(*request) &&
                   pgkm::wants_device(request->settings, pgkm::work_of(algorithm_of(*request), *request))
               ? 1
               : 0;
}

int32_t pgkm_request_threads(const PgkmRequest *request)
{
    return pgkm::has_rows(*request) ? pgkm::threads_of(*request, pgkm::work_of(algorithm_of(*request), *request)) : 1;
}

uint64_t pgkm_request_estimate(const PgkmRequest *request)
{
    return pgkm::estimate_of(algorithm_of(*request), *request);
}

uint64_t pgkm_group_estimate(const PgkmRequest *request, const PgkmGroup *group)
{
    return pgkm::estimate_of(algorithm_of(*request), *request, *group);
}

PgkmStatus pgkm_request_accepts(const PgkmRequest *request, const PgkmGroup *group, PgkmError *error)
{
    return pgkm::guarded(error, [&] { pgkm::check_group(algorithm_of(*request), *request, *group); });
}

PgkmStatus pgkm_job_start(const PgkmRequest *request, PgkmJob **job, PgkmError *error)
{
    *job = nullptr;
    return pgkm::guarded(error, [&] {
        const pgkm::Algorithm &algorithm = algorithm_of(*request);
        // Nothing interrupts the caller, so it waits for nobody: not for other servers either.
        const bool in_caller = !pgkm::is_spread(*request) && pgkm::is_brief(pgkm::work_of(algorithm, *request)) &&
                               pgkm_wants_device(request) == 0;
        *job = pgkm::start_job(algorithm, *request, in_caller);
    });
}
