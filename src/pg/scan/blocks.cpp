/*
 * blocks.cpp - leaves the rows of a parallel scan in blocks, and brings them together.
 */
#include "pg/scan/blocks.h"

#include "pg/compat.h"
#include "pg/run/run_job.h"
#include "pg/service/session.h"
#include "pg/settings.h"
#include "pg/shared/area.h"
#include "pg/shared/pages.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
}

/* A block is written while its rows are still in the processor's cache. */
#define BLOCK_BYTES ((Size)512 * 1024)

/* A thread for fewer bytes saves no time. */
#define BYTES_PER_THREAD ((Size)4 * 1024 * 1024)

/* The head of a block, before the arrays of ScanArrays. */
struct ScanBlock {
    uint64 next; /* of the chunk, as ScanChunkRows.first */
    ScanPlace count;
};

/* Where arrays lie in a block, in bytes from its head; positions of skipped rows count from its first row. */
struct ScanArrays {
    Size values;
    Size weights;
    Size skipped;
    Size ctids;
    Size labels;
    Size end;
};

static Size add_array(Size *end, int64 count, Size size)
{
    const Size begin = *end;

    *end = MAXALIGN(begin + (Size)count * size);
    return begin;
}

static ScanArrays arrays_of(const ScanPlan *plan, const ScanPlace *count)
{
    ScanArrays arrays;

    arrays.end = MAXALIGN(sizeof(ScanBlock));
    arrays.values = add_array(&arrays.end, count->used, plan->d * pgkm_element_size(plan->decoder.element));
    arrays.weights = add_array(&arrays.end, plan->query.weight != NULL ? count->used : 0, sizeof(double));
    arrays.skipped = add_array(&arrays.end, table_wants_any(&plan->wants) ? count->skipped : 0, sizeof(int64));
    arrays.ctids = add_array(&arrays.end, plan->wants.ctid ? count->rows : 0, sizeof(ItemPointerData));
    arrays.labels = add_array(&arrays.end, plan->wants.label ? count->rows : 0, sizeof(int32));
    return arrays;
}

int64 scan_block_rows(const ScanPlan *plan)
{
    const Size row = (Size)scan_features_bytes(plan) + table_origin_bytes(&plan->wants);

    return Max((int64)(BLOCK_BYTES / row), (int64)1);
}

/* --- leaving --- */

static ScanBlock *block_at(const ScanReader *reader, bool shared, uint64 place)
{
    return (ScanBlock *)(shared ? dsa_get_address(reader->area, place) : (void *)(uintptr_t)place);
}

/* 0 where there is no room. */
static uint64 allocate_shared(ScanReader *reader, Size bytes)
{
    return shared_area_has_room(reader->area, reader->last, bytes) ? shared_area_allocate(reader->area, bytes) : 0;
}

/* The buffer is used again. */
static void empty_buffer(TableRows *rows)
{
    rows->n = rows->n_skipped = rows->used->n = rows->n_ranges = 0;
}

bool scan_block_leave(ScanReader *reader)
{
    TableRows *const rows = reader->rows;
    PgkmRows *const used = rows->used;
    const ScanPlace count = {rows->n, used->n, rows->n_skipped};
    const ScanArrays arrays = arrays_of(reader->plan, &count);
    const bool shared = reader->area_is_used;

    if (count.rows == 0)
        return true;
    /* Counted with the buffer's rows, which release it if an error comes. */
    pgkm_memory_hold(&rows->reserved, arrays.end, rows->estimate);

    const uint64 place = shared ? allocate_shared(reader, arrays.end)
                                : (uint64)(uintptr_t)MemoryContextAllocHuge(GetMemoryChunkContext(reader), arrays.end);

    if (place == 0) {
        pgkm_memory_hold(&rows->reserved, -(int64)arrays.end);
        return false;
    }

    char *const block = (char *)block_at(reader, shared, place);

    *(ScanBlock *)block = {0, count};
    memcpy(block + arrays.values, used->values, used->n * used->row_bytes);
    if (used->weighted)
        memcpy(block + arrays.weights, used->weights, used->n * sizeof(double));
    if (table_wants_any(&rows->wants) && count.skipped > 0)
        memcpy(block + arrays.skipped, rows->skipped, count.skipped * sizeof(int64));
    if (rows->wants.ctid)
        memcpy(block + arrays.ctids, rows->ctids, count.rows * sizeof(ItemPointerData));
    if (rows->wants.label)
        memcpy(block + arrays.labels, rows->labels, count.rows * sizeof(int32));
    if (reader->first == 0)
        reader->first = place;
    else
        block_at(reader, shared, reader->last)->next = place;
    reader->last = place;
    reader->n_left += count.rows;
    empty_buffer(rows);
    return true;
}

void scan_block_publish(ScanReader *reader, uint32 chunk)
{
    reader->chunks[chunk] = {reader->first, true, reader->area_is_used};
    reader->first = 0;
}

void scan_block_drop(ScanReader *reader)
{
    TableRows *const rows = reader->rows;

    for (uint64 place = reader->first; place != 0;) {
        ScanBlock *const block = block_at(reader, true, place);
        const uint64 next = block->next;
        const Size bytes = arrays_of(reader->plan, &block->count).end;

        pgkm_memory_hold(&rows->reserved, -(int64)bytes);
        dsa_free(reader->area, place);
        place = next;
    }
    reader->first = 0;
    empty_buffer(rows);
}

