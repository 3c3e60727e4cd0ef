/*
 * worker.cpp - the background worker that is the GPU service.
 *
 * This process's own thread alone calls the server: it reads settings, heeds signals, and waits. Clients are served by
 * threads of src/service. However the process ends, its threads end before shared memory goes: they read rows there.
 */
#include "pg/service/state.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "pg/compat.h"
#include "pg/service/worker.h"
#include "pg/settings.h"
#include "service/service.h"

extern "C" {
#include "common/file_perm.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

PGDLLEXPORT void pgkm_service_main(Datum preloaded);
}

/* The longest time between two looks at whether the service is idle. */
#define LOOK_MS 1000

/* How long jobs may take to give up when the device has failed. */
#define ANSWER_ROUNDS 20
#define ANSWER_ROUND_US 10000

static volatile sig_atomic_t terminated = false;
static PgkmService *service = NULL;
static ServiceState *state = NULL;

static void on_terminate(SIGNAL_ARGS)
{
    const int saved = errno;

    (void)postgres_signal_arg;
    terminated = true;
    SetLatch(MyLatch);
    errno = saved;
}

/* From a thread of the service: its own thread is to look. */
static void on_failure(void)
{
    kill(getpid(), SIGTERM);
}

static void stop_service(int, Datum)
{
    PgkmService *const ending = service;

    SpinLockAcquire(&state->mutex);
    state->started = 0;
    SpinLockRelease(&state->mutex);
    service = NULL;
    pgkm_service_stop(ending);
    SpinLockAcquire(&state->mutex);
    state->pid = 0;
    SpinLockRelease(&state->mutex);
}

/* The last step of an exit, when shared memory is in order. exit() would run what the driver registered, beside
 * threads of its own. */
static void end_process(int code, Datum)
{
    _exit(code);
}

/* Each connection takes some descriptors. The system's soft limit is for programs that still use
 * select(); this one does not. */
static void allow_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Only one service at a time. The lock goes with the process. */
static bool lock_service(void)
{
    const int fd = open(PGKM_SERVICE_LOCK, O_RDWR | O_CREAT | O_CLOEXEC, pg_file_create_mode);

    if (fd < 0)
        ereport(ERROR, (errcode_for_file_access(), errmsg("could not open file \"%s\": %m", PGKM_SERVICE_LOCK)));
    return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static PgkmServiceLimits current_limits(void)
{
    PgkmSettings settings;
    PgkmServiceLimits limits;

    pgkm_settings_fill(&settings);
    limits.jobs = pgkm_max_gpu_jobs;
    limits.device_memory = settings.gpu_memory_limit;
    return limits;
}

/* Without a device there is no service. Sessions learn that they need not ask again soon. */
static void note_no_device(const PgkmError *error, const char *plugin)
{
    const TimestampTz now = GetCurrentTimestamp();

    SpinLockAcquire(&state->mutex);
    state->no_device = now;
    state->plugin = pgkm_service_plugin_hash(plugin);
    strlcpy(state->reason, error->text, sizeof state->reason);
    SpinLockRelease(&state->mutex);
    ereport(LOG, (errmsg("the pg_kmeans GPU service found no usable device: %s", error->text),
                  errdetail("The plugin is \"%s\".", plugin)));
}

static bool start_service(void)
{
    const PgkmServiceLimits limits = current_limits();
    PgkmSettings settings;
    PgkmError error;

    pgkm_settings_fill(&settings);
    if (pgkm_service_start(settings.plugin, PGKM_SERVICE_SOCKET, &limits, on_failure, &service, &error) != PGKM_OK) {
        note_no_device(&error, settings.plugin);
        return false;
    }

    const TimestampTz now = GetCurrentTimestamp();

    SpinLockAcquire(&state->mutex);
    state->started = now;
    state->no_device = 0;
    SpinLockRelease(&state->mutex);
    ereport(LOG, (errmsg("the pg_kmeans GPU service started")));
    return true;
}

/* True when nobody has asked for anything for so long that the service has ended itself. */
static bool is_idle(const PgkmServiceCounts *counts, int timeout_s)
{
    static uint64 requests = 0;
    static TimestampTz since = 0;
    const TimestampTz now = GetCurrentTimestamp();

    if (since == 0 || counts->requests != requests || counts->all.jobs > 0) {
        requests = counts->requests;
        since = now;
        return false;
    }
    return timeout_s > 0 && TimestampDifferenceExceeds(since, now, timeout_s * 1000) &&
           pgkm_service_close_if_idle(service, requests) != 0;
}

/* The device has failed: the other jobs are told why before their connections end. */
static void let_answer(void)
{
    PgkmServiceCounts counts;

    for (int i = 0; i < ANSWER_ROUNDS; ++i) {
        pg_usleep(ANSWER_ROUND_US);
        pgkm_service_counts(service, &counts);
        if (counts.all.running + counts.all.waiting == 0 && i > 0)
            return;
    }
}

/* Until something ends the service; the process's exit status. */
static int serve(bool preloaded)
{
    for (;;) {
        PgkmServiceCounts counts;

        if (WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_POSTMASTER_DEATH, LOOK_MS, PG_WAIT_EXTENSION) &
            WL_POSTMASTER_DEATH)
            return 1;
        ResetLatch(MyLatch);
        CHECK_FOR_INTERRUPTS();
        if (ConfigReloadPending) {
            ConfigReloadPending = false;
            ProcessConfigFile(PGC_SIGHUP);

            const PgkmServiceLimits limits = current_limits();

            pgkm_service_set_limits(service, &limits);
        }

        const bool ends = terminated; /* before the counts: a failure, which is noted first, sends that signal, too */

        pgkm_service_counts(service, &counts);
        if (counts.failed) {
            let_answer();
            ereport(LOG, (errmsg("the pg_kmeans GPU service ends: %s", counts.failure),
                          errdetail("The next job starts another.")));
            return 1;
        }
        if (ends || is_idle(&counts, preloaded ? 0 : pgkm_gpu_idle_timeout))
            return 0;
    }
}

