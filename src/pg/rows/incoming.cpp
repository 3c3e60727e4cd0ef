/*
 * incoming.cpp - rows that another process of a parallel query has written, read where they lie.
 */
#include "pg/rows/image.h"

#include <cfloat>

#include "pg/shared/pinned_slices.h"
#include "pg/shared/seal.h"

extern "C" {
#include "executor/execParallel.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
}

/* Looking for the Gather whose processes wrote an image. */
struct Search {
    const PgkmRowsImage *image;
    const PlanState *gather; /* NULL: not found */
    dsa_area *area;
};

static ParallelExecutorInfo *parallel_of(PlanState *node)
{
    if (IsA(node, GatherState))
        return ((GatherState *)node)->pei;
    if (IsA(node, GatherMergeState))
        return ((GatherMergeState *)node)->pei;
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
    Search *const state = (Search *)argument;
    ParallelExecutorInfo *const parallel = parallel_of(node);

    if (parallel == NULL)
        return pgkm_planstate_tree_walker(node, search, argument);
    if (!wrote(parallel, state->image))
        return false;
    state->gather = node;
    state->area = parallel->area;
    return true;
}

/* Whether this process wrote the image itself: both halves of the aggregate may lie below the Gather. So it is with
 * a partitionwise aggregate in a part of the plan that each process runs by itself, and in a hashed subquery. */
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
    return 1 + (IsA(gather, GatherState) ? ((const GatherState *)gather)->nworkers_launched
                                         : ((const GatherMergeState *)gather)->nworkers_launched);
}

/* The area of the process that wrote the image, as this process has it. */
static dsa_area *find_area(const PgkmRowsImage *image, FunctionCallInfo fcinfo, PgkmIncomingRows *incoming)
{
    AggState *const reader = (AggState *)fcinfo->context;
    Search found = {image, NULL, NULL};

    if (reader == NULL || !IsA(reader, AggState) || !(search(&reader->ss.ps, &found) || wrote_here(reader, &found)))
        pgkm_raise_state("Its rows belong to another query.");
    incoming->processes = processes_of(found.gather);
    /* A node between, such as a sort, might return the same tuple again in a rescan. */
    incoming->last = outerPlanState(reader) == found.gather;
    return found.area;
}

static void read_slices(const PgkmRowsImage *image, const char *place, PgkmIncomingRows *incoming)
{
    const Size bytes = image->n_slices * sizeof(SharedSlice);

    incoming->slices = (SharedSlice *)palloc(bytes);
    incoming->n_slices = image->n_slices;
    memcpy(incoming->slices, place, bytes);
}

