/*
 * progress.cpp - pg_stat_progress_kmeans and kmeans_last_run(): how far the fits of all sessions are, and
 * how this session's last one went.
 */
#include "pg/progress.h"

#include <bit>
#include <initializer_list>

#include "pg/shared/statistics.h"
#include "pg/values/composite.h"

extern "C" {
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/backend_progress.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_progress);
PG_FUNCTION_INFO_V1(pgkm_kmeans_last_run);
}

/* The server's own views ask for numbers that count from 1, so none asks for this one. The server's entry has room for
 * it; in C++ a cast to the enum would be undefined. */
static ProgressCommandType our_command(void)
{
    const int number = 0x6B6D;
    ProgressCommandType command;

    static_assert(sizeof command == sizeof number);
    memcpy(&command, &number, sizeof command);
    return command;
}

static bool is_ours(const PgBackendStatus *entry)
{
    const ProgressCommandType ours = our_command();

    return memcmp(&entry->st_progress_command, &ours, sizeof ours) == 0;
}

/* Phases beside those of a job, PgkmPhase. */
enum { PHASE_SCANNING = PGKM_PHASES, PHASE_WRITING, PHASE_WAITING, PHASE_COUNT };

static const char *const phase_names[PHASE_COUNT] = {"starting",      "loading",  "seeding",
                                                     "iterating",     "refining", "labelling",
                                                     "scanning rows", "writing",  "waiting for memory"};

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
    PARAM_DEVICES, /* a bit for each */
    PARAM_PASS,    /* 0: none */
    PARAM_SEEDED,
    PARAM_K,
    PARAM_COUNT
};

static const char *const backend_names[] = {NULL, "cpu", "cuda", "nodes"};

static int backend_number(const char *name)
{
    for (int i = 1; name != NULL && i < (int)lengthof(backend_names); ++i)
        if (strcmp(name, backend_names[i]) == 0)
            return i;
    return 0;
}

/* The ordinals of devices, of which there is a bit for each; NULL: none. */
static PgkmValue device_list(uint64 bits)
{
    Datum ordinals[64];
    int count = 0;

    for (int i = 0; i < 64; ++i)
        if ((bits >> i & 1) != 0)
            ordinals[count++] = Int32GetDatum(i);
    if (count == 0)
        return {};
    return PointerGetDatum(construct_array(ordinals, count, INT4OID, sizeof(int32), true, TYPALIGN_INT));
}

/* A parallel worker that reads for a session shows nothing itself. */
static bool is_shown(void)
{
    return MyBEEntry != NULL && is_ours((const PgBackendStatus *)MyBEEntry);
}

struct Shown {
    ProgressParam param;
    int64 value;
};

/* All at once: who looks sees numbers of the same moment. */
static void show(std::initializer_list<Shown> numbers)
{
    int params[PARAM_COUNT];
    int64 values[PARAM_COUNT];
    int count = 0;

    for (const Shown &number : numbers) {
        params[count] = number.param;
        values[count++] = number.value;
    }
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
    pgstat_progress_start_command(our_command(), relation);
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

static TimestampTz next_beat = 0; /* 0: nobody waits for one */
static TimestampTz beating_statement = 0;

void pgkm_heartbeat_begin(void)
{
    beating_statement = GetCurrentStatementStartTimestamp();
    next_beat = GetCurrentTimestamp() + USECS_PER_SEC;
}

static void beat(void)
{
    if (next_beat == 0)
        return;

    const TimestampTz now = GetCurrentTimestamp();

    if (GetCurrentStatementStartTimestamp() != beating_statement)
        next_beat = 0;
    else if (now >= next_beat) {
        next_beat = now + USECS_PER_SEC;
        ereport(NOTICE, (errmsg("pg_kmeans is at work")));
    }
}

static int64 rows_before = -1; /* of a pass; -1: there is none */

void pgkm_progress_pass(int64 pass, int64 rows, int64 expected)
{
    rows_before = rows;
    show({{PARAM_PASS, pass}, {PARAM_ROWS_SCANNED, rows}, {PARAM_ROWS_EXPECTED, expected}});
}

void pgkm_progress_scan(int64 rows, int64 expected)
{
    beat();
    if (rows_before >= 0)
        show({{PARAM_ROWS_SCANNED, rows_before + rows}});
    else
        show({{PARAM_PHASE, PHASE_SCANNING}, {PARAM_ROWS_SCANNED, rows}, {PARAM_ROWS_EXPECTED, expected}});
}

void pgkm_progress_fit(const PgkmShownFit *shown, const PgkmJobProgress *job)
{
    beat();
    show({{PARAM_PHASE, job->phase},
          {PARAM_BYTES_MOVED, (int64)job->bytes_moved},
          {PARAM_ITERATION, job->iteration},
          {PARAM_MAX_ITER, shown->max_iter},
          {PARAM_RESTART, job->restart + 1},
          {PARAM_N_INIT, shown->n_init},
          {PARAM_SHIFT, std::bit_cast<int64>(job->shift)},
          {PARAM_BACKEND, backend_number(job->backend)},
          {PARAM_DEVICES, (int64)job->devices},
          {PARAM_SEEDED, job->seeded},
          {PARAM_K, shown->k}});
}

void pgkm_progress_waiting(void)
{
    beat();
    show({{PARAM_PHASE, PHASE_WAITING}});
}

void pgkm_progress_writing(void)
{
    show({{PARAM_PHASE, PHASE_WRITING}});
}

/* The rule of pg_stat_activity. */
static bool may_see(Oid owner)
{
    return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) || has_privs_of_role(GetUserId(), owner);
}

