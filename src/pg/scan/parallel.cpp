/*
 * parallel.cpp - a direct scan by several processes.
 *
 *   all:     make slices of the shared memory for the rows that are expected
 *            read chunks into memory of their own; publish the counts of what was read; meet
 *   leader:  place the chunks; bring the slices together; make what else the rows need; meet
 *   all:     copy their rows to their places; meet
 *   leader:  returns the rows; waits for the workers' end when it is told to
 *
 * A worker that starts when chunks are being read reads, too; one that starts when the others have met
 * after that finds nothing to do and leaves. Where rows are reduced instead, reduce.cpp tells the steps.
 */
#include "pg/scan/parallel.h"

#include "pg/run/memory_account.h"
#include "pg/compat.h"
#include "pg/scan/scan.h"

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
#include "tcop/tcopprot.h"
#include "utils/backend_status.h"
#include "utils/wait_event.h"

PGDLLEXPORT void pgkm_scan_worker(dsm_segment *segment, shm_toc *toc);
}

enum ScanPhase { SCAN_READING, SCAN_PLACING, SCAN_COPYING, SCAN_COPIED };

/* The workers of a parallel scan, and what its leader read by itself. */
struct ScanCrew {
    ParallelContext *context;
    TableRows *own; /* the leader's, as it read them */
};

static Size places_bytes(const ScanPlan *plan)
{
    return ((Size)plan->n_chunks + 1) * sizeof(ScanPlace);
}

/* What the workers show in pg_stat_activity and in the log. */
static const char *query_text(void)
{
    return debug_query_string == NULL ? "" : debug_query_string;
}

/* NULL without shared memory for it. */
static ParallelContext *start_context(const ScanPlan *plan, const TableReduction *reduction, int n_workers)
{
    ParallelContext *const context = CreateParallelContext("pg_kmeans", "pgkm_scan_worker", n_workers);

    shm_toc_estimate_chunk(&context->estimator, sizeof(ScanShared));
    shm_toc_estimate_chunk(&context->estimator, plan->bytes);
    shm_toc_estimate_chunk(&context->estimator, places_bytes(plan));
    shm_toc_estimate_chunk(&context->estimator, strlen(query_text()) + 1);
    shm_toc_estimate_keys(&context->estimator, 4);
    if (reduction != NULL)
        scan_reduction_estimate(&context->estimator, reduction);
    InitializeParallelDSM(context);
    if (context->seg != NULL)
        return context;
    DestroyParallelContext(context);
    return NULL;
}

static void *put(shm_toc *toc, TocKey key, Size bytes)
{
    void *const memory = shm_toc_allocate(toc, bytes);

    memset(memory, 0, bytes);
    shm_toc_insert(toc, key, memory);
    return memory;
}

/* Called when the segment goes. After an error that may be before the rows that are counted in it go. */
static void stop_sharing(dsm_segment *, Datum)
{
    pgkm_memory_share(NULL);
}

static ScanShared *fill_context(ParallelContext *context, const ScanPlan *plan, const TableReduction *reduction,
                                const ScanReader *reader)
{
    ScanShared *const shared = (ScanShared *)put(context->toc, SCAN_KEY_SHARED, sizeof(ScanShared));

    memcpy(put(context->toc, SCAN_KEY_PLAN, plan->bytes), plan, plan->bytes);
    put(context->toc, SCAN_KEY_PLACES, places_bytes(plan));
    strcpy((char *)put(context->toc, SCAN_KEY_QUERY, strlen(query_text()) + 1), query_text());
    pg_atomic_init_u32(&shared->next_chunk, pg_atomic_read_u32(reader->next_chunk));
    pg_atomic_init_u64(&shared->n_read, (uint64)reader->rows->n);
    pg_atomic_init_u64(&shared->reserved, 0);
    shared->n_processes = context->nworkers + 1;
    scan_slices_plan(plan, shared->n_processes, &shared->slices);
    BarrierInit(&shared->barrier, 0);
    BarrierAttach(&shared->barrier);
    on_dsm_detach(context->seg, stop_sharing, (Datum)0);
    pgkm_memory_share(&shared->reserved);
    if (reduction != NULL) {
        scan_reduction_put(context->toc, reduction, &shared->reducing);
        shared->slices.wanted = 0; /* no rows come together */
    }
    return shared;
}

void scan_read_all(ScanReader *reader, int n_processes)
{
    scan_reader_expect(reader, n_processes);
    while (scan_reader_step(reader))
        ;
    scan_reader_close(reader);
}

static ScanMember join_scan(ScanReader *reader, ScanShared *shared, shm_toc *toc)
{
    reader->next_chunk = &shared->next_chunk;
    reader->n_read = &shared->n_read;
    return {reader, shared, toc, (ScanPlace *)shm_toc_lookup(toc, SCAN_KEY_PLACES, false), NULL};
}

static void make_slices(ScanShared *shared)
{
    while (scan_slices_make(&shared->slices))
        CHECK_FOR_INTERRUPTS();
}

static void read_chunks(const ScanMember *member)
{
    (void)scan_slices_make(&member->shared->slices);
    scan_read_all(member->reader, member->shared->n_processes);
    make_slices(member->shared);
    scan_publish(member->reader, member->places);
}

void scan_meet(ScanShared *shared)
{
    BarrierArriveAndWait(&shared->barrier, pgkm_wait_event("KmeansScan"));
}

/* Nobody has a slice but for the rows' view, then. */
static void drop_others(const ScanShared *shared, const TableRows *rows)
{
    scan_slices_drop(&shared->slices, rows->used->view == NULL ? 0 : rows->used->view->n_slices);
}

