/*
 * shared_rows.cpp - rows of a partial aggregate that wait for the leader in the parallel query's shared memory.
 */
#include "pg/aggregate/shared_rows.h"

#include "pg/aggregate/aggregate.h"
#include "pg/run/memory_account.h"
#include "pg/shared/pages.h"

extern "C" {
#include "access/htup_details.h"
#include "access/parallel.h"
#include "catalog/pg_aggregate.h"
#include "executor/execParallel.h"
#include "executor/nodeAgg.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "postmaster/bgworker.h"
#include "utils/syscache.h"
}

/* A block is written while its rows are still in the processor's cache. */
#define BLOCK_BYTES 262144

/* The head of a block in the area; values follow, then weights. */
struct Block {
    dsa_pointer next;
    int64 n;
};

static Size values_bytes(const PgkmRows *rows, int64 n)
{
    return MAXALIGN((Size)n * rows->row_bytes);
}

static Size block_bytes(const PgkmRows *rows, int64 n)
{
    return sizeof(Block) + values_bytes(rows, n) + (rows->weighted ? n * sizeof(double) : 0);
}

/* --- writing --- */

dsa_area *shared_rows_area(FunctionCallInfo fcinfo)
{
    if (fcinfo->context == NULL || !IsA(fcinfo->context, AggState))
        return NULL;

    const AggState *const node = (const AggState *)fcinfo->context;

    for (int i = 0; i < node->numtrans && DO_AGGSPLIT_SERIALIZE(node->aggsplit); ++i)
        if (&node->pertrans[i].transfn == fcinfo->flinfo)
            return node->pertrans[i].serialfn.fn_addr == pgkm_aggregate_serialize ? node->ss.ps.state->es_query_dsa
                                                                                  : NULL;
    return NULL;
}

/* The segment of the parallel query that this process is a worker of. */
static dsm_handle query_of_worker(void)
{
    return IsParallelWorker() ? DatumGetUInt32(MyBgworkerEntry->bgw_main_arg) : DSM_HANDLE_INVALID;
}

int64 shared_rows_of_block(const PgkmRows *rows)
{
    return Max((int64)(BLOCK_BYTES / block_bytes(rows, 1)), (int64)1);
}

bool shared_rows_leave(SharedRows *shared, dsa_area *area, PgkmRows *rows)
{
    const Size bytes = block_bytes(rows, rows->n);

    pgkm_memory_hold(&rows->reserved, bytes);

    const dsa_pointer place = shared_allocate(area, shared->block, bytes);

    if (!DsaPointerIsValid(place)) {
        pgkm_memory_hold(&rows->reserved, -(int64)bytes);
        return false;
    }

    Block *const block = (Block *)dsa_get_address(area, place);
    char *const values = (char *)(block + 1);

    *block = {shared->block, rows->n};
    memcpy(values, rows->values, (Size)rows->n * rows->row_bytes);
    if (rows->weighted)
        memcpy(values + values_bytes(rows, rows->n), rows->weights, rows->n * sizeof(double));
    shared->area = IsParallelWorker() ? NULL : area;
    shared->query = query_of_worker();
    shared->block = place;
    shared->n += rows->n;
    rows->n = 0;
    return true;
}

/* --- reading --- */

/* Whether nothing but the serialization function, called by the executor, can have written what is read. */
static bool is_written_by_executor(FunctionCallInfo fcinfo)
{
    const AggState *const node = (const AggState *)fcinfo->context;
    Oid aggregate = InvalidOid;
    FmgrInfo serialize;

    if (node == NULL || !IsA(node, AggState) || !DO_AGGSPLIT_DESERIALIZE(node->aggsplit))
        return false;
    for (int i = 0; i < node->numtrans; ++i)
        if (&node->pertrans[i].deserialfn == fcinfo->flinfo)
            aggregate = node->pertrans[i].aggref->aggfnoid;

    const HeapTuple tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));

    if (!HeapTupleIsValid(tuple))
        return false;
    fmgr_info(((Form_pg_aggregate)GETSTRUCT(tuple))->aggserialfn, &serialize);
    ReleaseSysCache(tuple);
    return serialize.fn_addr == pgkm_aggregate_serialize;
}

/* Whether the rows are in an area of this process, that of a query with this segment. */
static bool lie_in(const SharedRows *shared, const dsa_area *area, dsm_handle query)
{
    if (area == NULL)
        return false;
    return shared->area != NULL ? shared->area == area : query != DSM_HANDLE_INVALID && shared->query == query;
}

/* Looking for the Gather whose processes have left the rows. */
struct Search {
    const SharedRows *shared;
    PlanState *gather;
    int processes;
    dsa_area *area;
};

static bool search(PlanState *node, void *argument)
{
    Search *const state = (Search *)argument;
    const ParallelExecutorInfo *const parallel = IsA(node, GatherState)        ? ((GatherState *)node)->pei
                                                 : IsA(node, GatherMergeState) ? ((GatherMergeState *)node)->pei
                                                                               : NULL;

    if (parallel == NULL || parallel->pcxt->seg == NULL ||
        !lie_in(state->shared, parallel->area, dsm_segment_handle(parallel->pcxt->seg)))
        return pgkm_planstate_tree_walker(node, search, argument);
    state->gather = node;
    state->processes = parallel->pcxt->nworkers_launched + 1; /* the leader counts, whether it takes part or not */
    state->area = parallel->area;
    return true;
}

int shared_rows_find(FunctionCallInfo fcinfo, const SharedRows *shared, dsa_area **area, bool *last)
{
    Search found = {shared, NULL, 1, NULL};

    if (!is_written_by_executor(fcinfo))
        pgkm_raise_state("It names shared memory, but does not come from a process of a parallel query.");

    AggState *const reader = (AggState *)fcinfo->context;
    dsa_area *const own = reader->ss.ps.state->es_query_dsa;

    /* Both halves of the aggregate may lie below the Gather, in the same process: so it is with a partitionwise
     * aggregate in a part of the plan that each process runs by itself, and in a hashed subquery. */
    if (!search(&reader->ss.ps, &found) && lie_in(shared, own, query_of_worker()))
        found.area = own;
    if (found.area == NULL)
        pgkm_raise_state("Its rows belong to another query.");
    *area = found.area;
    /* A node between, such as a sort, might return the same tuple again in a rescan. */
    *last = found.gather != NULL && outerPlanState(reader) == found.gather;
    return found.processes;
}

/* An area keeps what is freed. */
static void release_block(dsa_area *area, dsa_pointer place, Size bytes)
{
    shared_discard(dsa_get_address(area, place), bytes, true);
    dsa_free(area, place);
}

void shared_rows_append(const SharedRows *shared, dsa_area *area, bool last, PgkmRows *rows)
{
    dsa_pointer place = shared->block;

    while (DsaPointerIsValid(place)) {
        const Block block = *(const Block *)dsa_get_address(area, place);
        const char *const values = (const char *)dsa_get_address(area, place) + sizeof(Block);

        CHECK_FOR_INTERRUPTS();
        pgkm_rows_append(rows, values, values + values_bytes(rows, block.n), block.n);
        if (last)
            release_block(area, place, block_bytes(rows, block.n));
        place = block.next;
    }
}
