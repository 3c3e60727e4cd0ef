/*
 * run_job.h - running the engine's jobs from the server's thread.
 *
 * The engine's functions (engine/api.h) never throw and never call the server; the code
 * here never has a C++ object with a destructor on a frame that can ereport. So an ERROR
 * may leave a function of src/pg at any point: what the engine still holds is freed by a
 * reset callback of the memory context that owns the rows.
 */
#ifndef PGKM_PG_BOUNDARY_H
#define PGKM_PG_BOUNDARY_H

#include "pg/progress.h"
#include "pg/run/memory_account.h"

#include "engine/api.h"

/* Owns one job; allocated in a memory context, whose reset frees the job. */
struct PgkmJobHolder;

/* Raises `error` as an ERROR with the SQLSTATE of its status. Never returns. */
[[noreturn]] void pgkm_raise(const PgkmError *error);

/* For the engine's functions that can take long in the server's thread: 1 when it has been asked to
 * end its statement. A PgkmInterrupted; its answer becomes an ERROR in pgkm_raise. */
int pgkm_interrupted(void);

/* How a kind of job goes, its requests being of a struct of their own: three of the engine's functions
 * pgkm_*_start, pgkm_*_wants_device and pgkm_*_estimate, and, palloc'd, what a request asks for: the
 * subject of a sentence. */
struct PgkmJobKind {
    PgkmStatus (*start)(const void *request, PgkmJob **job, PgkmError *error);
    int (*wants_device)(const void *request);
    uint64 (*estimate)(const void *request);
    char *(*describe)(const void *request);
};

/* The kind of job that these functions of a request's own struct make. */
template <typename Request, PgkmStatus (*start)(const Request *, PgkmJob **, PgkmError *),
          int (*wants_device)(const Request *), uint64_t (*estimate)(const Request *),
          char *(*describe)(const Request *)>
constexpr PgkmJobKind pgkm_job_kind()
{
    return {[](const void *request, PgkmJob **job, PgkmError *error) {
                return start((const Request *) request, job, error);
            },
            [](const void *request) { return wants_device((const Request *) request); },
            [](const void *request) { return (uint64) estimate((const Request *) request); },
            [](const void *request) { return describe((const Request *) request); }};
}

/*
 * Runs a job to its end, serving interrupts every 10 ms, and returns it: the caller fetches
 * the result. `settings` are those of *request, which are filled in here. `context` and *holder
 * as for pgkm_run_fit, and the memory as well.
 */
PgkmJob *pgkm_run_job(const PgkmJobKind *kind, const void *request, PgkmSettings *settings, const PgkmShownFit *shown,
                      MemoryContext context, PgkmJobHolder **holder);

/* Something that need not be done before a fit. */
struct PgkmMeanwhile {
    void (*work)(void *arg);
    void *arg;
};

/*
 * Runs a fit to its end, serving interrupts every 10 ms.
 *
 * The caller fills points, k, options, want_labels and want_distances; the settings are
 * filled in here. `context` must be the very context that holds the points and
 * init_centroids: contexts below it are gone before its callbacks run, so a holder in a
 * parent would outlive the rows that its threads read.
 *
 * *holder is NULL, or comes from an earlier fit in the same context and is used again.
 * `meanwhile`, unless NULL, is done once by the server's thread when the fit has started.
 *
 * Returns the result, which lives until pgkm_release_fit(*holder) or until the context is
 * reset. Passes the engine's notice on as a WARNING.
 *
 * Where rows and estimate exceed pg_kmeans.memory_limit, loaded rows that are not in use are given
 * up first; 54000 before the start when that does not help. Otherwise raises what the
 * engine reports.
 */
const PgkmFitResult *pgkm_run_fit(const PgkmFitRequest *request, MemoryContext context, PgkmJobHolder **holder,
                                  const PgkmMeanwhile *meanwhile);

/* After that: the result of one of the request's groups, which lives as long. */
void pgkm_group_result(PgkmJobHolder *holder, int64 group, PgkmFitResult *result);

/* The job that a holder owns, after a run. */
PgkmJob *pgkm_job_of(PgkmJobHolder *holder);

/* Frees the job and its result at once. */
void pgkm_release_fit(PgkmJobHolder *holder);

/* A WARNING when the result has fewer clusters than k; true when it was given. Callers
 * give it once per query or call, not once per group. */
bool pgkm_warn_clusters(const PgkmFitResult *result, int64 k);

#endif
