/*
 * read.cpp - runs a direct scan from start to end.
 */
#include "pg/scan/scan.h"

#include "pg/run/memory_account.h"
#include "pg/scan/reader.h"

extern "C" {
#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

void scan_reader_first(ScanPlan *plan, ScanReader *reader)
{
    while (reader->rows->used == NULL && scan_reader_step(reader))
        ;
    if (reader->rows->used == NULL)
        return;
    plan->d = reader->rows->used->d;
    for (int i = 0; plan->mixed && i < plan->n_features; ++i)
        scan_plan_columns(plan)[i].width = reader->rows->widths[i];
}

TableRows *scan_reader_run(ScanPlan *plan, ScanReader *reader, MemoryContext context, int32 *workers)
{
    scan_reader_first(plan, reader);

    const int n_workers = scan_plan_workers(plan);

    if (plan->most_rows == 0)
        scan_plan_memory(plan);
    if (n_workers > 0 && pg_atomic_read_u32(reader->next_chunk) < plan->n_chunks)
        return scan_parallel(plan, reader, n_workers, context, workers);
    scan_reader_expect(reader, 1);
    while (scan_reader_step(reader))
        ;
    scan_reader_close(reader);
    return reader->rows;
}

static TableRows *read_in_context(const TableQuery *query, List *leaves, MemoryContext context, int32 *workers)
{
    ScanPlan *const plan = scan_plan_make(query, leaves, SCAN_CHUNKS);
    pg_atomic_uint32 next_chunk;

    pg_atomic_init_u32(&next_chunk, 0);
    return scan_reader_run(plan, scan_reader_create(plan, &next_chunk, context), context, workers);
}

/* Until the crew has gone its memory counts as well. It must not be in the way of the fit. */
static bool leaves_room(const TableRows *rows)
{
    return rows->used == NULL || rows->used->reserved < pgkm_memory_available() / 4;
}

TableRows *scan_read(const TableQuery *query, List *leaves, MemoryContext context, int32 *workers)
{
    MemoryContext scratch = AllocSetContextCreate(context, "kmeans scan", ALLOCSET_DEFAULT_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(scratch);

    if (query->new_snapshot) {
        CommandCounterIncrement();
        PushActiveSnapshot(GetTransactionSnapshot());
    }

    TableRows *const rows = read_in_context(query, leaves, context, workers);

    if (!query->keep_crew || !leaves_room(rows))
        scan_dismiss(rows);
    if (query->new_snapshot)
        PopActiveSnapshot();
    MemoryContextSwitchTo(caller);
    MemoryContextDelete(scratch);
    return rows;
}
