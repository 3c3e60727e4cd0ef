/*
 * blocks.cpp - leaves the rows of a parallel scan in blocks, and brings them together.
 */
#include "pg/scan/reader.h"

#include "pg/compat.h"
#include "pg/run/run_job.h"
#include "pg/run/server_limits.h"
#include "pg/service/session.h"
#include "pg/settings.h"
#include "pg/shared/pages.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
}

/* A block is written while its rows are still in the processor's cache. */
#define BLOCK_BYTES ((Size)512 * 1024)

/* A thread for fewer bytes saves no time. */
#define BYTES_PER_THREAD ((Size)4 * 1024 * 1024)

/* The head of a block, before its arrays. */
struct ScanBlock {
    uint64 next; /* of the chunk, as ScanChunkRows.first */
    ScanPlace count;
};

/* One of the arrays of rows, from a row on; in a block they lie one behind the other. */
struct RowArray {
    char *data;
    Size bytes; /* 0: there is none */
};

/* The features and weights come first, which may lie in a segment, and the positions of skipped rows last. */
#define ARRAYS 5
#define USED_ARRAYS 2

static RowArray row_array(void *data, int64 at, int64 count, Size size, bool wanted)
{
    return {(char *)data + at * size, wanted ? count * size : 0};
}

/* The arrays of so many rows that begin there. */
static void list_arrays(const TableRows *rows, const ScanPlace *at, const ScanPlace *count, RowArray arrays[ARRAYS])
{
    const PgkmRows *const used = rows->used;
    const RowArray all[ARRAYS] = {
        row_array(used->values, at->used, count->used, used->row_bytes, true),
        row_array(used->weights, at->used, count->used, sizeof(double), used->weighted),
        row_array(rows->ctids, at->rows, count->rows, sizeof(ItemPointerData), rows->wants.ctid),
        row_array(rows->labels, at->rows, count->rows, sizeof(int64), rows->wants.label),
        row_array(rows->skipped, at->skipped, count->skipped, sizeof(int64), table_wants_any(&rows->wants))};

    memcpy(arrays, all, sizeof all);
}

static Size block_bytes(const RowArray arrays[ARRAYS])
{
    Size bytes = sizeof(ScanBlock);

    for (int i = 0; i < ARRAYS; ++i)
        bytes += MAXALIGN(arrays[i].bytes);
    return bytes;
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

/* The buffer is used again. */
static void empty_buffer(TableRows *rows)
{
    rows->n = rows->n_skipped = rows->used->n = rows->n_ranges = 0;
}

bool scan_block_leave(ScanReader *reader)
{
    TableRows *const rows = reader->rows;
    const ScanPlace begin = {0, 0, 0};
    const ScanPlace count = {rows->n, rows->used->n, rows->n_skipped};
    const bool shared = reader->area_is_used;
    RowArray arrays[ARRAYS];

    if (count.rows == 0)
        return true;
    list_arrays(rows, &begin, &count, arrays);

    const Size bytes = block_bytes(arrays);

    /* Counted with the buffer's rows, which release it if an error comes. */
    pgkm_memory_hold(&rows->reserved, bytes, rows->estimate);

    const uint64 place = shared ? shared_allocate(reader->area, reader->last, bytes)
                                : (uint64)(uintptr_t)MemoryContextAllocHuge(GetMemoryChunkContext(reader), bytes);

    if (place == 0) {
        pgkm_memory_hold(&rows->reserved, -(int64)bytes);
        return false;
    }

    ScanBlock *const block = block_at(reader, shared, place);
    char *to = (char *)(block + 1);

    *block = {0, count};
    for (const RowArray &array : arrays) {
        if (array.bytes > 0)
            memcpy(to, array.data, array.bytes);
        to += MAXALIGN(array.bytes);
    }
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
    reader->chunks[chunk] = {reader->first, true, reader->area_is_used, reader->process};
    reader->first = 0;
}

void scan_block_drop(ScanReader *reader)
{
    TableRows *const rows = reader->rows;
    const ScanPlace begin = {0, 0, 0};
    RowArray arrays[ARRAYS];

    while (reader->first != 0) {
        const uint64 place = reader->first;
        const ScanBlock *const block = block_at(reader, true, place);

        list_arrays(rows, &begin, &block->count, arrays);
        reader->first = block->next;
        pgkm_memory_hold(&rows->reserved, -(int64)block_bytes(arrays));
        dsa_free(reader->area, place);
    }
    empty_buffer(rows);
}

/* --- bringing together: from here on nothing calls the server in another thread --- */

struct Source {
    ScanBlock *block;
    ScanPlace at; /* where its rows belong */
    bool shared;
    int32 process;
};

struct Gathering {
    TableRows *rows;
    Source *sources;
    int64 n_sources;
    int64 capacity;
    ScanPlace total;
    pg_atomic_uint32 no_memory; /* 1: for a part of the segment */
    const LevelsFound *levels;  /* what becomes of the rows' codes; NULL: they have none */
    Size stored_row_bytes;      /* of the features of a row in a block */
};

static void add_source(Gathering *all, ScanBlock *block, const ScanChunkRows *of)
{
    if (all->n_sources == all->capacity) {
        all->capacity = pgkm_next_capacity(all->capacity, all->n_sources + 1, sizeof(Source));
        all->sources = (Source *)pgkm_resize(CurrentMemoryContext, all->sources, all->capacity, sizeof(Source));
    }
    all->sources[all->n_sources++] = {block, all->total, of->shared, of->process};
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
        const int32 of = scan_plan_chunk(plan, chunk).relation;

        CHECK_FOR_INTERRUPTS();
        if (rows->first != 0 && of != relation && table_wants_any(&plan->wants)) {
            table_rows_begin_table(all->rows, plan->relations[of].id, all->total.rows);
            relation = of;
        }
        for (uint64 place = rows->first; place != 0;) {
            ScanBlock *const block = block_at(reader, rows->shared, place);

            add_source(all, block, rows);
            place = block->next;
        }
    }
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
    const char *from = (const char *)(source->block + 1);
    RowArray arrays[ARRAYS];

    list_arrays(all->rows, &source->at, &count, arrays);
    for (int j = 0; j < ARRAYS; ++j) {
        const Size stored = j == 0 ? count.used * all->stored_row_bytes : arrays[j].bytes;

        if (j < USED_ARRAYS && !fill_segment(all->rows->used, arrays[j].data, arrays[j].bytes)) {
            pg_atomic_write_u32(&all->no_memory, 1);
            return;
        }
        if (j == 0 && all->levels != NULL)
            levels_expand(all->levels, source->process, (const double *)from, count.used, (double *)arrays[j].data);
        else if (arrays[j].bytes > 0)
            memcpy(arrays[j].data, from, arrays[j].bytes);
        from += MAXALIGN(stored);
    }
    /* Positions counted from the first row of the block. */
    if (arrays[ARRAYS - 1].bytes > 0)
        for (int64 s = 0; s < count.skipped; ++s)
            all->rows->skipped[source->at.skipped + s] += source->at.rows;
    shared_discard(source->block, from - (const char *)source->block, source->shared);
}

