/*
 * progress.cpp - pg_stat_progress_kmeans and kmeans_last_run(): how far the fits of all sessions are, and
 * how this session's last one went.
 */
#include "pg/progress.h"

extern "C" {
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/acl.h"
#include "utils/backend_progress.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_progress);
PG_FUNCTION_INFO_V1(pgkm_kmeans_last_run);
}

/* The server's own views ask for numbers that count from 1, so none asks for this one. */
static const ProgressCommandType PROGRESS_COMMAND_KMEANS = (ProgressCommandType) 0x6B6D;

enum ProgressPhase {
    PHASE_STARTING,
    PHASE_SCANNING,
    PHASE_LOADING,
    PHASE_SEEDING,
    PHASE_ITERATING,
    PHASE_LABELLING,
    PHASE_WRITING,
    PHASE_COUNT
};

static const char *const phase_names[PHASE_COUNT] = {"starting",  "scanning rows", "loading", "seeding",
                                                     "iterating", "labelling",     "writing"};

/* The numbers of an entry, as far as they are used. */
enum ProgressParam {
    PARAM_PHASE,
    PARAM_ROWS_SCANNED,
    PARAM_ROWS_EXPECTED,
    PARAM_BYTES_MOVED,
    PARAM_ITERATION,
    PARAM_MAX_ITER,
    PARAM_RESTART,
    PARAM_N_INIT,
    PARAM_SHIFT,   /* the bits of a float64 */
    PARAM_BACKEND, /* its place in backend_names */
    PARAM_COUNT
};

static const char *const backend_names[] = {NULL, "cpu", "cuda"};

static ProgressPhase phase_of(PgkmPhase phase)
{
    static const ProgressPhase phases[PGKM_PHASES] = {PHASE_STARTING, PHASE_LOADING, PHASE_SEEDING, PHASE_ITERATING,
                                                      PHASE_LABELLING};

    return phases[phase];
}

static int backend_number(const char *name)
{
    for (int i = 1; name != NULL && i < (int) lengthof(backend_names); ++i)
        if (strcmp(name, backend_names[i]) == 0)
            return i;
    return 0;
}

/* A parallel worker that reads for a session shows nothing itself. */
static bool is_shown(void)
{
    return MyBEEntry != NULL && MyBEEntry->st_progress_command == PROGRESS_COMMAND_KMEANS;
}

static void show(int count, const int *params, const int64 *values)
{
    if (is_shown())
        pgstat_progress_update_multi_param(count, params, values);
}

/* Keeps what is shown until now in *outer. */
static void start_showing(PgkmProgressEntry *outer, Oid relation)
{
    outer->command = PROGRESS_COMMAND_INVALID;
    if (MyBEEntry != NULL) {
        outer->command = MyBEEntry->st_progress_command;
        outer->target = MyBEEntry->st_progress_command_target;
        memcpy(outer->params, MyBEEntry->st_progress_param, sizeof outer->params);
    }
    pgstat_progress_start_command(PROGRESS_COMMAND_KMEANS, relation);
}

/* Shows that again. */
static void stop_showing(const PgkmProgressEntry *outer)
{
    int params[PGSTAT_NUM_PROGRESS_PARAM];

    pgstat_progress_end_command();
    if (outer->command == PROGRESS_COMMAND_INVALID)
        return;
    for (int i = 0; i < PGSTAT_NUM_PROGRESS_PARAM; ++i)
        params[i] = i;
    pgstat_progress_start_command(outer->command, outer->target);
    pgstat_progress_update_multi_param(PGSTAT_NUM_PROGRESS_PARAM, params, outer->params);
}

void pgkm_progress_scan(int64 rows, int64 expected)
{
    static const int params[] = {PARAM_PHASE, PARAM_ROWS_SCANNED, PARAM_ROWS_EXPECTED};
    const int64      values[] = {PHASE_SCANNING, rows, expected};

    show(lengthof(params), params, values);
}

void pgkm_progress_fit(const PgkmShownFit *shown, const PgkmJobProgress *job)
{
    static const int params[] = {PARAM_PHASE,   PARAM_BYTES_MOVED, PARAM_ITERATION, PARAM_MAX_ITER,
                                 PARAM_RESTART, PARAM_N_INIT,      PARAM_SHIFT,     PARAM_BACKEND};
    int64            shift;

    memcpy(&shift, &job->shift, sizeof shift);

    const int64 values[] = {phase_of(job->phase), (int64) job->bytes_moved, job->iteration,
                            shown->max_iter,      job->restart + 1,         shown->n_init,
                            shift,                backend_number(job->backend)};

    show(lengthof(params), params, values);
}

void pgkm_progress_writing(void)
{
    static const int params[] = {PARAM_PHASE};
    const int64      values[] = {PHASE_WRITING};

    show(lengthof(params), params, values);
}

