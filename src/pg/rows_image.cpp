/*
 * rows_image.cpp - rows on their way from one process of a parallel query to another.
 */
#include "pg/rows_image.h"

#include <sys/mman.h>

#include "pg/boundary.h"

extern "C" {
#include "executor/execParallel.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "postmaster/bgworker.h"
#include "utils/memutils.h"
}

/* Left free below the largest allocation for the tuple and message around a state. */
#define TUPLE_MARGIN 65536

/* Rows of fewer bytes are copied faster than they are left somewhere. */
#define LEAST_SHARED_BYTES 16384

/* Some of the shared memory is left to others. */
#define SHARED_FACTOR 1.1

static Size values_bytes(const PgkmRows *rows)
{
    return rows->n * rows->row_bytes;
}

static Size weights_bytes(const PgkmRows *rows)
{
    return rows->weighted ? rows->n * sizeof(double) : 0;
}

/* The weights' place behind the values in shared memory. */
static Size weights_offset(const PgkmRows *rows)
{
    return MAXALIGN(values_bytes(rows));
}

/*
 * The area of the parallel query that this process reads a part of; NULL elsewhere. Only for
 * a partial aggregate of the executor's own: a state that is serialized for another purpose
 * (a distributed planner sends it to another server) has to carry its rows.
 */
static dsa_area *area_of_part(FunctionCallInfo fcinfo)
{
    if (fcinfo->context == NULL || !IsA(fcinfo->context, AggState))
        return NULL;

    const AggState *const state = (const AggState *) fcinfo->context;

    return DO_AGGSPLIT_SERIALIZE(state->aggsplit) ? state->ss.ps.state->es_query_dsa : NULL;
}

/* The segment of the parallel query that this process is a worker of; the leader is in none. */
static dsm_handle segment_of_worker(void)
{
    return IsParallelWorker() ? DatumGetUInt32(MyBgworkerEntry->bgw_main_arg) : DSM_HANDLE_INVALID;
}

/* Fresh pages cost less when they are asked for at once than one fault at a time. */
static void populate(char *begin, Size bytes)
{
#ifdef MADV_POPULATE_WRITE
    const uintptr_t page = 4096;
    const uintptr_t first = TYPEALIGN_DOWN(page, (uintptr_t) begin);

    (void) madvise((void *) first, TYPEALIGN(page, (uintptr_t) begin + bytes) - first, MADV_POPULATE_WRITE);
#endif
}

static dsa_pointer share(dsa_area *area, const PgkmRows *rows)
{
    const Size        bytes = weights_offset(rows) + weights_bytes(rows);
    const dsa_pointer shared =
        pgkm_fits_shared_memory((double) bytes * SHARED_FACTOR)
            ? dsa_allocate_extended(area, bytes, DSA_ALLOC_NO_OOM | (bytes >= MaxAllocSize ? DSA_ALLOC_HUGE : 0))
            : InvalidDsaPointer;

    if (!DsaPointerIsValid(shared))
        return shared;

    char *const place = (char *) dsa_get_address(area, shared);

    populate(place, bytes);
    memcpy(place, rows->values, values_bytes(rows));
    if (rows->weighted)
        memcpy(place + weights_offset(rows), rows->weights, weights_bytes(rows));
    return shared;
}

Size pgkm_rows_image_prepare(const PgkmRows *rows, FunctionCallInfo fcinfo, PgkmRowsImage *image)
{
    const double    bytes = (double) values_bytes(rows) + (double) weights_bytes(rows);
    dsa_area *const area = area_of_part(fcinfo);

    memset(image, 0, sizeof *image);
    image->element = rows->element;
    image->d = rows->d;
    image->n = rows->n;
    image->weighted = rows->weighted;
    image->pid = MyProcPid;
    image->area = area;
    image->segment = segment_of_worker();
    image->shared = area != NULL && bytes >= LEAST_SHARED_BYTES ? share(area, rows) : InvalidDsaPointer;
    if (DsaPointerIsValid(image->shared))
        return sizeof *image;
    if (bytes > (double) (MaxAllocSize - TUPLE_MARGIN))
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("rows collected by a parallel worker exceed the maximum size of a value"),
                        errhint("Provide more shared memory, or set \"max_parallel_workers_per_gather\" to 0.")));
    return sizeof *image + values_bytes(rows) + weights_bytes(rows);
}