/* Those of all processes as one; NULL where there are none. In the current memory context. */
static const LevelsFound *join_levels(const ScanReader *reader)
{
    const TableQuery *const query = &reader->plan->query;
    Levels **const all = (Levels **)palloc(reader->n_processes * sizeof(Levels *));

    if (reader->decoder.levels == NULL)
        return NULL;
    all[0] = reader->decoder.levels;
    for (int32 i = 1; i < reader->n_processes; ++i)
        all[i] = levels_read(query->features, query->n_features,
                             (const char *)dsa_get_address(reader->area, reader->levels[i - 1]));
    return levels_join(query->features, all, reader->n_processes);
}

/* Rows of the plan's kind, with a feature for each level. */
static void open_rows(Gathering *all, const ScanReader *reader, MemoryContext context)
{
    const ScanPlan *const plan = reader->plan;
    MemoryContext caller = MemoryContextSwitchTo(context);

    all->stored_row_bytes = pgkm_row_bytes(plan->decoder.element, plan->d);
    all->levels = join_levels(reader);
    MemoryContextSwitchTo(caller);
    if (all->levels == NULL)
        scan_plan_open_rows(plan, all->rows);
    else
        table_rows_open_levels(all->rows, all->levels, plan->query.weight != NULL);
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
    Gathering all = {rows, NULL, 0, 0, {0, 0, 0}, {0}, NULL, 0};
    PgkmError error;

    list_sources(reader, &all);
    /* Whatever the blocks take they give back as the rows take it. */
    table_rows_clear(reader->rows);
    open_rows(&all, reader, context);
    pgkm_rows_make(rows->used, all.total.used, pgkm_service_runs());
    table_rows_make(rows, all.total.rows, all.total.skipped);

    const int32 threads = pgkm_server_threads(useful_threads(all.total.used * rows->used->row_bytes));
    const PgkmStatus status = pgkm_run_tasks(all.n_sources, threads, copy_source, &all, pgkm_interrupted, &error);

    (void)pgkm_server_threads(-threads);
    if (status != PGKM_OK)
        pgkm_raise(&error);
    if (pg_atomic_read_u32(&all.no_memory) != 0)
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"),
                        errdetail("There is no shared memory for the rows.")));
    return rows;
}