enum ProgressColumn {
    PROGRESS_PID,
    PROGRESS_DATID,
    PROGRESS_RELID,
    PROGRESS_PHASE,
    PROGRESS_ROWS_SCANNED,
    PROGRESS_ROWS_EXPECTED,
    PROGRESS_BYTES_MOVED,
    PROGRESS_ITERATION,
    PROGRESS_MAX_ITER,
    PROGRESS_RESTART,
    PROGRESS_N_INIT,
    PROGRESS_SHIFT,
    PROGRESS_BACKEND,
    PROGRESS_COLUMNS
};

/* The rule of pg_stat_activity. */
static bool may_see(Oid owner)
{
    return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) || has_privs_of_role(GetUserId(), owner);
}

/* Columns from PROGRESS_RELID on, which not everybody may see. */
static void fill_details(const PgBackendStatus *entry, Datum *values, bool *nulls)
{
    static const int counts[][2] = {{PROGRESS_ROWS_SCANNED, PARAM_ROWS_SCANNED},
                                    {PROGRESS_ROWS_EXPECTED, PARAM_ROWS_EXPECTED},
                                    {PROGRESS_BYTES_MOVED, PARAM_BYTES_MOVED}};
    const int64 *const params = entry->st_progress_param;
    const ProgressPhase phase = (ProgressPhase) Min((uint64) params[PARAM_PHASE], (uint64) PHASE_COUNT - 1);
    const char *const   backend = backend_names[Min((uint64) params[PARAM_BACKEND], lengthof(backend_names) - 1)];

    values[PROGRESS_RELID] = ObjectIdGetDatum(entry->st_progress_command_target);
    nulls[PROGRESS_RELID] = !OidIsValid(entry->st_progress_command_target);
    values[PROGRESS_PHASE] = CStringGetTextDatum(phase_names[phase]);
    nulls[PROGRESS_PHASE] = false;
    for (const int(&count)[2] : counts) {
        values[count[0]] = Int64GetDatum(params[count[1]]);
        nulls[count[0]] = false;
    }
    nulls[PROGRESS_ROWS_EXPECTED] = params[PARAM_ROWS_EXPECTED] == 0;
    nulls[PROGRESS_BACKEND] = backend == NULL;
    if (backend != NULL)
        values[PROGRESS_BACKEND] = CStringGetTextDatum(backend);
    if (params[PARAM_MAX_ITER] == 0) /* no fit has begun, or it has no iterations */
        return;
    values[PROGRESS_ITERATION] = Int32GetDatum((int32) params[PARAM_ITERATION]);
    values[PROGRESS_MAX_ITER] = Int32GetDatum((int32) params[PARAM_MAX_ITER]);
    values[PROGRESS_RESTART] = Int32GetDatum((int32) params[PARAM_RESTART]);
    values[PROGRESS_N_INIT] = Int32GetDatum((int32) params[PARAM_N_INIT]);
    values[PROGRESS_SHIFT] = Int64GetDatum(params[PARAM_SHIFT]); /* the same bits as a float8 */
    for (int column = PROGRESS_ITERATION; column <= PROGRESS_N_INIT; ++column)
        nulls[column] = false;
    nulls[PROGRESS_SHIFT] = params[PARAM_ITERATION] == 0;
}

/*
 * kmeans_progress() -> one row per process that is reading rows or fitting, as
 * pg_stat_progress_kmeans shows it; of other roles' processes only pid and datid, unless the
 * caller has the rights of pg_read_all_stats.
 */
Datum pgkm_kmeans_progress(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = (ReturnSetInfo *) fcinfo->resultinfo;

    InitMaterializedSRF(fcinfo, 0);

    const int count = pgstat_fetch_stat_numbackends();

    for (int i = 1; i <= count; ++i) {
        const PgBackendStatus *const entry = &pgstat_get_local_beentry_by_index(i)->backendStatus;
        Datum                        values[PROGRESS_COLUMNS] = {0};
        bool                         nulls[PROGRESS_COLUMNS];

        if (entry->st_procpid <= 0 || entry->st_progress_command != PROGRESS_COMMAND_KMEANS)
            continue;
        memset(nulls, true, sizeof nulls);
        values[PROGRESS_PID] = Int32GetDatum(entry->st_procpid);
        values[PROGRESS_DATID] = ObjectIdGetDatum(entry->st_databaseid);
        nulls[PROGRESS_PID] = nulls[PROGRESS_DATID] = false;
        if (may_see(entry->st_userid))
            fill_details(entry, values, nulls);
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    }
    return (Datum) 0;
}

/* --- the last run --- */

struct RunReport {
    const char    *function; /* NULL: no run yet */
    Oid            relation;
    TimestampTz    started;
    TimestampTz    ended;
    PgkmScanReport scan;
    PgkmFitReport  fit;
};

static PgkmFitReport noted;
static RunReport     last;

void pgkm_run_begin(PgkmRun *run, const char *function, Oid relation)
{
    memset(run, 0, sizeof *run);
    run->function = function;
    run->relation = relation;
    run->started = GetCurrentTimestamp();
    memset(&noted, 0, sizeof noted);
    start_showing(&run->outer, relation);
}

