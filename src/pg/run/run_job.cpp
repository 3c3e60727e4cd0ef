/*
 * run_job.cpp - running the engine's jobs from the server's thread.
 */
#include "pg/run/run_job.h"

#include "pg/compat.h"
#include "pg/run/server_limits.h"
#include "pg/service/session.h"
#include "pg/settings.h"
#include "pg/values/datum.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

extern "C" {
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"
}

/* How long the server's thread sleeps between two looks at its interrupts. */
#define INTERRUPT_SLICE_MS 10

struct PgkmJobHolder {
    MemoryContextCallback on_reset;
    PgkmJob *job; /* NULL once freed */
    int channel;  /* its connection to the GPU service; 0: none */
    bool large;   /* it is expected to take much memory */
    /* What counts for all sessions while it runs. */
    uint64 held; /* bytes */
    int32 threads;
    PgkmResult result;
};

static int sqlstate_of(const PgkmError *error)
{
    const char *const state = error->sqlstate;

    if (strlen(state) == 5)
        return MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4]);
    switch (error->status) {
    case PGKM_INVALID:
        return ERRCODE_INVALID_PARAMETER_VALUE;
    case PGKM_OUT_OF_MEMORY:
        return ERRCODE_OUT_OF_MEMORY;
    case PGKM_LIMIT:
        return ERRCODE_PROGRAM_LIMIT_EXCEEDED;
    case PGKM_UNAVAILABLE:
    case PGKM_UNSUPPORTED:
        return ERRCODE_FEATURE_NOT_SUPPORTED;
    case PGKM_DEVICE_ERROR:
        return ERRCODE_SYSTEM_ERROR;
    case PGKM_CANCELLED:
        return ERRCODE_QUERY_CANCELED;
    case PGKM_NODE_FAILED:
        return ERRCODE_CONNECTION_FAILURE;
    case PGKM_OK:
    case PGKM_INTERNAL:
        break;
    }
    return ERRCODE_INTERNAL_ERROR;
}

void pgkm_raise(const PgkmError *error, const char *detail)
{
    /* A cancel has a cause of its own (a request, a timeout, a shutdown): let the server name it. */
    if (error->status == PGKM_CANCELLED)
        CHECK_FOR_INTERRUPTS();
    ereport(ERROR,
            (errcode(sqlstate_of(error)), errmsg("%s", error->text), detail == NULL ? 0 : errdetail("%s", detail)));
    pg_unreachable();
}

int pgkm_interrupted(void)
{
    return InterruptPending && INTERRUPTS_CAN_BE_PROCESSED() && (QueryCancelPending || ProcDiePending);
}

/* What malloc() keeps of a job of so many bytes is given back to the system. */
#define LARGE_JOB_BYTES ((uint64)32 * 1024 * 1024)

/* An estimate of more is of a job that fails. */
#define MOST_ESTIMATE ((uint64)1 << 45)

/* An estimate may be short by some bytes. */
#define ESTIMATE_SLACK ((uint64)1024 * 1024)

/* For each value, about, while the optimum is sought. */
#define OPTIMUM_BYTES 200

/* What others may have once the job has ended. */
static void give_back(PgkmJobHolder *holder)
{
    const int channel = holder->channel;
    const int32 threads = holder->threads;

    holder->channel = 0;
    holder->threads = 0;
    pgkm_service_release(channel);
    (void)pgkm_server_threads(-threads);
    pgkm_memory_hold_work(&holder->held, -(int64)holder->held);
}

void pgkm_release_job(PgkmJobHolder *holder)
{
    PgkmJob *const job = holder->job;

    holder->job = NULL;
    pgkm_job_free(job);
    give_back(holder);
#ifdef __GLIBC__
    if (job != NULL && holder->large)
        (void)malloc_trim(0);
#endif
}

static void free_resident(void *resident)
{
    const int channel = pgkm_resident_channel((PgkmResident *)resident);

    pgkm_resident_free((PgkmResident *)resident);
    pgkm_service_release(channel);
}

