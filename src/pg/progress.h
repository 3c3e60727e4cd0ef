/*
 * progress.h - what a session tells of its fits: pg_stat_progress_kmeans while one runs, and
 * kmeans_last_run() afterwards.
 *
 * Progress is kept in the session's entry of the server's own array of backends, under a command number
 * that no other view asks for. So it needs no memory of ours and no preload, and costs a few stores. It
 * vanishes with the session or with a failed transaction. Nothing is shown while track_activities is off.
 */
#ifndef PGKM_PG_PROGRESS_H
#define PGKM_PG_PROGRESS_H

#include "pg/compat.h"

#include "engine/api.h"

extern "C" {
#include "utils/backend_status.h"
#include "utils/timestamp.h"
}

/* How a table was read. */
struct PgkmScanReport {
    const char *way; /* static: "direct", "stream", "executor" or "loaded"; NULL: not by a table function */
    int32 workers;   /* beside the session's own process */
    int64 rows;      /* read, those that take no part included */
    double seconds;
};

/* What is kept of the fits of a run. */
struct PgkmFitReport {
    int64 groups; /* 0: no fit since the last run ended */
    int64 fits;   /* of the run so far */
    int64 rows;
    int32 features;
    int32 clusters; /* or components */
    int32 n_iter;
    int32 n_init; /* 0: nothing is iterated, nor seeded */
    PgkmJobProgress job;
};

/* What an entry of the array of backends shows. */
struct PgkmProgressEntry {
    ProgressCommandType command;
    Oid target;
    int64 params[PGSTAT_NUM_PROGRESS_PARAM];
};

/* One call of a function, from before it reads rows to its result. */
struct PgkmRun {
    const char *function; /* static */
    Oid relation;         /* InvalidOid: none */
    TimestampTz started;
    PgkmScanReport scan;
    PgkmProgressEntry outer; /* shown before: a COPY, or a function whose view calls this one */
};

/* How a run went. Its function is NULL before the first. */
struct PgkmRunReport : PgkmRun {
    TimestampTz ended;
    PgkmFitReport fit;
};

/* Starts to show the run. */
void pgkm_run_begin(PgkmRun *run, const char *function, Oid relation);

/* Makes the run the last run, if it has fitted anything, and shows again what was shown before it. After an
 * ERROR there is nothing to end: the server clears the progress. */
void pgkm_run_end(const PgkmRun *run);

/* The last run of the session. */
const PgkmRunReport *pgkm_last_run(void);

/* Rows read so far by all processes, and about how many there will be (0: not known). */
void pgkm_progress_scan(int64 rows, int64 expected);

/* A pass over a streamed table begins or goes on, of `expected` rows (0: not known) after so many: from now on the rows
 * of a scan count behind these, and do not change the phase. */
void pgkm_progress_pass(int64 pass, int64 rows, int64 expected);

/* What the view shows of a job beside how far it is. */
struct PgkmShownFit {
    int32 max_iter; /* 0: it has no iterations that could be counted */
    int32 n_init;
    int64 k; /* 0: nothing is seeded */
};

/* How far a job is. */
void pgkm_progress_fit(const PgkmShownFit *shown, const PgkmJobProgress *job);

/* For another server that waits for this session's work: from now on to the end of the statement a NOTICE each second,
 * when progress is told. */
void pgkm_heartbeat_begin(void);

/* Memory that others hold is waited for. */
void pgkm_progress_waiting(void);

/* Labels are being returned, or written to the table. */
void pgkm_progress_writing(void);

/* How a fit went, for the run that ends next; the report's `job` is filled in here, and its `fits`, those of this job,
 * are added to those before. */
void pgkm_run_note_fit(const PgkmFitReport *report, PgkmJob *job);

#endif
