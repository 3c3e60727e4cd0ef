/*
 * scan_parallel.cpp - a direct scan by several processes.
 *
 *   all:     make a slice of the shared memory for the rows that are expected
 *            read chunks into memory of their own; publish the counts; meet
 *   leader:  place the chunks; bring the slices together; make what else the rows need; meet
 *   all:     copy their chunks to their places; meet
 *   leader:  returns the rows; waits for the workers' end when it is told to
 *
 * A worker that starts when the others have met already finds nothing to do and leaves.
 */
#include "pg/scan_parallel.h"

#include "pg/boundary.h"
#include "pg/compat.h"
#include "pg/scan_gather.h"

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
#include "storage/barrier.h"
#include "tcop/tcopprot.h"
#include "utils/backend_status.h"
#include "utils/wait_event.h"

PGDLLEXPORT void pgkm_scan_worker(dsm_segment *segment, shm_toc *toc);
}

enum TocKey : uint64 { SCAN_KEY_SHARED = 1, SCAN_KEY_PLAN, SCAN_KEY_PLACES, SCAN_KEY_QUERY };

enum ScanPhase { SCAN_READING, SCAN_PLACING, SCAN_COPYING, SCAN_COPIED };

struct ScanCrew {
    ParallelContext *context;
    TableRows       *own; /* the leader's, as it read them */
};

struct ScanShared {
    pg_atomic_uint32 next_chunk;
    pg_atomic_uint64 n_read;   /* rows, by all processes */
    pg_atomic_uint64 reserved; /* bytes of rows that the leader and all workers hold */
    Barrier          barrier;  /* phases: ScanPhase */
    int              n_processes; /* about */
    ScanSlices       slices;   /* all there from SCAN_PLACING on */
    ScanTarget       target;   /* from SCAN_COPYING on */
};

static Size places_bytes(const ScanPlan *plan)
{
    return ((Size) plan->n_chunks + 1) * sizeof(ScanPlace);
}

/* What the workers show in pg_stat_activity and in the log. */
static const char *query_text(void)
{
    return debug_query_string == NULL ? "" : debug_query_string;
}