/* The row of a process. What it reads and how far it is may not be seen by everybody. */
static void put_entry(ReturnSetInfo *result, const PgBackendStatus *entry)
{
    const int64 *const params = entry->st_progress_param;
    const uint64 phase = Min((uint64)params[PARAM_PHASE], (uint64)PHASE_COUNT - 1);
    const char *const backend = backend_names[Min((uint64)params[PARAM_BACKEND], lengthof(backend_names) - 1)];
    const bool seen = may_see(entry->st_userid);
    const bool seeds = seen && phase == PGKM_SEEDING && params[PARAM_SEEDED] != 0;
    const bool iterates = seen && params[PARAM_MAX_ITER] != 0; /* else no fit has begun, or it has none */
    const double shift = std::bit_cast<double>(params[PARAM_SHIFT]);

    pgkm_result_put(
        result,
        {entry->st_procpid, entry->st_databaseid, pgkm_value_if(seen, entry->st_progress_command_target),
         pgkm_value_if(seen, phase_names[phase]), pgkm_value_if(seen, params[PARAM_ROWS_SCANNED]),
         pgkm_value_if(seen && params[PARAM_ROWS_EXPECTED] != 0, params[PARAM_ROWS_EXPECTED]),
         pgkm_value_if(seen, params[PARAM_BYTES_MOVED]), pgkm_value_if(iterates, (int32)params[PARAM_ITERATION]),
         pgkm_value_if(iterates, (int32)params[PARAM_MAX_ITER]), pgkm_value_if(iterates, (int32)params[PARAM_RESTART]),
         pgkm_value_if(iterates, (int32)params[PARAM_N_INIT]),
         pgkm_value_if(iterates && params[PARAM_ITERATION] != 0, shift), pgkm_value_if(seen, backend),
         seen ? device_list((uint64)params[PARAM_DEVICES]) : PgkmValue(),
         pgkm_value_if(seen && params[PARAM_PASS] != 0, params[PARAM_PASS]),
         pgkm_value_if(seeds, (int32)params[PARAM_SEEDED]), pgkm_value_if(seeds, (int32)params[PARAM_K])});
}

/*
 * pgkm_progress() -> one row per process that is reading rows or fitting, as
 * pg_stat_progress_kmeans shows it; of other roles' processes only pid and datid, unless the
 * caller has the rights of pg_read_all_stats.
 */
Datum pgkm_kmeans_progress(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = pgkm_result_begin(fcinfo);
    const int count = pgstat_fetch_stat_numbackends();

    for (int i = 1; i <= count; ++i) {
        const PgBackendStatus *const entry = &pgstat_get_local_beentry_by_index(i)->backendStatus;

        if (entry->st_procpid > 0 && is_ours(entry))
            put_entry(result, entry);
    }
    return (Datum)0;
}

/* --- the last run --- */

static PgkmFitReport noted;
static PgkmRunReport last;

void pgkm_run_begin(PgkmRun *run, const char *function, Oid relation)
{
    memset(run, 0, sizeof *run);
    run->function = function;
    run->relation = relation;
    run->started = GetCurrentTimestamp();
    memset(&noted, 0, sizeof noted);
    rows_before = -1;
    start_showing(&run->outer, relation);
}

void pgkm_run_end(const PgkmRun *run)
{
    rows_before = -1;
    stop_showing(&run->outer);
    if (noted.groups == 0)
        return;
    static_cast<PgkmRun &>(last) = *run;
    last.ended = GetCurrentTimestamp();
    last.fit = noted;
    pgkm_statistics_add(run->function, noted.job.backend, noted.fits, noted.rows,
                        (double)(last.ended - last.started) / USECS_PER_SEC);
    memset(&noted, 0, sizeof noted);
}

const PgkmRunReport *pgkm_last_run(void)
{
    return &last;
}

void pgkm_run_note_fit(const PgkmFitReport *report, PgkmJob *job)
{
    const int64 before = noted.fits;

    noted = *report;
    noted.fits += before;
    pgkm_job_progress(job, &noted.job);
}

static PgkmValue ms(double seconds)
{
    return seconds * 1000.0;
}

/*
 * kmeans_last_run() -> how the session's last fit went: one row, or none before the first. Of a
 * query with groups it is the last one fitted; of groups fitted together, k and n_iter are the
 * first one's.
 */
Datum pgkm_kmeans_last_run(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = pgkm_result_begin(fcinfo);
    const PgkmFitReport *const fit = &last.fit;
    const PgkmJobProgress *const job = &fit->job;
    const PgkmScanReport *const scan = &last.scan;
    const bool scanned = scan->way != NULL;

    if (last.function != NULL)
        pgkm_result_put(result, {last.function,
                                 last.relation,
                                 last.started,
                                 fit->groups,
                                 fit->rows,
                                 fit->features,
                                 fit->clusters,
                                 pgkm_value_if(fit->n_init > 0, fit->n_iter),
                                 pgkm_value_if(fit->n_init > 0, fit->n_init),
                                 job->backend,
                                 job->chosen.assignment,
                                 job->chosen.execution,
                                 job->chosen.feature_sum,
                                 job->chosen.mass_sum,
                                 job->chosen.instruction_set,
                                 device_list(job->devices),
                                 scan->way,
                                 pgkm_value_if(scanned, scan->workers),
                                 pgkm_value_if(scanned, scan->rows),
                                 (int64)job->bytes_moved,
                                 pgkm_value_if(scanned, ms(scan->seconds)),
                                 ms(job->seconds[PGKM_STARTING] + job->seconds[PGKM_LOADING]),
                                 ms(job->seconds[PGKM_SEEDING]),
                                 ms(job->seconds[PGKM_ITERATING]),
                                 ms(job->seconds[PGKM_REFINING]),
                                 ms(job->seconds[PGKM_LABELLING]),
                                 ms((double)(last.ended - last.started) / USECS_PER_SEC)});
    return (Datum)0;
}