static char *put(char *place, const void *bytes, Size size)
{
    if (size != 0)
        memcpy(place, bytes, size);
    return place + size;
}

char *pgkm_rows_image_write(const PgkmRows *rows, const PgkmRowsImage *image, char *place)
{
    place = put(place, image, sizeof *image);
    if (DsaPointerIsValid(image->shared))
        return place;
    place = put(place, rows->values, values_bytes(rows));
    return put(place, rows->weights, weights_bytes(rows));
}

/* Looking for the Gather whose processes wrote an image. */
struct Search {
    const PgkmRowsImage *image;
    const PlanState     *gather; /* NULL: not found */
    dsa_area            *area;
};

static ParallelExecutorInfo *parallel_of(PlanState *node)
{
    if (IsA(node, GatherState))
        return ((GatherState *) node)->pei;
    if (IsA(node, GatherMergeState))
        return ((GatherMergeState *) node)->pei;
    return NULL;
}

/* The leader is one of the processes, too. */
static bool wrote(const ParallelExecutorInfo *parallel, const PgkmRowsImage *image)
{
    if (image->pid == MyProcPid)
        return parallel->area == image->area;
    return parallel->pcxt->seg != NULL && dsm_segment_handle(parallel->pcxt->seg) == image->segment;
}

static bool search(PlanState *node, void *argument)
{
    Search *const               state = (Search *) argument;
    ParallelExecutorInfo *const parallel = parallel_of(node);

    if (parallel == NULL)
        return pgkm_planstate_tree_walker(node, search, argument);
    if (!wrote(parallel, state->image))
        return false;
    state->gather = node;
    state->area = parallel->area;
    return true;
}

/* Both halves of the aggregate may lie below the Gather: a partitionwise one in a part of the plan
 * that each process runs by itself, as it does a hashed subquery. */
static bool wrote_here(const AggState *reader, Search *state)
{
    state->area = reader->ss.ps.state->es_query_dsa;
    return state->area != NULL && state->image->pid == MyProcPid && state->image->area == state->area;
}

/* The leader counts as one, whether it takes part or not. */
static int processes_of(const PlanState *gather)
{
    if (gather == NULL)
        return 1;
    return 1 + (IsA(gather, GatherState) ? ((const GatherState *) gather)->nworkers_launched
                                         : ((const GatherMergeState *) gather)->nworkers_launched);
}

static void view_shared(const PgkmRowsImage *image, FunctionCallInfo fcinfo, PgkmRowsView *view)
{
    AggState *const reader = (AggState *) fcinfo->context;
    Search          found = {image, NULL, NULL};

    if (reader == NULL || !IsA(reader, AggState) || !(search(&reader->ss.ps, &found) || wrote_here(reader, &found)))
        elog(ERROR, "rows of a parallel worker were read outside of its query");
    view->rows.values = (char *) dsa_get_address(found.area, image->shared);
    view->processes = processes_of(found.gather);
    /* A node between might hand out the same tuple again, for a rescan: a sort does. */
    if (outerPlanState(reader) == found.gather) {
        view->area = found.area;
        view->shared = image->shared;
    }
}

void pgkm_rows_image_view(const char *place, FunctionCallInfo fcinfo, PgkmRowsView *view)
{
    PgkmRows *const rows = &view->rows;
    PgkmRowsImage   image;

    memcpy(&image, place, sizeof image);
    memset(view, 0, sizeof *view);
    view->processes = 1;
    rows->element = image.element;
    rows->d = image.d;
    rows->n = image.n;
    rows->weighted = image.weighted;
    rows->row_bytes = (Size) image.d * pgkm_element_size(image.element);
    if (DsaPointerIsValid(image.shared)) {
        view_shared(&image, fcinfo, view);
        rows->weights = image.weighted ? (double *) (rows->values + weights_offset(rows)) : NULL;
    } else {
        rows->values = (char *) place + sizeof image;
        rows->weights = image.weighted ? (double *) (rows->values + values_bytes(rows)) : NULL;
    }
}

void pgkm_rows_view_release(PgkmRowsView *view)
{
    if (view->area != NULL)
        dsa_free(view->area, view->shared);
    view->area = NULL;
}
