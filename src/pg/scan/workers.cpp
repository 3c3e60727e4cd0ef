/*
 * workers.cpp - decides how many workers a scan asks for.
 */
#include "pg/scan/plan.h"

#include "pg/run/memory_account.h"
#include "pg/shared/pages.h"

extern "C" {
#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
}

/* What the rows may take at most, in multiples of their bytes: each block is given back as its rows are brought
 * together. */
#define PEAK_FACTOR 1.5

/* To bring rows together in shared memory costs about as much as reading them, and a worker needs some milliseconds
 * to start. So a process with fewer bytes to read saves nothing; nor does one worker alone below twice as much. */
#define LEAST_BYTES_PER_PROCESS ((uint64)32 * 1024 * 1024)

/* Statistics are samples. */
#define ESTIMATE_SLACK 1.02

/* The segments of an area are up to half as long again as what is in them. */
#define SHARED_FACTOR 1.5

/* About how many times its bytes in the table an element takes in memory. */
static double expansion(const TableColumn *column)
{
    if (column->kind == COLUMN_HALFVEC)
        return 2;
    switch (column->type) {
    case INT2OID:
        return 4;
    case INT4OID:
    case NUMERICOID:
        return 2;
    default:
        return 1;
    }
}

/* What a scan reads and what it keeps. */
struct ScanVolume {
    uint64 blocks;       /* of the tables */
    uint64 toast_blocks; /* beside them */
    double bytes;        /* of the rows in memory */
};

/* Adds an array's or vector's share. What the TOAST table holds counts where the table's own pages are too small for
 * it: other columns may lie there, too, which are not read. */
static void add_array(const ScanPlan *plan, const ScanRelation *table, double rows, ScanVolume *volume)
{
    const double widening = expansion(&plan->columns[0]);
    const double stored = rows * scan_features_bytes(plan) / widening;
    const double own = (double)table->n_blocks * BLCKSZ;
    const double toast = (double)table->toast_blocks * BLCKSZ;

    if (stored > own)
        volume->toast_blocks += (uint64)(Min(stored, toast) / BLCKSZ);
    /* The number of rows may be a guess. */
    volume->bytes += Min(stored, own + toast) * widening;
}

/* Adds a table, and its rows to the plan's. */
static void add_volume(ScanPlan *plan, const ScanRelation *table, const Relation relation, ScanVolume *volume)
{
    BlockNumber blocks;
    double rows;
    double all_visible;

    estimate_rel_size(relation, NULL, &blocks, &rows, &all_visible);
    plan->expected_rows += (int64)(rows * ESTIMATE_SLACK);
    volume->blocks += table->n_blocks;
    volume->bytes += rows * table_origin_bytes(&plan->wants);
    if (plan->columns[0].kind == COLUMN_NUMBER)
        volume->bytes += rows * scan_features_bytes(plan);
    else
        add_array(plan, table, rows, volume);
}

/* By the planner's own formula over all tables as if they were one, but no more workers than pay. A number that a
 * table's storage parameter sets is obeyed. */
static int planned_workers(uint64 blocks, int fixed)
{
    RelOptInfo *const relation = makeNode(RelOptInfo);

    relation->reloptkind = RELOPT_BASEREL;
    relation->rel_parallel_workers = fixed;

    const int planned = compute_parallel_worker(relation, (double)blocks, -1, max_parallel_workers_per_gather);

    if (fixed >= 0)
        return planned;

    const uint64 processes = blocks * BLCKSZ / LEAST_BYTES_PER_PROCESS;
    const int useful = (int)Min((uint64)planned, processes > 0 ? processes - 1 : 0);

    return useful == 1 && processes < 4 ? 0 : useful;
}

int scan_plan_workers(ScanPlan *plan)
{
    ScanVolume volume = {0, 0, 0};
    int fixed = -1;

    plan->expected_rows = 0;
    for (int i = 0; i < plan->n_relations; ++i) {
        const ScanRelation *const table = &plan->relations[i];
        const Relation relation = table_open(table->id, NoLock);

        fixed = Max(fixed, RelationGetParallelWorkers(relation, -1));
        add_volume(plan, table, relation, &volume);
        table_close(relation, NoLock);
    }
    if (plan->most_rows > 0 && plan->expected_rows > plan->most_rows) {
        const double share = (double)plan->most_rows / (double)plan->expected_rows;

        volume = {(uint64)(volume.blocks * share), (uint64)(volume.toast_blocks * share), volume.bytes * share};
        plan->expected_rows = plan->most_rows;
    }
    if (IsInParallelMode() || !IsUnderPostmaster || max_parallel_workers == 0 || plan->temporary || plan->n_chunks < 2)
        return 0;
    if (volume.bytes * PEAK_FACTOR > (double)pgkm_memory_available() ||
        !pgkm_fits_shared_memory(volume.bytes * SHARED_FACTOR))
        return 0;
    return (int)Min((uint32)planned_workers(volume.blocks + volume.toast_blocks, fixed), plan->n_chunks - 1);
}
