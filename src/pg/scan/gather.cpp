/*
 * gather.cpp - brings the rows of all processes together in shared memory, in order.
 */
#include "pg/scan/gather.h"

#include "pg/run/memory_account.h"
#include "pg/compat.h"

extern "C" {
#include "access/parallel.h"
#include "miscadmin.h"
#include "storage/dsm_impl.h"
#include "storage/shmem.h"
}

/* A slice of less would be no help. One of more takes the system a while to provide, which cannot be interrupted; but
 * a server has few segments. */
#define SMALLEST_SLICE ((Size)4 * 1024 * 1024)
#define LARGEST_SLICE ((Size)32 * 1024 * 1024)
#define MOST_SLICES 64

/* Offsets in the view of points. Values come first: at the start, aligned for anything. */
struct PointsLayout {
    Size weights;
    Size end;
};

/* Likewise of origins. */
struct OriginsLayout {
    Size skipped;
    Size ctids;
    Size tables;
    Size labels;
    Size end;
};

static Size part(Size *end, Size count, Size size)
{
    const Size begin = *end;

    *end = CACHELINEALIGN(add_size(begin, mul_size(count, size)));
    return begin;
}

static PointsLayout points_layout(const ScanPlan *plan, int64 capacity)
{
    PointsLayout layout;

    layout.end = 0;
    part(&layout.end, capacity, mul_size(plan->d, pgkm_element_size(plan->decoder.element)));
    layout.weights = part(&layout.end, (plan->query.weight != NULL) ? capacity : 0, sizeof(double));
    return layout;
}

static OriginsLayout origins_layout(const ScanPlan *plan, const ScanPlace *total)
{
    OriginsLayout layout;

    layout.end = 0;
    layout.skipped = part(&layout.end, total->skipped, sizeof(int64));
    layout.ctids = part(&layout.end, plan->wants.ctid ? total->rows : 0, sizeof(ItemPointerData));
    layout.tables = part(&layout.end, plan->wants.table ? total->rows : 0, sizeof(Oid));
    layout.labels = part(&layout.end, plan->wants.label ? total->rows : 0, sizeof(int32));
    return layout;
}

void scan_publish(const ScanReader *reader, ScanPlace *places)
{
    for (int32 i = 0; i < reader->n_notes; ++i)
        places[reader->notes[i].chunk] = reader->notes[i].count;
}

void scan_place(ScanPlace *places, uint32 n_chunks)
{
    ScanPlace next = {0, 0, 0};

    for (uint32 chunk = 0; chunk < n_chunks; ++chunk) {
        const ScanPlace count = places[chunk];

        places[chunk] = next;
        next.rows += count.rows;
        next.used += count.used;
        next.skipped += count.skipped;
    }
    places[n_chunks] = next;
}

void scan_slices_plan(const ScanPlan *plan, int n_processes, ScanSlices *slices)
{
    const Size total = points_layout(plan, plan->expected_rows).end;
    const Size least = Min((Size)n_processes, total / SMALLEST_SLICE + 1);

    slices->bytes = shared_slice_bytes(total, (int)Min(Max(least, total / LARGEST_SLICE), (Size)MOST_SLICES));
    /* Segments in the server's own memory cannot be mapped side by side. Then one is created for all rows, when they
     * are counted. */
    slices->wanted = min_dynamic_shared_memory > 0 ? 0 : (int)(total / slices->bytes + (total % slices->bytes != 0));
    pg_atomic_init_u32(&slices->next, 0);
}

bool scan_slices_make(ScanSlices *slices)
{
    const uint32 slice = pg_atomic_fetch_add_u32(&slices->next, 1);

    if (slice >= (uint32)slices->wanted)
        return false;
    slices->made[slice] = shared_slice_create(slices->bytes);
    return true;
}

void scan_slices_drop(const ScanSlices *slices, int first)
{
    for (int i = first; i < slices->wanted; ++i)
        shared_slice_drop(&slices->made[i]);
}

/* Makes one view of the slices. When they do not suffice, it adds one of what is missing. */
static void create_points(const ScanPlan *plan, int64 n, ScanSlices *slices, PgkmRows *used, ScanTarget *target)
{
    const PointsLayout layout = points_layout(plan, n);
    const Size made = slices->wanted * slices->bytes;
    const int needed = (int)Min(layout.end / slices->bytes + (layout.end % slices->bytes != 0), (Size)slices->wanted);

    pgkm_rows_count(used, layout.end > made ? layout.end : needed * slices->bytes);
    if (layout.end > made)
        slices->made[slices->wanted] = shared_slice_create(layout.end - made);
    pgkm_rows_adopt(used, shared_view_create(used->context, slices->made, layout.end > made ? needed + 1 : needed), n,
                    layout.weights);
    target->points = pgkm_rows_segment(used).handle;
    target->capacity = n;
}