PgkmResident *pgkm_run_keep_rows(MemoryContext context)
{
    MemoryContextCallback *const on_reset =
        (MemoryContextCallback *)MemoryContextAllocZero(context, sizeof(MemoryContextCallback));

    on_reset->func = free_resident;
    on_reset->arg = pgkm_resident_create();
    if (on_reset->arg == NULL)
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
    MemoryContextRegisterResetCallback(context, on_reset);
    return (PgkmResident *)on_reset->arg;
}

/* A FATAL error ends the process without resetting memory contexts; threads must not run on
 * while the process takes itself apart. */
static void stop_jobs_at_exit(int, Datum)
{
    pgkm_stop_all_jobs();
}

/* Not done in _PG_init: that may run in the postmaster, whose children drop its exit hooks. */
static void register_exit_hook(void)
{
    static bool registered = false;

    if (!registered)
        before_shmem_exit(stop_jobs_at_exit, (Datum)0);
    registered = true;
}

/* What a request asks for, palloc'd: the subject of a sentence. */
static char *describe(const PgkmRequest *request)
{
    const int64 k = Max(request->k, request->k_last);
    const char *const rows = pgkm_counted(request->points.n, "row");
    const char *const features = pgkm_counted(request->points.d, "feature");

    switch (request->algorithm) {
    case PGKM_KMEANS:
        return psprintf("Clustering %s of %s into %s", rows, features, pgkm_counted(k, "cluster"));
    case PGKM_TREE:
        return psprintf("A tree of clusters of %s of %s", rows, features);
    case PGKM_JUDGEMENT:
        return psprintf("The quality of labels of %s of %s", rows, features);
    case PGKM_MIXTURE:
        return psprintf("Fitting a mixture of %s to %s of %s", pgkm_counted(k, "component"), rows, features);
    case PGKM_SHARE:
        return psprintf("Work of %s of %s for another server", rows, features);
    case PGKM_REDUCTION:
        return psprintf("A reduction of %s of %s", rows, pgkm_counted(request->points.d, "value"));
    case PGKM_PCA:
        break;
    }
    return psprintf("PCA of %s of %s", rows, features);
}

PgkmShownFit pgkm_shown_fit(const PgkmRequest *request)
{
    switch (request->algorithm) {
    case PGKM_KMEANS:
    case PGKM_TREE:
        return {request->kmeans.max_iter, request->kmeans.n_init,
                request->algorithm == PGKM_KMEANS && request->k_last == 0 && request->n_groups == 0 ? request->k : 0};
    case PGKM_MIXTURE:
        return {request->mixture.max_iter, request->mixture.n_init, 0};
    case PGKM_SHARE:
    case PGKM_PCA:
    case PGKM_REDUCTION:
    case PGKM_JUDGEMENT:
        break;
    }
    return {0, 0, 0};
}

/* What the engine is expected to take beside the rows. */
static uint64 estimate_of(const PgkmRequest *request)
{
    PgkmRequest full = *request;

    pgkm_settings_fill(&full.settings);
    return pgkm_request_estimate(&full);
}

static bool lacks_memory(uint64 bytes)
{
    pgkm_memory_make_room(bytes);
    return bytes > pgkm_memory_available();
}

static void require_memory(const PgkmRequest *request, uint64 bytes)
{
    if (lacks_memory(bytes))
        pgkm_raise_working_memory(describe(request), bytes);
}

bool pgkm_lacks_memory(const PgkmRequest *request)
{
    return lacks_memory(estimate_of(request));
}

void pgkm_require_memory(const PgkmRequest *request)
{
    require_memory(request, estimate_of(request));
}

/*
 * An interrupt ends the job before it becomes an ERROR. Until the transaction's locks are gone a server
 * before version 16 repeats a conflict with recovery every 5 ms, and one that comes when the ERROR has
 * been raised ends the session: what takes long is not to be left for the abort.
 */
static void heed_interrupts(PgkmJob *job)
{
    if (pgkm_interrupted())
        pgkm_job_stop(job);
    CHECK_FOR_INTERRUPTS();
}

