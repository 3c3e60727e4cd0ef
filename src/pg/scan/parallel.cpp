/*
 * parallel.cpp - a direct scan by several processes, as a parallel index build does it.
 *
 * All take chunks until none is left, and leave the rows in blocks (blocks.cpp). The leader waits for the workers' end,
 * adds what they have read and written to its own account, reads the chunks for whose rows a worker found no room in
 * shared memory, and brings the rows together.
 */
#include "pg/scan/reader.h"

#include "pg/compat.h"
#include "pg/run/memory_account.h"

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
#include "executor/instrument.h"
#include "optimizer/optimizer.h"
#include "tcop/tcopprot.h"
#include "utils/backend_status.h"

PGDLLEXPORT void pgkm_scan_worker(dsm_segment *segment, shm_toc *toc);
}

enum TocKey : uint64 {
    SCAN_KEY_SHARED = 1,
    SCAN_KEY_PLAN,
    SCAN_KEY_CHUNKS,
    SCAN_KEY_LEVELS,
    SCAN_KEY_AREA,
    SCAN_KEY_BUFFERS,
    SCAN_KEY_WAL,
    SCAN_KEY_QUERY
};

struct ScanShared {
    pg_atomic_uint32 next_chunk;
    pg_atomic_uint64 n_read;   /* rows, by all processes */
    pg_atomic_uint64 reserved; /* bytes of rows that the leader and all workers hold */
};

/* What the workers show in pg_stat_activity and in the log. */
static const char *query_text(void)
{
    return debug_query_string == NULL ? "" : debug_query_string;
}

/* What lies in the segment, and how long it is. */
struct Entry {
    TocKey key;
    Size bytes;
};

#define ENTRIES 8

static void set_entries(Entry entries[ENTRIES], const ScanPlan *plan, int n_workers)
{
    const Entry all[ENTRIES] = {{SCAN_KEY_SHARED, sizeof(ScanShared)},
                                {SCAN_KEY_PLAN, plan->bytes},
                                {SCAN_KEY_CHUNKS, plan->n_chunks * sizeof(ScanChunkRows)},
                                {SCAN_KEY_LEVELS, n_workers * sizeof(dsa_pointer)},
                                {SCAN_KEY_AREA, dsa_minimum_size()},
                                {SCAN_KEY_BUFFERS, n_workers * sizeof(BufferUsage)},
                                {SCAN_KEY_WAL, n_workers * sizeof(WalUsage)},
                                {SCAN_KEY_QUERY, strlen(query_text()) + 1}};

    memcpy(entries, all, sizeof all);
}

static void *find(shm_toc *toc, TocKey key)
{
    return shm_toc_lookup(toc, key, false);
}

/* Called when the segment goes. After an error that may be before the rows that are counted in it go. */
static void stop_sharing(dsm_segment *, Datum)
{
    pgkm_memory_share(NULL);
}

/* A context whose segment has what the workers need; NULL without shared memory for it. */
static ParallelContext *create_context(const ScanPlan *plan, const ScanReader *reader, int n_workers)
{
    ParallelContext *const context = CreateParallelContext("pg_kmeans", "pgkm_scan_worker", n_workers);
    Entry entries[ENTRIES];

    set_entries(entries, plan, n_workers);
    for (const Entry &entry : entries)
        shm_toc_estimate_chunk(&context->estimator, entry.bytes);
    shm_toc_estimate_keys(&context->estimator, ENTRIES);
    InitializeParallelDSM(context);
    if (context->seg == NULL) {
        DestroyParallelContext(context);
        return NULL;
    }
    for (const Entry &entry : entries)
        shm_toc_insert(context->toc, entry.key, memset(shm_toc_allocate(context->toc, entry.bytes), 0, entry.bytes));

    ScanShared *const shared = (ScanShared *)find(context->toc, SCAN_KEY_SHARED);

    pg_atomic_init_u32(&shared->next_chunk, pg_atomic_read_u32(reader->next_chunk));
    pg_atomic_init_u64(&shared->n_read, (uint64)reader->rows->n);
    pg_atomic_init_u64(&shared->reserved, 0);
    memcpy(find(context->toc, SCAN_KEY_PLAN), plan, plan->bytes);
    strcpy((char *)find(context->toc, SCAN_KEY_QUERY), query_text());
    return context;
}

/* Makes the reader one of the processes. */
static void join_scan(ScanReader *reader, dsm_segment *segment, shm_toc *toc, dsa_area *area)
{
    ScanShared *const shared = (ScanShared *)find(toc, SCAN_KEY_SHARED);

    on_dsm_detach(segment, stop_sharing, (Datum)0);
    pgkm_memory_share(&shared->reserved);
    reader->next_chunk = &shared->next_chunk;
    reader->n_read = &shared->n_read;
    reader->chunks = (ScanChunkRows *)find(toc, SCAN_KEY_CHUNKS);
    reader->levels = (dsa_pointer *)find(toc, SCAN_KEY_LEVELS);
    reader->area = area;
    reader->block_rows = scan_block_rows(reader->plan);
}

