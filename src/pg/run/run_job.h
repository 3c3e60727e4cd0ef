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

/* Raises `error` as an ERROR with its SQLSTATE, or that of its status, and with this DETAIL, if any. Never returns. */
[[noreturn]] void pgkm_raise(const PgkmError *error, const char *detail = NULL);

/* For several jobs over the same rows, which lie in this context: what the backends make of them stays from job to job
 * until it goes, and goes before what was in it already. */
PgkmResident *pgkm_run_keep_rows(MemoryContext context);

/* For the engine's functions that can take long in the server's thread: 1 when it has been asked to
 * end its statement. A PgkmInterrupted; its answer becomes an ERROR in pgkm_raise. */
int pgkm_interrupted(void);

/* What the server's thread does while a job runs. */
struct PgkmMeanwhile {
    void *arg;
    void (*feed)(void *arg); /* gives it the next chunk of request->stream, whenever it wants one; or NULL */
    uint64 bytes;            /* that chunks take at most */
};

/*
 * Runs a job to its end, serving interrupts every 10 ms.
 *
 * The caller fills in all of *request but the settings. `context` must be the very context that holds the
 * points and the arrays of the options: contexts below it are gone before its callbacks run, so a holder in
 * a parent would outlive the rows that its threads read.
 *
 * *holder is NULL, or comes from an earlier job in the same context and is used again.
 * `meanwhile`, unless NULL, is done by the server's thread while the job works. Chunks may lie in contexts below.
 *
 * Returns the result, of groups or of a sweep the first. It lives until pgkm_release_job(*holder) or until
 * the context is reset. Passes the engine's notice on as a WARNING, and notes the job for kmeans_last_run().
 *
 * Where rows and estimate exceed pg_kmeans.memory_limit, loaded rows that are not in use are given
 * up first; 54000 before the start when that does not help. Otherwise raises what the
 * engine reports.
 */
const PgkmResult *pgkm_run_job(const PgkmRequest *request, MemoryContext context, PgkmJobHolder **holder,
                               const PgkmMeanwhile *meanwhile);

/* The same for a small calculation beside another job: on the CPU, and not noted. */
const PgkmResult *pgkm_run_aside(const PgkmRequest *request, MemoryContext context, PgkmJobHolder **holder);

/* What the progress view shows of the fits of a request. */
PgkmShownFit pgkm_shown_fit(const PgkmRequest *request);

/* 54000 if a job of this request would be refused for its estimate; and whether it would. Loaded rows that are not in
 * use are given up for it. */
void pgkm_require_memory(const PgkmRequest *request);
bool pgkm_lacks_memory(const PgkmRequest *request);

/* After a job: result `i` as of pgkm_job_result, which lives as long. */
void pgkm_result_of(const PgkmJobHolder *holder, int64 i, PgkmResult *result);

/* Frees the job and its result at once. */
void pgkm_release_job(PgkmJobHolder *holder);

#endif