/* Waits a moment for what the job needs. */
static void serve_job(PgkmStream *stream, const PgkmMeanwhile *meanwhile, uint32 event)
{
    pgstat_report_wait_start(event);

    const bool wanted = pgkm_stream_wait(stream, INTERRUPT_SLICE_MS) != 0;

    pgstat_report_wait_end();
    if (wanted)
        meanwhile->feed(meanwhile->arg);
}

static bool wait_a_moment(PgkmJob *job, bool fed, uint32 event)
{
    pgstat_report_wait_start(event);

    const bool ended = pgkm_job_wait(job, fed ? 0 : INTERRUPT_SLICE_MS) != 0;

    pgstat_report_wait_end();
    return ended;
}

/* Until the job's end; every way out of here but the normal one is an ERROR. The job ends before that, for it may be
 * at work on a chunk. */
static void wait_for_job(PgkmJob *job, const PgkmRequest *request, const PgkmMeanwhile *meanwhile)
{
    const PgkmShownFit shown = pgkm_shown_fit(request);
    const uint32 event = pgkm_wait_event("KmeansFit");
    PgkmJobProgress progress;

    PG_TRY();
    {
        while (!wait_a_moment(job, request->stream != NULL, event)) {
            heed_interrupts(job);
            pgkm_job_progress(job, &progress);
            pgkm_progress_fit(&shown, &progress);
            if (request->stream != NULL)
                serve_job(request->stream, meanwhile, event);
        }
        CHECK_FOR_INTERRUPTS();
    }
    PG_CATCH();
    {
        pgkm_job_stop(job);
        PG_RE_THROW();
    }
    PG_END_TRY();
}

/* Rows that stay with the service have a connection of their own, as long as it holds. */
static void connect_to_service(PgkmSettings *settings, PgkmResident *resident, PgkmJobHolder *owner)
{
    const int kept = pgkm_resident_channel(resident);

    if (kept != 0 && pgkm_service_answers(kept)) {
        settings->channel = kept;
        return;
    }
    if (kept != 0) {
        pgkm_resident_drop(resident);
        pgkm_resident_set_channel(resident, 0);
        pgkm_service_release(kept);
    }
    pgkm_service_acquire(settings);
    if (resident != NULL)
        pgkm_resident_set_channel(resident, settings->channel);
    else
        owner->channel = settings->channel;
}

/* The holder for the next job; its last one is freed. */
static PgkmJobHolder *empty_holder(MemoryContext context, PgkmJobHolder **holder)
{
    register_exit_hook();
    if (*holder == NULL) {
        *holder = (PgkmJobHolder *)MemoryContextAllocZero(context, sizeof(PgkmJobHolder));
        (*holder)->on_reset.func = [](void *owner) { pgkm_release_job((PgkmJobHolder *)owner); };
        (*holder)->on_reset.arg = *holder;
        MemoryContextRegisterResetCallback(context, &(*holder)->on_reset);
    }
    pgkm_release_job(*holder);
    return *holder;
}

/* What may make the work on the rows faster: another form of them; of the exact optimum, which no estimate knows, sums
 * for each of their values. */
static uint64 useful_bytes(const PgkmRequest *request)
{
    const bool is_optimal = request->algorithm == PGKM_KMEANS && request->kmeans.init == PGKM_INIT_OPTIMAL;
    const PgkmPoints *const points = &request->points;
    uint64 n = (uint64)points->n;

    for (int64 i = 0; i < request->n_groups; ++i)
        n = Max(n, (uint64)request->groups[i].n);
    return n * ((uint64)points->d * (points->element == PGKM_FLOAT32 ? sizeof(float) : sizeof(double)) +
                (is_optimal ? OPTIMUM_BYTES : 0));
}

/* Counts the job's memory for all sessions. Where they have a limit, the engine keeps to the estimate, and to what is
 * useful beyond that and free. */
static void hold_work(PgkmRequest *request, PgkmJobHolder *owner, uint64 estimate)
{
    pgkm_memory_hold_work(&owner->held, (int64)Min(estimate, MOST_ESTIMATE));
    if (pgkm_max_memory() == 0)
        return;

    const uint64 more = request->algorithm == PGKM_SHARE ? 0 : Min(useful_bytes(request), pgkm_server_room());

    if (pgkm_server_hold((int64)more))
        owner->held += more;
    request->settings.memory_limit = Min(request->settings.memory_limit, owner->held + ESTIMATE_SLACK);
}

