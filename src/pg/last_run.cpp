/*
 * last_run.cpp - kmeans_last_run(): how the session's last fit went.
 */
#include "pg/progress.h"

extern "C" {
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_last_run);
}

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
    pgkm_progress_start(&run->outer, relation);
}

void pgkm_run_end(const PgkmRun *run)
{
    pgkm_progress_stop(&run->outer);
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