/* --- bringing together: from here on nothing calls the server in another thread --- */

struct Source {
    ScanBlock *block;
    ScanPlace at; /* where its rows belong */
    bool shared;
};

struct Gathering {
    const ScanPlan *plan;
    TableRows *rows;
    Source *sources;
    int64 n_sources;
    int64 capacity;
    ScanPlace total;
    pg_atomic_uint32 no_memory; /* 1: for a part of the segment */
};

static void add_source(Gathering *all, ScanBlock *block, bool shared)
{
    if (all->n_sources == all->capacity) {
        all->capacity = pgkm_next_capacity(all->capacity, all->n_sources + 1, sizeof(Source));
        all->sources = (Source *)pgkm_resize(CurrentMemoryContext, all->sources, all->capacity, sizeof(Source));
    }
    all->sources[all->n_sources++] = {block, all->total, shared};
    all->total.rows += block->count.rows;
    all->total.used += block->count.used;
    all->total.skipped += block->count.skipped;
}

static void list_sources(const ScanReader *reader, Gathering *all)
{
    const ScanPlan *const plan = reader->plan;
    int32 relation = -1;

    for (uint32 chunk = 0; chunk < plan->n_chunks; ++chunk) {
        const ScanChunkRows *const rows = &reader->chunks[chunk];
        const int32 of = scan_plan_chunk(plan, chunk, Max(relation, 0)).relation;

        CHECK_FOR_INTERRUPTS();
        if (rows->first != 0 && of != relation && table_wants_any(&plan->wants)) {
            table_rows_begin_table(all->rows, plan->relations[of].id, all->total.rows);
            relation = of;
        }
        for (uint64 place = rows->first; place != 0;) {
            ScanBlock *const block = block_at(reader, rows->shared, place);

            add_source(all, block, rows->shared);
            place = block->next;
        }
    }
}

static void copy_array(void *to, int64 at, const char *from, int64 count, Size size)
{
    memcpy((char *)to + at * size, from, count * size);
}

/* Gives a part of the rows' segment, if they lie in one, memory. */
static bool fill_segment(const PgkmRows *used, const void *begin, Size bytes)
{
    return used->segment.file == 0 || bytes == 0 ||
           pgkm_segment_fill(&used->segment, (const char *)begin - (const char *)used->segment.base, bytes) != 0;
}

static void copy_source(void *argument, int64_t i)
{
    Gathering *const all = (Gathering *)argument;
    const Source *const source = &all->sources[i];
    const ScanPlace count = source->block->count;
    const ScanPlace at = source->at;
    const char *const block = (const char *)source->block;
    const ScanArrays arrays = arrays_of(all->plan, &count);
    TableRows *const rows = all->rows;
    PgkmRows *const used = rows->used;

    if (!fill_segment(used, used->values + at.used * used->row_bytes, count.used * used->row_bytes) ||
        !fill_segment(used, used->weights + at.used, used->weighted ? count.used * sizeof(double) : 0)) {
        pg_atomic_write_u32(&all->no_memory, 1);
        return;
    }
    copy_array(used->values, at.used, block + arrays.values, count.used, used->row_bytes);
    if (used->weighted)
        copy_array(used->weights, at.used, block + arrays.weights, count.used, sizeof(double));
    for (int64 s = 0; table_wants_any(&rows->wants) && s < count.skipped; ++s)
        rows->skipped[at.skipped + s] = ((const int64 *)(block + arrays.skipped))[s] + at.rows;
    if (rows->wants.ctid)
        copy_array(rows->ctids, at.rows, block + arrays.ctids, count.rows, sizeof(ItemPointerData));
    if (rows->wants.label)
        copy_array(rows->labels, at.rows, block + arrays.labels, count.rows, sizeof(int32));
    shared_discard(source->block, arrays.end, source->shared);
}

static int32 useful_threads(Size bytes)
{
    PgkmSettings settings;

    memset(&settings, 0, sizeof settings);
    pgkm_settings_fill(&settings);
    return (int32)Min((Size)pgkm_cpu_threads(&settings), bytes / BYTES_PER_THREAD + 1);
}

TableRows *scan_bring_together(ScanReader *reader, MemoryContext context)
{
    const ScanPlan *const plan = reader->plan;
    TableRows *const rows = table_rows_create(context, plan->wants);
    Gathering all = {plan, rows, NULL, 0, 0, {0, 0, 0}, {0}};
    PgkmError error;

    list_sources(reader, &all);
    /* Whatever the blocks take they give back as the rows take it. */
    table_rows_clear(reader->rows);
    scan_plan_open_rows(plan, rows);
    pgkm_rows_make(rows->used, all.total.used, pgkm_service_runs());
    table_rows_make(rows, all.total.rows, all.total.skipped);
    if (pgkm_run_tasks(all.n_sources, useful_threads(all.total.used * rows->used->row_bytes), copy_source, &all,
                       pgkm_interrupted, &error) != PGKM_OK)
        pgkm_raise(&error);
    if (pg_atomic_read_u32(&all.no_memory) != 0)
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"),
                        errdetail("There is no shared memory for the rows.")));
    return rows;
}