/* All that comes before the start; fills in the settings of *request. */
static PgkmJobHolder *prepare(PgkmRequest *request, MemoryContext context, PgkmJobHolder **holder, bool aside,
                              uint64 chunk_bytes)
{
    PgkmSettings *const settings = &request->settings;

    pgkm_settings_fill(settings);
    if (aside)
        settings->backend = PGKM_BACKEND_CPU;

    const uint64 estimate = pgkm_request_estimate(request);

    /* The engine holds its own allocations to what is left. */
    require_memory(request, estimate + chunk_bytes);
    settings->memory_limit = pgkm_memory_limit() == 0 ? 0 : pgkm_memory_available() - chunk_bytes;

    PgkmJobHolder *const owner = empty_holder(context, holder);

    owner->large = estimate >= LARGE_JOB_BYTES;
    hold_work(request, owner, estimate);
    settings->device_ready = pgkm_service_runs();
    if (pgkm_wants_device(request))
        connect_to_service(settings, request->resident, owner);
    settings->cpu_threads = owner->threads = pgkm_server_threads(pgkm_request_threads(request));
    return owner;
}

/* For kmeans_last_run(). */
static void note_fit(const PgkmRequest *request, const PgkmResult *result, PgkmJob *job)
{
    PgkmFitReport report;

    memset(&report, 0, sizeof report);
    report.groups = Max(request->n_groups, (int64_t)1);
    report.fits = request->k_last == 0 ? report.groups : pgkm_sweep_last(request) - request->k + 1;
    report.rows = request->n_groups == 0 ? result->n : 0;
    for (int64 i = 0; i < request->n_groups; ++i)
        report.rows += request->groups[i].n;
    report.features = result->d;
    report.clusters = result->k;
    report.n_iter = result->n_iter;
    report.n_init = pgkm_shown_fit(request).n_init;
    pgkm_run_note_fit(&report, job);
}

static const PgkmResult *run(const PgkmRequest *request, MemoryContext context, PgkmJobHolder **holder,
                             const PgkmMeanwhile *meanwhile, bool aside)
{
    PgkmRequest full = *request;
    PgkmJobHolder *const owner = prepare(&full, context, holder, aside, meanwhile == NULL ? 0 : meanwhile->bytes);
    PgkmError error;

    if (pgkm_job_start(&full, &owner->job, &error) != PGKM_OK)
        pgkm_raise(&error);
    wait_for_job(owner->job, &full, meanwhile);
    if (pgkm_job_result(owner->job, 0, &owner->result, &error) != PGKM_OK) {
        pgkm_release_job(owner);
        pgkm_raise(&error);
    }
    /* The result may be kept for long, as those of many groups are. What the CPU has made of rows that stay would be
     * held beyond the job's end. */
    if (pgkm_max_memory() != 0 && request->resident != NULL && request->algorithm != PGKM_SHARE &&
        owner->result.backend != NULL && strcmp(owner->result.backend, "cpu") == 0)
        pgkm_resident_drop(request->resident);
    give_back(owner);
    if (request->algorithm != PGKM_SHARE && !aside)
        note_fit(&full, &owner->result, owner->job);
    if (owner->result.notice[0] != '\0')
        ereport(WARNING, (errmsg("%s", owner->result.notice)));
    return &owner->result;
}

const PgkmResult *pgkm_run_job(const PgkmRequest *request, MemoryContext context, PgkmJobHolder **holder,
                               const PgkmMeanwhile *meanwhile)
{
    return run(request, context, holder, meanwhile, false);
}

const PgkmResult *pgkm_run_aside(const PgkmRequest *request, MemoryContext context, PgkmJobHolder **holder)
{
    return run(request, context, holder, NULL, true);
}

void pgkm_result_of(const PgkmJobHolder *holder, int64 i, PgkmResult *result)
{
    PgkmError error;

    if (pgkm_job_result(holder->job, i, result, &error) != PGKM_OK)
        pgkm_raise(&error);
}