/* Rows in memory that the image names, once its seal has told that a process of this server wrote it. */
static void read_memory(const PgkmRowsImage *image, const char *place, Size size, FunctionCallInfo fcinfo,
                        PgkmIncomingRows *incoming)
{
    PgkmRows *const rows = &incoming->rows;

    if (image->n_slices < 0 || image->n_slices > SHARED_VIEW_SLICES ||
        size != pgkm_image_sealed_bytes(image) + PGKM_SEAL_BYTES)
        pgkm_raise_state("Its length does not match its rows.");
    if (!pgkm_seal_holds(place, pgkm_image_sealed_bytes(image), place + pgkm_image_sealed_bytes(image)))
        pgkm_raise_state("It names shared memory without the seal of this server.");

    dsa_area *const area = find_area(image, fcinfo, incoming);

    if (image->n_slices > 0) {
        read_slices(image, place + sizeof *image, incoming);
        return;
    }
    incoming->area = area;
    incoming->shared = image->shared;
    rows->values = (char *)dsa_get_address(area, image->shared);
    rows->weights = rows->weighted ? (double *)(rows->values + pgkm_weights_offset(rows)) : NULL;
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
static void read_values(const char *place, Size size, PgkmIncomingRows *incoming)
{
    PgkmRows *const rows = &incoming->rows;
    const Size row = rows->row_bytes + (rows->weighted ? sizeof(double) : 0);

    if (size % row != 0 || size / row != (Size)rows->n)
        pgkm_raise_state("Its length does not match its rows.");
    rows->values = (char *)place;
    rows->weights = rows->weighted ? (double *)(rows->values + pgkm_values_bytes(rows)) : NULL;

    const Size count = (Size)rows->n * rows->d;
    const bool usable = rows->element == PGKM_FLOAT32
                            ? all_within<float>(rows->values, count, -FLT_MAX, FLT_MAX)
                            : all_within<double>(rows->values, count, -PGKM_MAX_MAGNITUDE, PGKM_MAX_MAGNITUDE);

    if (!usable)
        pgkm_raise_state("A feature is not finite or too large.");
    if (rows->weighted && !all_within<double>((const char *)rows->weights, rows->n, DBL_TRUE_MIN, PGKM_MAX_MAGNITUDE))
        pgkm_raise_state("A weight is out of its range.");
}

void pgkm_rows_image_read(const char *place, Size size, FunctionCallInfo fcinfo, PgkmIncomingRows *incoming)
{
    PgkmRows *const rows = &incoming->rows;
    PgkmRowsImage image;

    if (size < sizeof image)
        pgkm_raise_state("It is too short.");
    memcpy(&image, place, sizeof image);
    if ((image.element != PGKM_FLOAT32 && image.element != PGKM_FLOAT64) || image.d < 1 || image.n < 1 ||
        (image.weighted != 0 && image.weighted != 1))
        pgkm_raise_state("A number is out of its range.");
    memset(incoming, 0, sizeof *incoming);
    incoming->processes = 1;
    rows->element = (PgkmElement)image.element;
    rows->d = image.d;
    rows->n = image.n;
    rows->weighted = image.weighted != 0;
    rows->row_bytes = (Size)image.d * pgkm_element_size(rows->element);
    if (pgkm_image_names_memory(&image))
        read_memory(&image, place, size, fcinfo, incoming);
    else
        read_values(place + sizeof image, size - sizeof image, incoming);
}

void pgkm_raise_state(const char *detail)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                    errmsg("invalid binary form of a state of kmeans or gmm"), errdetail("%s", detail)));
    pg_unreachable();
}

/* A slice that something in this process has mapped stays mapped. */
static void copy_slice(char *to, const SharedSlice *slice, Size bytes)
{
    dsm_segment *const mapped = dsm_find_mapping(slice->handle);
    dsm_segment *const segment = mapped == NULL ? shared_segment_attach(slice->handle) : mapped;

    pgkm_copy(to, dsm_segment_address(segment), bytes);
    if (mapped == NULL)
        dsm_detach(segment);
}

static void copy_slices(PgkmRows *to, const PgkmIncomingRows *incoming)
{
    const Size bytes = pgkm_values_bytes(&incoming->rows);
    Size offset = 0;

    pgkm_rows_grow(to, incoming->rows.n);
    for (int i = 0; i < incoming->n_slices && offset < bytes; ++i) {
        const Size part = Min(incoming->slices[i].bytes, bytes - offset);

        copy_slice(to->values + to->n * to->row_bytes + offset, &incoming->slices[i], part);
        offset += part;
    }
    to->n += incoming->rows.n;
}

void pgkm_rows_append_incoming(PgkmRows *to, PgkmIncomingRows *incoming)
{
    const PgkmRows *rows = &incoming->rows;
    const bool take = incoming->n_slices > 0 && incoming->last;

    if (take && to->view == NULL)
        (void)pgkm_rows_share(to);
    if (incoming->n_slices == 0)
        pgkm_rows_append(to, rows->values, (const char *)rows->weights, rows->n);
    else if (!take || !pgkm_rows_take(to, incoming->slices, incoming->n_slices, rows->n))
        copy_slices(to, incoming);
    if (take)
        (void)pinned_slices_take(incoming->slices, incoming->n_slices);
    if (incoming->last && incoming->area != NULL)
        dsa_free(incoming->area, incoming->shared);
}