static void create_origins(const ScanPlan *plan, const ScanPlace *total, TableRows *rows, ScanTarget *target)
{
    const OriginsLayout layout = origins_layout(plan, total);

    if (layout.end == 0)
        return;
    pgkm_memory_reserve(layout.end);
    rows->reserved = layout.end;
    table_rows_adopt(rows, shared_segment_create(layout.end, 0));
    target->origins = dsm_segment_handle(rows->segment);

    char *const base = (char *)dsm_segment_address(rows->segment);

    rows->skipped = (int64 *)(base + layout.skipped);
    rows->ctids = plan->wants.ctid ? (ItemPointerData *)(base + layout.ctids) : NULL;
    rows->tables = plan->wants.table ? (Oid *)(base + layout.tables) : NULL;
    rows->labels = plan->wants.label ? (int32 *)(base + layout.labels) : NULL;
}

TableRows *scan_target_create(const ScanPlan *plan, MemoryContext context, const ScanSlices *slices)
{
    TableRows *const rows = table_rows_create(context, plan->wants);

    rows->used = pgkm_rows_create(context, plan->decoder.element, plan->d, (plan->query.weight != NULL));
    rows->widths = scan_plan_widths(plan, context);
    pgkm_rows_count(rows->used, slices->wanted * slices->bytes);
    return rows;
}

void scan_target_points(const ScanPlan *plan, int64 n, ScanSlices *slices, TableRows *rows, ScanTarget *target)
{
    target->points = DSM_HANDLE_INVALID;
    target->capacity = 0;
    if (n > 0)
        create_points(plan, n, slices, rows->used, target);
    else
        pgkm_rows_count(rows->used, 0);
}

void scan_target_origins(const ScanPlan *plan, const ScanPlace *places, TableRows *rows, ScanTarget *target)
{
    const ScanPlace *total = &places[plan->n_chunks];

    target->origins = DSM_HANDLE_INVALID;
    create_origins(plan, total, rows, target);
    rows->used->n = total->used;
    rows->n = rows->capacity = total->rows;
    rows->n_skipped = rows->skipped_capacity = total->skipped;
}

static void copy_part(char *target, int64 to, const void *source, int64 from, int64 count, Size size)
{
    if (count == 0)
        return;
    memcpy(target + to * size, (const char *)source + from * size, count * size);
}

/* Positions of skipped rows count from the first of all rows. */
static void copy_skipped(int64 *target, const TableRows *rows, const ScanPlace *from, const ScanNote *note,
                         const ScanPlace *to)
{
    for (int64 i = 0; i < note->count.skipped; ++i)
        target[to->skipped + i] = rows->skipped[from->skipped + i] - from->rows + to->rows;
}

/* One process's way to where all rows belong. */
struct Copy {
    const ScanPlan *plan;
    const TableRows *rows;
    SharedView *points;
    Size weights; /* offset in it */
    char *origins;
    OriginsLayout layout;
};

static void copy_points(const Copy *copy, int64 to, int64 from, int64 count)
{
    const PgkmRows *used = copy->rows->used;

    if (count == 0 || copy->points == NULL)
        return;
    shared_view_write(copy->points, to * used->row_bytes, used->values + from * used->row_bytes,
                      count * used->row_bytes);
    if (copy->plan->query.weight != NULL)
        shared_view_write(copy->points, copy->weights + to * sizeof(double), used->weights + from,
                          count * sizeof(double));
}

static void copy_chunk(const Copy *copy, const ScanNote *note, const ScanPlace *from, const ScanPlace *to)
{
    const TableRows *rows = copy->rows;
    char *const origins = copy->origins;

    copy_points(copy, to->used, from->used, note->count.used);
    if (copy->plan->wants.ctid)
        copy_part(origins + copy->layout.ctids, to->rows, rows->ctids, from->rows, note->count.rows,
                  sizeof(ItemPointerData));
    if (copy->plan->wants.table)
        copy_part(origins + copy->layout.tables, to->rows, rows->tables, from->rows, note->count.rows, sizeof(Oid));
    if (copy->plan->wants.label)
        copy_part(origins + copy->layout.labels, to->rows, rows->labels, from->rows, note->count.rows, sizeof(int32));
    copy_skipped((int64 *)(origins + copy->layout.skipped), rows, from, note, to);
}

void scan_copy(const ScanReader *reader, const ScanPlace *places, const ScanTarget *target, SharedView *points,
               char *origins, int n_processes)
{
    const ScanPlan *plan = reader->plan;
    const Copy copy = {plan,    reader->rows,
                       points,  points_layout(plan, target->capacity).weights,
                       origins, origins_layout(plan, &places[plan->n_chunks])};
    /* Every process begins elsewhere, for one process at a time writes to a slice. */
    const int32 first = (int32)((int64)reader->n_notes * ((ParallelWorkerNumber + 1) % n_processes) / n_processes);

    for (int round = 0; round < 2; ++round) {
        ScanPlace from = {0, 0, 0};

        for (int32 i = 0; i < reader->n_notes; ++i) {
            const ScanNote *const note = &reader->notes[i];

            CHECK_FOR_INTERRUPTS();
            if ((i >= first) == (round == 0))
                copy_chunk(&copy, note, &from, &places[note->chunk]);
            from.rows += note->count.rows;
            from.used += note->count.used;
            from.skipped += note->count.skipped;
        }
    }
}
