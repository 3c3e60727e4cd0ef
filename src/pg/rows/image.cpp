/*
 * image.cpp - rows written for another process of a parallel query.
 */
#include "pg/rows/image.h"

#include "pg/run/memory_account.h"
#include "pg/shared/pinned_slices.h"
#include "pg/shared/seal.h"

extern "C" {
#include "access/parallel.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "postmaster/bgworker.h"
#include "storage/dsm_impl.h"
#include "utils/memutils.h"
}

/* Bytes left for the tuple and message around a state, below the largest allocation. */
#define TUPLE_MARGIN 65536

/* Fewer bytes are copied faster than they are left in shared memory. */
#define LEAST_SHARED_BYTES 16384

/* Some of the shared memory is left to others. */
#define SHARED_FACTOR 1.1

/* The area of the parallel query in which this process reads a part; NULL elsewhere. Only for a partial aggregate of
 * the executor: a state that is serialized for another purpose has to carry its rows. A distributed planner sends it
 * to another server. */
static dsa_area *area_of_part(FunctionCallInfo fcinfo)
{
    if (fcinfo->context == NULL || !IsA(fcinfo->context, AggState))
        return NULL;

    const AggState *const state = (const AggState *)fcinfo->context;

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

    const Agg *const plan = (const Agg *)((const AggState *)fcinfo->context)->ss.ps.plan;
    const double of_group = outerPlan(plan)->plan_rows / Max(plan->numGroups, 1);

    rows->expected = (int64)Min(Max(of_group, 1.0), (double)(PG_INT64_MAX / 4 / rows->row_bytes));
}

/* Leaves the segments that hold the rows for the leader. False when the rows do not lie in segments, or these cannot
 * be left. */
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
    const Size bytes = pgkm_weights_offset(rows) + pgkm_weights_bytes(rows);
    const dsa_pointer shared =
        pgkm_fits_shared_memory((double)bytes * SHARED_FACTOR)
            ? dsa_allocate_extended(area, bytes, DSA_ALLOC_NO_OOM | (bytes >= MaxAllocSize ? DSA_ALLOC_HUGE : 0))
            : InvalidDsaPointer;

    if (!DsaPointerIsValid(shared))
        return shared;

    char *const place = (char *)dsa_get_address(area, shared);

    shared_populate(place, bytes);
    memcpy(place, rows->values, pgkm_values_bytes(rows));
    if (rows->weighted)
        memcpy(place + pgkm_weights_offset(rows), rows->weights, pgkm_weights_bytes(rows));
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

Size pgkm_rows_image_prepare(PgkmRows *rows, FunctionCallInfo fcinfo, PgkmRowsImage *image)
{
    const double bytes = (double)pgkm_values_bytes(rows) + (double)pgkm_weights_bytes(rows);

    memset(image, 0, sizeof *image);
    image->element = rows->element;
    image->d = rows->d;
    image->n = rows->n;
    image->weighted = rows->weighted ? 1 : 0;
    if (leave_rows(rows, area_of_part(fcinfo), bytes, image))
        return pgkm_image_sealed_bytes(image) + PGKM_SEAL_BYTES;
    if (bytes > (double)(MaxAllocSize - TUPLE_MARGIN))
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("rows collected by a parallel worker exceed the maximum size of a value"),
                        errhint("Provide more shared memory, or set \"max_parallel_workers_per_gather\" to 0.")));
    return sizeof *image + pgkm_values_bytes(rows) + pgkm_weights_bytes(rows);
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
    if (pgkm_image_names_memory(image)) {
        pgkm_seal(start, pgkm_image_sealed_bytes(image), place);
        return place + PGKM_SEAL_BYTES;
    }
    place = put(place, rows->values, pgkm_values_bytes(rows));
    return put(place, rows->weights, pgkm_weights_bytes(rows));
}