/* NULL without shared memory for it. */
static ParallelContext *start_context(const ScanPlan *plan, int n_workers)
{
    ParallelContext *const context = CreateParallelContext("$libdir/pg_kmeans", "pgkm_scan_worker", n_workers);

    shm_toc_estimate_chunk(&context->estimator, sizeof(ScanShared));
    shm_toc_estimate_chunk(&context->estimator, plan->bytes);
    shm_toc_estimate_chunk(&context->estimator, places_bytes(plan));
    shm_toc_estimate_chunk(&context->estimator, strlen(query_text()) + 1);
    shm_toc_estimate_keys(&context->estimator, 4);
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

/* The segment is going: after an error it may be gone before the rows that are counted in it. */
static void stop_sharing(dsm_segment *, Datum)
{
    pgkm_memory_share(NULL);
}

static ScanShared *fill_context(ParallelContext *context, const ScanPlan *plan, const ScanReader *reader)
{
    ScanShared *const shared = (ScanShared *) put(context->toc, SCAN_KEY_SHARED, sizeof(ScanShared));

    memcpy(put(context->toc, SCAN_KEY_PLAN, plan->bytes), plan, plan->bytes);
    put(context->toc, SCAN_KEY_PLACES, places_bytes(plan));
    strcpy((char *) put(context->toc, SCAN_KEY_QUERY, strlen(query_text()) + 1), query_text());
    pg_atomic_init_u32(&shared->next_chunk, pg_atomic_read_u32(reader->next_chunk));
    pg_atomic_init_u64(&shared->n_read, (uint64) reader->rows->n);
    pg_atomic_init_u64(&shared->reserved, 0);
    shared->n_processes = context->nworkers + 1;
    scan_slices_plan(plan, shared->n_processes, &shared->slices);
    BarrierInit(&shared->barrier, 0);
    BarrierAttach(&shared->barrier);
    on_dsm_detach(context->seg, stop_sharing, (Datum) 0);
    pgkm_memory_share(&shared->reserved);
    return shared;
}

static void read_all(ScanReader *reader, int n_processes)
{
    scan_reader_expect(reader, n_processes);
    while (scan_reader_step(reader))
        ;
    scan_reader_close(reader);
}

/* One process's part until all meet. */
static void take_part(ScanReader *reader, ScanShared *shared, ScanPlace *places)
{
    reader->next_chunk = &shared->next_chunk;
    reader->n_read = &shared->n_read;
    (void) scan_slices_make(&shared->slices);
    read_all(reader, shared->n_processes);
    while (scan_slices_make(&shared->slices))
        CHECK_FOR_INTERRUPTS();
    scan_publish(reader, places);
}

static void meet(ScanShared *shared)
{
    BarrierArriveAndWait(&shared->barrier, pgkm_wait_event("KmeansScan"));
}

static TableRows *lead(ParallelContext *context, ScanShared *shared, ScanReader *reader, MemoryContext owner)
{
    const ScanPlan  *plan = reader->plan;
    ScanPlace *const places = (ScanPlace *) shm_toc_lookup(context->toc, SCAN_KEY_PLACES, false);

    TableRows *const rows = scan_target_create(plan, owner, &shared->slices);

    take_part(reader, shared, places);
    meet(shared);
    scan_place(places, plan->n_chunks);
    scan_target_fit(plan, places, &shared->slices, rows, &shared->target);
    scan_slices_drop(&shared->slices, rows->used->view == NULL ? 0 : rows->used->view->n_slices);
    meet(shared);
    scan_copy(reader, places, &shared->target, rows->used->view,
              rows->segment == NULL ? NULL : (char *) dsm_segment_address(rows->segment), shared->n_processes);
    meet(shared);
    BarrierDetach(&shared->barrier);
    rows->crew = (ScanCrew *) MemoryContextAlloc(owner, sizeof(ScanCrew));
    rows->crew->context = context;
    rows->crew->own = reader->rows;
    return rows;
}

void scan_dismiss(ScanCrew *crew)
{
    table_rows_clear(crew->own);
    WaitForParallelWorkersToFinish(crew->context);
    DestroyParallelContext(crew->context);
    ExitParallelMode();
    pfree(crew);
}

TableRows *scan_parallel(ScanPlan *plan, ScanReader *reader, int n_workers, MemoryContext context,
                         int32 *launched)
{
    EnterParallelMode();

    ParallelContext *const parallel = start_context(plan, n_workers);

    if (parallel != NULL) {
        ScanShared *const shared = fill_context(parallel, plan, reader);

        LaunchParallelWorkers(parallel);
        *launched = parallel->nworkers_launched;
        /* Alone there is nobody to share with: the rows can stay in memory of this process. */
        if (parallel->nworkers_launched > 0)
            return lead(parallel, shared, reader, context);
        DestroyParallelContext(parallel);
    }
    ExitParallelMode();
    read_all(reader, 1);
    return reader->rows;
}

static void copy_to_target(const ScanReader *reader, const ScanPlace *places, const ScanTarget *target, int n_processes)
{
    SharedView  *points = NULL;
    dsm_segment *origins = NULL;

    if (target->points != DSM_HANDLE_INVALID)
        points = shared_view_attach(CurrentMemoryContext, target->points);
    if (target->origins != DSM_HANDLE_INVALID)
        origins = dsm_attach(target->origins);
    if ((points == NULL && target->points != DSM_HANDLE_INVALID) ||
        (origins == NULL && target->origins != DSM_HANDLE_INVALID))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("could not map dynamic shared memory segment")));
    scan_copy(reader, places, target, points, origins == NULL ? NULL : (char *) dsm_segment_address(origins),
              n_processes);
    if (points != NULL)
        shared_view_detach(points);
    if (origins != NULL)
        dsm_detach(origins);
}

void pgkm_scan_worker(dsm_segment *, shm_toc *toc)
{
    ScanShared *const     shared = (ScanShared *) shm_toc_lookup(toc, SCAN_KEY_SHARED, false);
    const ScanPlan *const plan = (const ScanPlan *) shm_toc_lookup(toc, SCAN_KEY_PLAN, false);
    ScanPlace *const      places = (ScanPlace *) shm_toc_lookup(toc, SCAN_KEY_PLACES, false);

    debug_query_string = (const char *) shm_toc_lookup(toc, SCAN_KEY_QUERY, false);
    pgstat_report_activity(STATE_RUNNING, debug_query_string);
    /* Too late: the counts are out, and chunks read now would have no place. */
    if (BarrierAttach(&shared->barrier) != SCAN_READING) {
        BarrierDetach(&shared->barrier);
        return;
    }
    pgkm_memory_share(&shared->reserved);

    ScanReader *const reader = scan_reader_create(plan, &shared->next_chunk, CurrentMemoryContext, true);

    take_part(reader, shared, places);
    meet(shared);
    meet(shared);
    copy_to_target(reader, places, &shared->target, shared->n_processes);
    BarrierArriveAndDetach(&shared->barrier);
    scan_slices_drop(&shared->slices, 0);
    table_rows_clear(reader->rows);
    pgkm_memory_share(NULL);
}
