/*
 * workers.cpp - decides how many workers a scan asks for.
 */
#include "pg/scan/plan.h"

#include "pg/run/memory_account.h"
#include "pg/shared/view.h"

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

/* What the rows may take at most, in multiples of their bytes. The processes' growing buffers are up to a fifth
 * empty, small ones up to half, when the rows move on to shared memory. */
#define PEAK_FACTOR 2.5

/* To bring rows together in shared memory costs about as much as reading them, and a worker needs some milliseconds
 * to start. So a process with fewer bytes to read saves nothing; nor does one worker alone below twice as much. */
#define LEAST_BYTES_PER_PROCESS ((uint64)32 * 1024 * 1024)

/* Statistics are samples. */
#define ESTIMATE_SLACK 1.02

/* Some of the shared memory is left to others. */
#define SHARED_FACTOR 1.25

static uint64 heap_bytes(Oid id)
{
    uint64 blocks;

    if (!OidIsValid(id))
        return 0;

    const Relation relation = table_open(id, AccessShareLock);

    blocks = RelationGetNumberOfBlocks(relation);
    table_close(relation, AccessShareLock);
    return blocks * BLCKSZ;
}

/* About how many times its bytes in the table an element takes in memory. */
static double expansion(const ScanColumn *column)
{
    if (column->layout == SCAN_VECTOR)
        return 1;
    if (column->layout == SCAN_HALFVEC)
        return 2;
    switch (column->column.type) {
    case INT2OID:
        return 4;
    case INT4OID:
    case NUMERICOID:
        return 2;
    default:
        return 1;
    }
}

/* What the rows of a table will take; adds to the plan's number of rows. */
static double estimate_bytes(ScanPlan *plan, const Relation relation)
{
    BlockNumber blocks;
    double rows;
    double all_visible;

    estimate_rel_size(relation, NULL, &blocks, &rows, &all_visible);
    plan->expected_rows += (int64)(rows * ESTIMATE_SLACK);

    double bytes = rows * (table_origin_bytes(&plan->wants) + scan_features_bytes(plan));

    if (plan->d == 0)
        bytes += ((double)blocks * BLCKSZ + heap_bytes(relation->rd_rel->reltoastrelid)) *
                 expansion(&scan_plan_columns(plan)[0]);
    return bytes;
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
    uint64 blocks = 0;
    double bytes = 0;
    int fixed = -1;

    for (int i = 0; i < plan->n_relations; ++i) {
        const Relation relation = table_open(scan_plan_relations(plan)[i].id, NoLock);

        fixed = Max(fixed, RelationGetParallelWorkers(relation, -1));
        bytes += estimate_bytes(plan, relation);
        blocks += scan_plan_relations(plan)[i].n_blocks;
        table_close(relation, NoLock);
    }
    if (IsInParallelMode() || !IsUnderPostmaster || max_parallel_workers == 0 || plan->temporary || plan->n_chunks < 2)
        return 0;
    if (bytes * PEAK_FACTOR > (double)pgkm_memory_available() || !pgkm_fits_shared_memory(bytes * SHARED_FACTOR))
        return 0;
    return (int)Min((uint32)planned_workers(blocks, fixed), plan->n_chunks - 1);
}
