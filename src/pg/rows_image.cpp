/*
 * rows_image.cpp - rows on their way from one process of a parallel query to another.
 */
#include "pg/rows_image.h"

#include <cfloat>
#include <cmath>

#include "pg/memory_account.h"
#include "pg/pinned_slices.h"
#include "pg/seal.h"

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

/* Leaves the rows in shared memory, if they are worth it and it has room, and says where. */
static bool leave_rows(PgkmRows *rows, dsa_area *area, double bytes, PgkmRowsImage *image)
{
    if (area == NULL || !pgkm_can_seal())
        return false;
    if (!leave_slices(rows, image)) {
        image->shared = bytes >= LEAST_SHARED_BYTES ? share(area, rows) : InvalidDsaPointer;
        if (!DsaPointerIsValid(image->shared))
            return false;
    }
    image->pid = MyProcPid;
    image->area = area;
    image->segment = segment_of_worker();
    return true;
}

static bool names_memory(const PgkmRowsImage *image)
{
    return image->n_slices != 0 || DsaPointerIsValid(image->shared);
}

/* What a seal is for: the image and its slices. */
static Size sealed_bytes(const PgkmRowsImage *image)
{
    return sizeof *image + image->n_slices * sizeof(SharedSlice);
}

Size pgkm_rows_image_prepare(PgkmRows *rows, FunctionCallInfo fcinfo, PgkmRowsImage *image)
{
    const double bytes = (double) values_bytes(rows) + (double) weights_bytes(rows);

    memset(image, 0, sizeof *image);
    image->element = rows->element;
    image->d = rows->d;
    image->n = rows->n;
    image->weighted = rows->weighted ? 1 : 0;
    if (leave_rows(rows, area_of_part(fcinfo), bytes, image))
        return sealed_bytes(image) + PGKM_SEAL_BYTES;
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
    const char *const start = place;

    place = put(place, image, sizeof *image);
    for (int i = 0; i < image->n_slices; ++i) {
        const SharedSlice slice = shared_view_slice(rows->view, i);

        place = put(place, &slice, sizeof slice);
    }
    if (names_memory(image)) {
        pgkm_seal(start, sealed_bytes(image), place);
        return place + PGKM_SEAL_BYTES;
    }
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
        pgkm_raise_state("Its rows belong to another query.");
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

/* Rows in memory that the image names, once its seal has told that a process of this server wrote it. */
static void view_memory(const PgkmRowsImage *image, const char *place, Size size, FunctionCallInfo fcinfo,
                        PgkmRowsView *view)
{
    PgkmRows *const rows = &view->rows;

    if (image->n_slices < 0 || image->n_slices > SHARED_VIEW_SLICES || size != sealed_bytes(image) + PGKM_SEAL_BYTES)
        pgkm_raise_state("Its length does not match its rows.");
    if (!pgkm_seal_holds(place, sealed_bytes(image), place + sealed_bytes(image)))
        pgkm_raise_state("It names shared memory without the seal of this server.");

    dsa_area *const area = find_area(image, fcinfo, view);

    if (image->n_slices > 0) {
        view_slices(image, place + sizeof *image, view);
        return;
    }
    view->area = area;
    view->shared = image->shared;
    rows->values = (char *) dsa_get_address(area, image->shared);
    rows->weights = rows->weighted ? (double *) (rows->values + weights_offset(rows)) : NULL;
}

/* From unaligned memory; false for NaN, too. */
template <typename T>
static bool all_within(const char *values, Size count, T least, T most)
{
    bool all = true;

    for (Size i = 0; i < count; ++i) {
        T value;

        memcpy(&value, values + i * sizeof(T), sizeof(T));
        all &= value >= least && value <= most;
    }
    return all;
}

/* Rows that follow the image; they may come from anywhere. */
static void view_values(const char *place, Size size, PgkmRowsView *view)
{
    PgkmRows *const rows = &view->rows;
    const Size      row = rows->row_bytes + (rows->weighted ? sizeof(double) : 0);

    if (size % row != 0 || size / row != (Size) rows->n)
        pgkm_raise_state("Its length does not match its rows.");
    rows->values = (char *) place;
    rows->weights = rows->weighted ? (double *) (rows->values + values_bytes(rows)) : NULL;

    const Size count = (Size) rows->n * rows->d;
    const bool usable = rows->element == PGKM_FLOAT32
                            ? all_within<float>(rows->values, count, -FLT_MAX, FLT_MAX)
                            : all_within<double>(rows->values, count, -PGKM_MAX_MAGNITUDE, PGKM_MAX_MAGNITUDE);

    if (!usable)
        pgkm_raise_state("A feature is not finite or too large.");
    if (rows->weighted && !all_within<double>((const char *) rows->weights, rows->n, DBL_TRUE_MIN, PGKM_MAX_MAGNITUDE))
        pgkm_raise_state("A weight is out of its range.");
}

void pgkm_rows_image_view(const char *place, Size size, FunctionCallInfo fcinfo, PgkmRowsView *view)
{
    PgkmRows *const rows = &view->rows;
    PgkmRowsImage   image;

    if (size < sizeof image)
        pgkm_raise_state("It is too short.");
    memcpy(&image, place, sizeof image);
    if ((image.element != PGKM_FLOAT32 && image.element != PGKM_FLOAT64) || image.d < 1 || image.n < 1 ||
        (image.weighted != 0 && image.weighted != 1))
        pgkm_raise_state("A number is out of its range.");
    memset(view, 0, sizeof *view);
    view->processes = 1;
    rows->element = (PgkmElement) image.element;
    rows->d = image.d;
    rows->n = image.n;
    rows->weighted = image.weighted != 0;
    rows->row_bytes = (Size) image.d * pgkm_element_size(rows->element);
    if (names_memory(&image))
        view_memory(&image, place, size, fcinfo, view);
    else
        view_values(place + sizeof image, size - sizeof image, view);
}

void pgkm_raise_state(const char *detail)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                    errmsg("invalid binary form of a state of kmeans or gmm"), errdetail("%s", detail)));
    pg_unreachable();
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
