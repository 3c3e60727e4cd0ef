/*
 * rows_image.cpp - rows on their way from one process of a parallel query to another.
 */
#include "pg/rows_image.h"

#include "pg/memory_account.h"
#include "pg/pinned_slices.h"

extern "C" {
#include "executor/execParallel.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "postmaster/bgworker.h"
#include "storage/dsm_impl.h"
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

void pgkm_rows_image_expect(PgkmRows *rows, FunctionCallInfo fcinfo)
{
    /* Segments in the server's own memory cannot be mapped side by side. */
    if (!IsParallelWorker() || area_of_part(fcinfo) == NULL || rows->weighted || min_dynamic_shared_memory > 0)
        return;

    const Agg *const plan = (const Agg *) ((const AggState *) fcinfo->context)->ss.ps.plan;
    const double     of_group = outerPlan(plan)->plan_rows / Max(plan->numGroups, 1);

    rows->expected = (int64) Min(Max(of_group, 1.0), (double) (PG_INT64_MAX / 4 / rows->row_bytes));
}

/* False when they do not lie in segments, or those cannot be left there. */
static bool leave_slices(PgkmRows *rows, PgkmRowsImage *image)
{
    SharedSlice slices[SHARED_VIEW_SLICES];

    if (rows->view == NULL)
        return false;
    pgkm_rows_trim(rows);
    for (int i = 0; i < rows->view->n_slices; ++i)
        slices[i] = shared_view_slice(rows->view, i);
    if (!pinned_slices_add(slices, rows->view->n_slices))
        return false;
    image->n_slices = rows->view->n_slices;
    return true;
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

    shared_populate(place, bytes);
    memcpy(place, rows->values, values_bytes(rows));
    if (rows->weighted)
        memcpy(place + weights_offset(rows), rows->weights, weights_bytes(rows));
    return shared;
}

Size pgkm_rows_image_prepare(PgkmRows *rows, FunctionCallInfo fcinfo, PgkmRowsImage *image)
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
    if (area != NULL && leave_slices(rows, image))
        return sizeof *image + image->n_slices * sizeof(SharedSlice);
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
    for (int i = 0; i < image->n_slices; ++i) {
        const SharedSlice slice = shared_view_slice(rows->view, i);

        place = put(place, &slice, sizeof slice);
    }
    if (DsaPointerIsValid(image->shared) || image->n_slices > 0)
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

/* Where the process that wrote the image, and this one, have their area. */
static dsa_area *find_area(const PgkmRowsImage *image, FunctionCallInfo fcinfo, PgkmRowsView *view)
{
    AggState *const reader = (AggState *) fcinfo->context;
    Search          found = {image, NULL, NULL};

    if (reader == NULL || !IsA(reader, AggState) || !(search(&reader->ss.ps, &found) || wrote_here(reader, &found)))
        elog(ERROR, "rows of a parallel worker were read outside of its query");
    view->processes = processes_of(found.gather);
    /* A node between might hand out the same tuple again, for a rescan: a sort does. */
    view->last = outerPlanState(reader) == found.gather;
    return found.area;
}

static void view_slices(const PgkmRowsImage *image, const char *place, PgkmRowsView *view)
{
    const Size bytes = image->n_slices * sizeof(SharedSlice);

    view->slices = (SharedSlice *) palloc(bytes);
    view->n_slices = image->n_slices;
    memcpy(view->slices, place, bytes);
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
    if (image.n_slices > 0) {
        (void) find_area(&image, fcinfo, view);
        view_slices(&image, place + sizeof image, view);
    } else if (DsaPointerIsValid(image.shared)) {
        view->area = find_area(&image, fcinfo, view);
        view->shared = image.shared;
        rows->values = (char *) dsa_get_address(view->area, image.shared);
        rows->weights = image.weighted ? (double *) (rows->values + weights_offset(rows)) : NULL;
    } else {
        rows->values = (char *) place + sizeof image;
        rows->weights = image.weighted ? (double *) (rows->values + values_bytes(rows)) : NULL;
    }
}

/* Whoever has mapped the slice in this process, it stays so. */
static void copy_slice(char *to, const SharedSlice *slice, Size bytes)
{
    dsm_segment *const mapped = dsm_find_mapping(slice->handle);
    dsm_segment *const segment = mapped == NULL ? dsm_attach(slice->handle) : mapped;

    if (segment == NULL)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("could not map dynamic shared memory segment")));
    pgkm_copy(to, dsm_segment_address(segment), bytes);
    if (mapped == NULL)
        dsm_detach(segment);
}

static void copy_slices(PgkmRows *to, const PgkmRowsView *view)
{
    const Size bytes = values_bytes(&view->rows);
    Size       offset = 0;

    pgkm_rows_grow(to, view->rows.n);
    for (int i = 0; i < view->n_slices && offset < bytes; ++i) {
        const Size part = Min(view->slices[i].bytes, bytes - offset);

        copy_slice(to->values + to->n * to->row_bytes + offset, &view->slices[i], part);
        offset += part;
    }
    to->n += view->rows.n;
}

void pgkm_rows_view_append(PgkmRows *to, PgkmRowsView *view)
{
    const PgkmRows *rows = &view->rows;
    const bool      take = view->n_slices > 0 && view->last;

    if (take && to->view == NULL)
        (void) pgkm_rows_share(to);
    if (view->n_slices == 0)
        pgkm_rows_append(to, rows->values, (const char *) rows->weights, rows->n);
    else if (!take || !pgkm_rows_take(to, view->slices, view->n_slices, rows->n))
        copy_slices(to, view);
    if (take)
        (void) pinned_slices_take(view->slices, view->n_slices);
    if (view->last && view->area != NULL)
        dsa_free(view->area, view->shared);
}
