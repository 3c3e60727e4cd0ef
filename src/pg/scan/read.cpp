/*
 * read.cpp - runs a direct scan from start to end.
 */
#include "pg/scan/scan.h"

#include "pg/run/memory_account.h"
#include "pg/settings.h"
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
    if (plan->decoder.mixed)
        memcpy(plan->widths, reader->rows->widths, plan->query.n_features * sizeof(int32));
}

/* Whether as many processes shall reduce their own rows. The program is made, with the errors that it may have, where a
 * row takes part, and before most rows are read: however many processes there are. */
static bool reduces(TableReduction *reduction, const ScanPlan *plan, ScanReader *reader, int n_processes)
{
    PgkmRequest request;

    if (reduction == NULL)
        return false;
    while (table_rows_used(reader->rows) == 0)
        if (!scan_reader_step(reader))
            return false;
    memset(&request, 0, sizeof request);
    pgkm_settings_fill(&request.settings);
    reduction->program = reduction->make(reduction->arg, reader->rows);
    request.points = pgkm_rows_points(reader->rows->used);
    request.points.n = plan->expected_rows;
    request.reduction = *reduction->program;
    reduction->n_copies = pgkm_copies_wanted(&request, n_processes);
    return reduction->n_copies > 0;
}

TableRows *scan_reader_run(ScanPlan *plan, ScanReader *reader, TableReduction *reduction, MemoryContext context,
                           int32 *workers)
{
    scan_reader_first(plan, reader);

    const int n_workers = scan_plan_workers(plan);

    if (!reduces(reduction, plan, reader, n_workers + 1))
        reduction = NULL;

    if (plan->most_rows == 0)
        scan_plan_memory(plan);
    if (n_workers > 0 && pg_atomic_read_u32(reader->next_chunk) < plan->n_chunks)
        return scan_parallel(plan, reader, reduction, n_workers, context, workers);
    scan_reader_expect(reader, 1);
    while (scan_reader_step(reader))
        ;
    scan_reader_close(reader);
    return reader->rows;
}

static TableRows *read_in_context(const TableQuery *query, List *tables, TableReduction *reduction,
                                  MemoryContext context, int32 *workers)
{
    ScanPlan *const plan = scan_plan_make(query, tables, SCAN_CHUNKS);
    pg_atomic_uint32 next_chunk;

    pg_atomic_init_u32(&next_chunk, 0);
    return scan_reader_run(plan, scan_reader_create(plan, &next_chunk, context), reduction, context, workers);
}

/* Until the crew has gone its memory counts as well. It must not be in the way of the fit. */
static bool leaves_room(const TableRows *rows)
{
    return rows->used == NULL || rows->used->reserved < pgkm_memory_available() / 4;
}

TableRows *scan_read(const TableQuery *query, List *tables, MemoryContext context, int32 *workers)
{
    MemoryContext scratch = AllocSetContextCreate(context, "kmeans scan", ALLOCSET_DEFAULT_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(scratch);

    if (query->new_snapshot) {
        CommandCounterIncrement();
        PushActiveSnapshot(GetTransactionSnapshot());
    }

    TableRows *rows = read_in_context(query, tables, query->reduction, context, workers);

    if (query->reduction != NULL && query->reduction->failed) {
        scan_dismiss(rows);
        rows = read_in_context(query, tables, NULL, context, workers);
    }
    if (!query->keep_crew || !leaves_room(rows))
        scan_dismiss(rows);
    if (query->new_snapshot)
        PopActiveSnapshot();
    MemoryContextSwitchTo(caller);
    MemoryContextDelete(scratch);
    return rows;
}