static void read_chunks(ScanReader *reader)
{
    while (scan_reader_step(reader))
        ;
}

static void finish_workers(ParallelContext *context)
{
    BufferUsage *const buffers = (BufferUsage *)find(context->toc, SCAN_KEY_BUFFERS);
    WalUsage *const wal = (WalUsage *)find(context->toc, SCAN_KEY_WAL);

    WaitForParallelWorkersToFinish(context);
    for (int i = 0; i < context->nworkers_launched; ++i)
        InstrAccumParallelQuery(&buffers[i], &wal[i]);
}

/* Chunks for whose rows a worker has found no room. */
static void read_what_is_left(ScanReader *reader, uint32 begin)
{
    const uint32 end = Min(pg_atomic_read_u32(reader->next_chunk), reader->plan->n_chunks);

    for (uint32 chunk = begin; chunk < end; ++chunk)
        if (!reader->chunks[chunk].read)
            scan_reader_read(reader, chunk);
}

/* Together with the workers. The reader has read the chunks before the next one by itself. */
static TableRows *lead(ParallelContext *context, ScanReader *reader, dsa_area *area, MemoryContext owner)
{
    pg_atomic_uint32 *const next_chunk = reader->next_chunk;
    const uint32 begin = pg_atomic_read_u32(next_chunk);

    join_scan(reader, context->seg, context->toc, area);
    reader->n_processes = context->nworkers_launched + 1;
    (void)scan_block_leave(reader);
    if (begin > 0)
        scan_block_publish(reader, begin - 1);
    if (parallel_leader_participation)
        read_chunks(reader);
    finish_workers(context);
    /* Those that no worker has begun, if they found no room. */
    read_chunks(reader);
    read_what_is_left(reader, begin);
    scan_reader_close(reader);
    pg_atomic_write_u32(next_chunk, pg_atomic_read_u32(reader->next_chunk));
    reader->next_chunk = next_chunk;
    pgkm_memory_share(NULL);
    return scan_bring_together(reader, owner);
}

TableRows *scan_parallel(const ScanPlan *plan, ScanReader *reader, int n_workers, MemoryContext context,
                         int32 *launched)
{
    TableRows *rows = NULL;

    EnterParallelMode();

    ParallelContext *const parallel = create_context(plan, reader, n_workers);

    if (parallel != NULL) {
        dsa_area *const area = dsa_create_in_place(find(parallel->toc, SCAN_KEY_AREA), dsa_minimum_size(),
                                                   LWTRANCHE_PARALLEL_QUERY_DSA, parallel->seg);

        LaunchParallelWorkers(parallel);
        *launched = parallel->nworkers_launched;
        /* Alone there is nobody to share with. */
        if (parallel->nworkers_launched > 0)
            rows = lead(parallel, reader, area, context);
        dsa_detach(area);
        DestroyParallelContext(parallel);
    }
    ExitParallelMode();
    return rows;
}

/* Of a worker, for the leader. */
static void leave_levels(const ScanReader *reader)
{
    const Levels *const levels = reader->decoder.levels;

    if (levels == NULL)
        return;

    const dsa_pointer place = dsa_allocate(reader->area, levels_bytes(levels));

    levels_write(levels, (char *)dsa_get_address(reader->area, place));
    reader->levels[reader->process - 1] = place;
}

void pgkm_scan_worker(dsm_segment *segment, shm_toc *toc)
{
    const ScanPlan *const plan = scan_plan_copy((const ScanPlan *)find(toc, SCAN_KEY_PLAN));
    BufferUsage *const buffers = (BufferUsage *)find(toc, SCAN_KEY_BUFFERS);
    WalUsage *const wal = (WalUsage *)find(toc, SCAN_KEY_WAL);
    ScanReader *const reader = scan_reader_create(plan, NULL, CurrentMemoryContext);

    debug_query_string = (const char *)find(toc, SCAN_KEY_QUERY);
    pgstat_report_activity(STATE_RUNNING, debug_query_string);
    InstrStartParallelQuery();
    reader->area_is_used = true;
    reader->process = ParallelWorkerNumber + 1;
    join_scan(reader, segment, toc, dsa_attach_in_place(find(toc, SCAN_KEY_AREA), segment));
    read_chunks(reader);
    scan_reader_close(reader);
    leave_levels(reader);
    dsa_detach(reader->area);
    InstrEndParallelQuery(&buffers[ParallelWorkerNumber], &wal[ParallelWorkerNumber]);
    pgkm_memory_share(NULL);
}