/* The worker's main function. Its argument: whether it was started with the server. */
void pgkm_service_main(Datum preloaded)
{
    pqsignal(SIGTERM, on_terminate);
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    pqsignal(SIGINT, PG_SIG_IGN); /* there is no statement to cancel */
    on_proc_exit(end_process, (Datum)0);
    BackgroundWorkerUnblockSignals();
    /* Connects to no database, so that it can be seen and ended like any other process of the server. */
    BackgroundWorkerInitializeConnection(NULL, NULL, 0);
    state = pgkm_service_state();
    if (state == NULL || !lock_service())
        proc_exit(0);
    allow_descriptors();
    SpinLockAcquire(&state->mutex);
    state->pid = MyProcPid;
    state->launched = 0;
    SpinLockRelease(&state->mutex);
    before_shmem_exit(stop_service, (Datum)0);
    proc_exit(start_service() ? serve(DatumGetBool(preloaded)) : 0);
}

static void describe_worker(BackgroundWorker *worker, bool preloaded)
{
    memset(worker, 0, sizeof *worker);
    strlcpy(worker->bgw_name, "pg_kmeans GPU service", BGW_MAXLEN);
    strlcpy(worker->bgw_type, "pg_kmeans GPU service", BGW_MAXLEN);
    strlcpy(worker->bgw_library_name, "pg_kmeans", BGW_MAXLEN);
    strlcpy(worker->bgw_function_name, "pgkm_service_main", BGW_MAXLEN);
    worker->bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker->bgw_start_time = BgWorkerStart_ConsistentState;
    worker->bgw_restart_time = BGW_NEVER_RESTART; /* the next job starts it again */
    worker->bgw_main_arg = BoolGetDatum(preloaded);
}

void pgkm_service_register(void)
{
    BackgroundWorker worker;

    describe_worker(&worker, true);
    RegisterBackgroundWorker(&worker);
}

BackgroundWorkerHandle *pgkm_service_launch(void)
{
    BackgroundWorker worker;
    BackgroundWorkerHandle *handle = NULL;

    describe_worker(&worker, false);
    worker.bgw_notify_pid = MyProcPid;
    return RegisterDynamicBackgroundWorker(&worker, &handle) ? handle : NULL;
}