void pgkm_run_end(const PgkmRun *run)
{
    stop_showing(&run->outer);
    if (noted.groups == 0)
        return;
    last.function = run->function;
    last.relation = run->relation;
    last.started = run->started;
    last.ended = GetCurrentTimestamp();
    last.scan = run->scan;
    last.fit = noted;
    memset(&noted, 0, sizeof noted);
}

void pgkm_run_note_fit(const PgkmFitReport *report, PgkmJob *job)
{
    noted = *report;
    pgkm_job_progress(job, &noted.job);
}

enum RunColumn {
    RUN_FUNCTION,
    RUN_RELATION,
    RUN_STARTED,
    RUN_GROUPS,
    RUN_ROWS,
    RUN_FEATURES,
    RUN_CLUSTERS,
    RUN_N_ITER,
    RUN_N_INIT,
    RUN_BACKEND,
    RUN_ASSIGNMENT,
    RUN_EXECUTION,
    RUN_FEATURE_SUM,
    RUN_MASS_SUM,
    RUN_INSTRUCTION_SET,
    RUN_SCAN,
    RUN_WORKERS,
    RUN_ROWS_SCANNED,
    RUN_BYTES_MOVED,
    RUN_SCAN_MS,
    RUN_TRANSFER_MS,
    RUN_SEEDING_MS,
    RUN_ITERATIONS_MS,
    RUN_LABELS_MS,
    RUN_TOTAL_MS,
    RUN_COLUMNS
};

struct RunRow {
    Datum values[RUN_COLUMNS];
    bool  nulls[RUN_COLUMNS];
};

static void set(RunRow *row, RunColumn column, Datum value)
{
    row->values[column] = value;
    row->nulls[column] = false;
}

static void set_text(RunRow *row, RunColumn column, const char *text)
{
    if (text != NULL)
        set(row, column, CStringGetTextDatum(text));
}

static void set_ms(RunRow *row, RunColumn column, double seconds)
{
    set(row, column, Float8GetDatum(seconds * 1000.0));
}

static void fill_scan(RunRow *row, const PgkmScanReport *scan)
{
    if (scan->road == NULL)
        return;
    set_text(row, RUN_SCAN, scan->road);
    set(row, RUN_WORKERS, Int32GetDatum(scan->workers));
    set(row, RUN_ROWS_SCANNED, Int64GetDatum(scan->rows));
    set_ms(row, RUN_SCAN_MS, scan->seconds);
}

static void fill_fit(RunRow *row, const PgkmFitReport *fit)
{
    const PgkmJobProgress *const job = &fit->job;

    set(row, RUN_GROUPS, Int64GetDatum(fit->groups));
    set(row, RUN_ROWS, Int64GetDatum(fit->rows));
    set(row, RUN_FEATURES, Int32GetDatum(fit->features));
    set(row, RUN_CLUSTERS, Int32GetDatum(fit->clusters));
    if (fit->n_init > 0) {
        set(row, RUN_N_ITER, Int32GetDatum(fit->n_iter));
        set(row, RUN_N_INIT, Int32GetDatum(fit->n_init));
    }
    set_text(row, RUN_BACKEND, job->backend);
    set_text(row, RUN_ASSIGNMENT, job->chosen.assignment);
    set_text(row, RUN_EXECUTION, job->chosen.execution);
    set_text(row, RUN_FEATURE_SUM, job->chosen.feature_sum);
    set_text(row, RUN_MASS_SUM, job->chosen.mass_sum);
    set_text(row, RUN_INSTRUCTION_SET, job->chosen.instruction_set);
    set(row, RUN_BYTES_MOVED, Int64GetDatum((int64) job->bytes_moved));
    set_ms(row, RUN_TRANSFER_MS, job->seconds[PGKM_STARTING] + job->seconds[PGKM_LOADING]);
    set_ms(row, RUN_SEEDING_MS, job->seconds[PGKM_SEEDING]);
    set_ms(row, RUN_ITERATIONS_MS, job->seconds[PGKM_ITERATING]);
    set_ms(row, RUN_LABELS_MS, job->seconds[PGKM_LABELLING]);
}

/*
 * kmeans_last_run() -> how the session's last fit went: one row, or none before the first. Of a
 * query with groups it is the last one fitted; of groups fitted together, k and n_iter are the
 * first one's.
 */
Datum pgkm_kmeans_last_run(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = (ReturnSetInfo *) fcinfo->resultinfo;
    RunRow               row;

    InitMaterializedSRF(fcinfo, 0);
    if (last.function == NULL)
        return (Datum) 0;
    memset(row.nulls, true, sizeof row.nulls);
    set_text(&row, RUN_FUNCTION, last.function);
    if (OidIsValid(last.relation))
        set(&row, RUN_RELATION, ObjectIdGetDatum(last.relation));
    set(&row, RUN_STARTED, TimestampTzGetDatum(last.started));
    fill_scan(&row, &last.scan);
    fill_fit(&row, &last.fit);
    set_ms(&row, RUN_TOTAL_MS, (double) (last.ended - last.started) / USECS_PER_SEC);
    tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
    return (Datum) 0;
}