/* All rows are read. */
static void finish_places(const ScanMember *member, TableRows *rows)
{
    const ScanPlan *plan = member->reader->plan;
    ScanShared *const shared = member->shared;

    scan_place(member->places, plan->n_chunks);
    scan_target_points(plan, member->places[plan->n_chunks].used, &shared->slices, rows, &shared->target);
    drop_others(shared, rows);
    scan_target_origins(plan, member->places, rows, &shared->target);
}

/* Together with the workers, which reduce the rows. */
static TableRows *lead_reduction(ParallelContext *context, ScanShared *shared, ScanReader *reader,
                                 TableReduction *reduction, MemoryContext owner)
{
    TableRows *const rows = scan_target_create(reader->plan, owner, &shared->slices);
    const ScanMember member = join_scan(reader, shared, context->toc);

    scan_count_copies(reduction, reader->rows);
    scan_reduce(&member);
    scan_meet(shared);
    scan_take_copies(&member, reduction, rows);
    BarrierDetach(&shared->barrier);
    return rows;
}

static TableRows *lead(ParallelContext *context, ScanShared *shared, ScanReader *reader, MemoryContext owner)
{
    TableRows *const rows = scan_target_create(reader->plan, owner, &shared->slices);
    ScanMember member = join_scan(reader, shared, context->toc);

    read_chunks(&member);
    scan_meet(shared);
    finish_places(&member, rows);
    scan_meet(shared);
    scan_copy(member.reader, member.places, &shared->target, rows->used->view,
              rows->segment == NULL ? NULL : (char *)dsm_segment_address(rows->segment), shared->n_processes);
    scan_meet(shared);
    BarrierDetach(&shared->barrier);
    return rows;
}

void scan_dismiss(TableRows *rows)
{
    ScanCrew *const crew = rows->crew;

    rows->crew = NULL;
    if (crew == NULL)
        return;
    table_rows_clear(crew->own);
    WaitForParallelWorkersToFinish(crew->context);
    DestroyParallelContext(crew->context);
    ExitParallelMode();
    pfree(crew);
}

TableRows *scan_parallel(ScanPlan *plan, ScanReader *reader, TableReduction *reduction, int n_workers,
                         MemoryContext context, int32 *launched)
{
    EnterParallelMode();

    ParallelContext *const parallel = start_context(plan, reduction, n_workers);

    if (parallel != NULL) {
        ScanShared *const shared = fill_context(parallel, plan, reduction, reader);

        LaunchParallelWorkers(parallel);
        *launched = parallel->nworkers_launched;
        /* Alone there is nobody to share with: the rows can stay in memory of this process. */
        if (parallel->nworkers_launched > 0) {
            TableRows *const rows = reduction != NULL ? lead_reduction(parallel, shared, reader, reduction, context)
                                                      : lead(parallel, shared, reader, context);

            rows->crew = (ScanCrew *)MemoryContextAlloc(context, sizeof(ScanCrew));
            rows->crew->context = parallel;
            rows->crew->own = reader->rows;
            return rows;
        }
        DestroyParallelContext(parallel);
    }
    ExitParallelMode();
    scan_read_all(reader, 1);
    return reader->rows;
}

static void map_points(ScanMember *member)
{
    const dsm_handle handle = member->shared->target.points;

    if (handle == DSM_HANDLE_INVALID)
        return;
    member->points = shared_view_attach(CurrentMemoryContext, handle);
    if (member->points == NULL)
        shared_raise_gone();
}

/* Tells the leader to go on before this process unmaps the memory, which takes its time. */
static void copy_to_target(ScanMember *member)
{
    const ScanShared *shared = member->shared;
    dsm_segment *origins = NULL;

    map_points(member);
    if (shared->target.origins != DSM_HANDLE_INVALID)
        origins = shared_segment_attach(shared->target.origins);
    scan_copy(member->reader, member->places, &shared->target, member->points,
              origins == NULL ? NULL : (char *)dsm_segment_address(origins), shared->n_processes);
    BarrierArriveAndDetach(&member->shared->barrier);
    if (member->points != NULL)
        shared_view_detach(member->points);
    if (origins != NULL)
        dsm_detach(origins);
}

static void take_part(ScanMember *member)
{
    ScanShared *const shared = member->shared;

    if (shared->reducing.n_copies > 0) {
        scan_reduce(member);
        BarrierArriveAndDetach(&shared->barrier);
        return;
    }
    read_chunks(member);
    scan_meet(shared);
    scan_meet(shared);
    copy_to_target(member);
}

void pgkm_scan_worker(dsm_segment *, shm_toc *toc)
{
    ScanShared *const shared = (ScanShared *)shm_toc_lookup(toc, SCAN_KEY_SHARED, false);
    const ScanPlan *const plan = scan_plan_copy((const ScanPlan *)shm_toc_lookup(toc, SCAN_KEY_PLAN, false));

    debug_query_string = (const char *)shm_toc_lookup(toc, SCAN_KEY_QUERY, false);
    pgstat_report_activity(STATE_RUNNING, debug_query_string);

    const int phase = BarrierAttach(&shared->barrier);
    /* Too late: the counts are published, and rows read now would have no place. */
    if (phase > SCAN_READING) {
        BarrierDetach(&shared->barrier);
        return;
    }
    pgkm_memory_share(&shared->reserved);

    ScanReader *const reader = scan_reader_create(plan, &shared->next_chunk, CurrentMemoryContext);
    ScanMember member = join_scan(reader, shared, toc);

    take_part(&member);
    scan_slices_drop(&shared->slices, 0);
    table_rows_clear(reader->rows);
    pgkm_memory_share(NULL);
}
