/*
 * estimate.cpp - what a scan will read and keep: how many workers it asks for, and whether its rows pass
 * pg_kmeans.memory_limit.
 */
#include "pg/scan/plan.h"

#include "pg/run/memory_account.h"
#include "pg/shared/pages.h"

extern "C" {
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/pg_statistic.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/paths.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

/* --- workers --- */

/* What the rows may take at most, in multiples of their bytes: each block is given back as its rows are brought
 * together. */
#define PEAK_FACTOR 1.5

/* The segments of an area are up to half as long again as what is in them. */
#define SHARED_FACTOR 1.5

/* To bring rows together in shared memory costs about as much as reading them, and a worker needs some milliseconds
 * to start. So a process with fewer bytes to read saves nothing; nor does one worker alone below twice as much. */
#define LEAST_BYTES_PER_PROCESS ((uint64)32 * 1024 * 1024)

/* An element takes at most so many times its bytes in the table in memory: of smallint. */
#define WIDEST_EXPANSION 4

/* What a scan reads and what it keeps. */
struct ScanVolume {
    double blocks; /* those of TOAST tables, too */
    double bytes;  /* of the rows in memory */
};

/* Adds a table. Of its TOAST table as much as its arrays take counts: other columns may lie there, too, which are not
 * read. */
static void add_volume(const ScanPlan *plan, const ScanRelation *table, ScanVolume *volume)
{
    const double features = table->rows * scan_features_bytes(plan);
    const double stored = ((double)table->n_blocks + (double)table->toast_blocks) * BLCKSZ;

    volume->blocks += table->n_blocks + Min(features / BLCKSZ, (double)table->toast_blocks);
    /* The number of rows may be a guess. */
    volume->bytes += Min(features, stored * WIDEST_EXPANSION) + table->rows * table_origin_bytes(&plan->wants);
}

/* By the planner's own formula over all tables as if they were one, but no more workers than pay. A number that a
 * table's storage parameter sets is obeyed. */
static int planned_workers(double blocks, int fixed)
{
    RelOptInfo *const relation = makeNode(RelOptInfo);

    relation->reloptkind = RELOPT_BASEREL;
    relation->rel_parallel_workers = fixed;

    const int planned = compute_parallel_worker(relation, blocks, -1, max_parallel_workers_per_gather);

    if (fixed >= 0)
        return planned;

    const uint64 processes = (uint64)blocks * BLCKSZ / LEAST_BYTES_PER_PROCESS;
    const int useful = (int)Min((uint64)planned, processes > 0 ? processes - 1 : 0);

    return useful == 1 && processes < 4 ? 0 : useful;
}

int64 scan_plan_part_rows(const ScanPlan *plan)
{
    return plan->most_rows > 0 ? Min(plan->most_rows, plan->expected_rows) : plan->expected_rows;
}

int scan_plan_workers(const ScanPlan *plan)
{
    const double share = (double)scan_plan_part_rows(plan) / (double)Max(plan->expected_rows, (int64)1);
    ScanVolume volume = {0, 0};

    if (IsInParallelMode() || !IsUnderPostmaster || max_parallel_workers == 0 || plan->temporary || plan->alone ||
        plan->n_chunks < 2)
        return 0;
    for (int i = 0; i < plan->n_relations; ++i)
        add_volume(plan, &plan->relations[i], &volume);
    if (volume.bytes * share * PEAK_FACTOR > (double)pgkm_memory_available() ||
        !pgkm_fits_shared_memory(volume.bytes * share * SHARED_FACTOR))
        return 0;
    return (int)Min((uint32)planned_workers(volume.blocks * share, plan->fixed_workers), plan->n_chunks - 1);
}

/* --- memory --- */

/* A table that cannot fit is refused at once, not when the limit is reached. Statistics may be old: estimates of so
 * many times the limit leave no doubt. */
#define CERTAIN_FACTOR 2.0

struct ScanEstimate {
    double bytes;
    double certain; /* of them those of tables that have statistics */
};

/* The share of a column's values that are NULL, by the statistics; false when it has none. */
static bool null_fraction(Oid table, const char *column, double *fraction)
{
    const HeapTuple tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table),
                                            Int16GetDatum(get_attnum(table, column)), BoolGetDatum(false));

    if (!HeapTupleIsValid(tuple))
        return false;
    *fraction = ((Form_pg_statistic)GETSTRUCT(tuple))->stanullfrac;
    ReleaseSysCache(tuple);
    return true;
}

/* A row without any of its features is skipped, and so is one without a weight, or that the filter leaves
 * out. How many these are nobody knows. */
static void add_estimate(const ScanPlan *plan, const ScanRelation *table, ScanEstimate *estimate)
{
    double missing = 1;
    bool known = plan->query.weight == NULL && plan->query.filter == NULL;

    for (int i = 0; i < plan->query.n_features; ++i) {
        double fraction = 0;

        known = null_fraction(table->id, plan->columns[i].name, &fraction) && known;
        missing = Min(missing, fraction);
    }

    const double position = table_wants_any(&plan->wants) ? sizeof(int64) : 0;
    const double bytes = table->rows * ((1 - missing) * scan_features_bytes(plan) + missing * position +
                                        table_origin_bytes(&plan->wants));

    estimate->bytes += bytes;
    estimate->certain += known ? bytes : 0;
}

void scan_plan_check_memory(ScanPlan *plan, uint64 streamed_bytes)
{
    const double row = scan_features_bytes(plan) + table_origin_bytes(&plan->wants);
    ScanEstimate estimate = {0, 0};

    if (plan->d == 0 || (double)plan->expected_rows * row <= (double)pgkm_memory_available())
        return;
    for (int i = 0; i < plan->n_relations; ++i)
        add_estimate(plan, &plan->relations[i], &estimate);
    plan->estimate = (uint64)estimate.bytes;
    if (estimate.certain <= CERTAIN_FACTOR * (double)pgkm_memory_obtainable())
        return;
    if (streamed_bytes > 0)
        pgkm_raise_streamed_memory(streamed_bytes);
    pgkm_raise_memory_limit(0, plan->estimate);
}
