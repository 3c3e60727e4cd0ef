/*
 * scan_gather.cpp - from the rows of single processes to all rows in order.
 */
#include "pg/scan_gather.h"

#include <sys/mman.h>

#include "pg/boundary.h"
#include "pg/compat.h"

extern "C" {
#include "miscadmin.h"
#include "storage/shmem.h"
}

/* Offsets in the segment of points. Values come first: at the start, aligned for anything. */
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
    part(&layout.end, capacity, mul_size(plan->d, pgkm_element_size(plan->element)));
    layout.weights = part(&layout.end, plan->weighted ? capacity : 0, sizeof(double));
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

/* Called while an error is being reported. */
static void hint_at_shared_memory(void *)
{
    if (geterrcode() != ERRCODE_QUERY_CANCELED)
        errhint("Provide more shared memory, or set max_parallel_workers_per_gather to 0: one process needs none.");
}

static dsm_segment *create_segment(Size bytes)
{
    ErrorContextCallback callback;

    callback.callback = hint_at_shared_memory;
    callback.arg = NULL;
    callback.previous = error_context_stack;
    error_context_stack = &callback;

    dsm_segment *const segment = dsm_create(bytes, 0);

    error_context_stack = callback.previous;
    return segment;
}

static void create_points(const ScanPlan *plan, int64 capacity, PgkmRows *used, ScanTarget *target)
{
    const PointsLayout layout = points_layout(plan, capacity);

    pgkm_memory_reserve(layout.end);
    used->reserved = layout.end;
    pgkm_rows_adopt(used, create_segment(layout.end), capacity, layout.weights);
    target->points = dsm_segment_handle(used->segment);
    target->capacity = capacity;
}

static void create_origins(const ScanPlan *plan, const ScanPlace *total, TableRows *rows, ScanTarget *target)
{
    const OriginsLayout layout = origins_layout(plan, total);

    if (layout.end == 0)
        return;
    pgkm_memory_reserve(layout.end);
    rows->reserved = layout.end;
    table_rows_adopt(rows, create_segment(layout.end));
    target->origins = dsm_segment_handle(rows->segment);

    char *const base = (char *) dsm_segment_address(rows->segment);

    rows->skipped = (int64 *) (base + layout.skipped);
    rows->ctids = plan->wants.ctid ? (ItemPointerData *) (base + layout.ctids) : NULL;
    rows->tables = plan->wants.table ? (Oid *) (base + layout.tables) : NULL;
    rows->labels = plan->wants.label ? (int32 *) (base + layout.labels) : NULL;
}

TableRows *scan_target_create(const ScanPlan *plan, MemoryContext context, ScanTarget *target)
{
    TableRows *const rows = table_rows_create(context, plan->wants);

    rows->used = pgkm_rows_create(context, plan->element, plan->d, plan->weighted);
    target->points = target->origins = DSM_HANDLE_INVALID;
    target->capacity = 0;
    if (plan->expected_rows > 0)
        create_points(plan, plan->expected_rows, rows->used, target);
    return rows;
}

void scan_target_fit(const ScanPlan *plan, const ScanPlace *places, TableRows *rows, ScanTarget *target)
{
    const ScanPlace *total = &places[plan->n_chunks];

    /* Statistics may be wrong by any factor; half of a segment is too much to waste. */
    if (total->used > target->capacity || total->used < target->capacity / 2) {
        pgkm_rows_clear(rows->used);
        target->points = DSM_HANDLE_INVALID;
        target->capacity = 0;
        if (total->used > 0)
            create_points(plan, total->used, rows->used, target);
    }
    create_origins(plan, total, rows, target);
    rows->used->n = total->used;
    rows->n = rows->capacity = total->rows;
    rows->n_skipped = rows->skipped_capacity = total->skipped;
}

/* Fresh pages cost less when they are asked for at once than one fault at a time. Where that
 * is not to be had, the faults come. */
static void populate(char *begin, Size bytes)
{
#ifdef MADV_POPULATE_WRITE
    const uintptr_t page = 4096;
    const uintptr_t first = TYPEALIGN_DOWN(page, (uintptr_t) begin);
    const uintptr_t end = TYPEALIGN(page, (uintptr_t) begin + bytes);

    (void) madvise((void *) first, end - first, MADV_POPULATE_WRITE);
#endif
}

static void copy_part(char *target, int64 to, const void *source, int64 from, int64 count, Size size)
{
    if (count == 0)
        return;
    populate(target + to * size, count * size);
    memcpy(target + to * size, (const char *) source + from * size, count * size);
}

/* Positions of skipped rows count from the first of all rows. */
static void copy_skipped(int64 *target, const TableRows *rows, const ScanPlace *from, const ScanNote *note,
                         const ScanPlace *to)
{
    for (int64 i = 0; i < note->count.skipped; ++i)
        target[to->skipped + i] = rows->skipped[from->skipped + i] - from->rows + to->rows;
}

void scan_copy(const ScanReader *reader, const ScanPlace *places, const ScanTarget *target, char *points,
               char *origins)
{
    const ScanPlan     *plan = reader->plan;
    const TableRows    *rows = reader->rows;
    const PgkmRows     *used = rows->used;
    const Size          weights = points_layout(plan, target->capacity).weights;
    const OriginsLayout layout = origins_layout(plan, &places[plan->n_chunks]);
    ScanPlace           from = {0, 0, 0};

    for (int32 i = 0; i < reader->n_notes; ++i) {
        const ScanNote *const  note = &reader->notes[i];
        const ScanPlace *const to = &places[note->chunk];

        CHECK_FOR_INTERRUPTS();
        if (note->count.used > 0)
            copy_part(points, to->used, used->values, from.used, note->count.used, used->row_bytes);
        if (plan->weighted && note->count.used > 0)
            copy_part(points + weights, to->used, used->weights, from.used, note->count.used, sizeof(double));
        if (plan->wants.ctid)
            copy_part(origins + layout.ctids, to->rows, rows->ctids, from.rows, note->count.rows,
                      sizeof(ItemPointerData));
        if (plan->wants.table)
            copy_part(origins + layout.tables, to->rows, rows->tables, from.rows, note->count.rows, sizeof(Oid));
        if (plan->wants.label)
            copy_part(origins + layout.labels, to->rows, rows->labels, from.rows, note->count.rows, sizeof(int32));
        copy_skipped((int64 *) (origins + layout.skipped), rows, &from, note, to);
        from.rows += note->count.rows;
        from.used += note->count.used;
        from.skipped += note->count.skipped;
    }
}
