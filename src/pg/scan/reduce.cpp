/*
 * reduce.cpp - a direct scan by several processes that reduce rows where they read them: a reduction whose result does
 * not depend on the order of the rows.
 *
 *   all:     read chunks; with exact sums look for the greatest magnitudes; meet
 *   all:     reduce their rows to a copy of R; meet
 *   leader:  takes the copies
 *
 * Where a row fails there are no copies. Whoever reads the rows once more finds the first that fails, whichever process
 * has met with one.
 */
#include "pg/scan/parallel.h"

#include "pg/run/run_job.h"
#include "pg/settings.h"

#include <type_traits>

extern "C" {
#include "utils/memutils.h"
}

/* The bytes of a program and of the arrays behind it. With memory for them the arrays lie, and are written, there. */
static Size place_program(PgkmReduction *program, char *memory, bool writes)
{
    Size bytes = MAXALIGN(sizeof *program);
    const auto place = [&bytes, memory, writes](auto *&array, int64 count) {
        const Size size = count * sizeof *array;

        if (writes && size > 0)
            memcpy(memory + bytes, array, size);
        if (memory != NULL)
            array = (std::remove_reference_t<decltype(array)>)(memory + bytes);
        bytes += MAXALIGN(size);
    };

    place(program->expressions, program->n_expressions);
    place(program->loops, program->n_loops);
    place(program->parameters, program->n_parameters);
    place(program->items, program->n_items);
    place(program->objects, program->n_objects);
    return bytes;
}

static Size program_bytes(const PgkmReduction *program)
{
    PgkmReduction copy = *program;

    return place_program(&copy, NULL, false);
}

static Size copies_bytes(const TableReduction *reduction)
{
    return pgkm_copies_bytes(reduction->program, reduction->n_copies);
}

void scan_reduction_estimate(shm_toc_estimator *estimator, const TableReduction *reduction)
{
    shm_toc_estimate_chunk(estimator, program_bytes(reduction->program));
    shm_toc_estimate_chunk(estimator, copies_bytes(reduction));
    shm_toc_estimate_keys(estimator, 2);
}

void scan_reduction_put(shm_toc *toc, const TableReduction *reduction, ScanReducing *reducing)
{
    PgkmReduction program = *reduction->program;
    char *const memory = (char *)shm_toc_allocate(toc, program_bytes(&program));

    (void)place_program(&program, memory, true);
    memcpy(memory, &program, sizeof program);
    shm_toc_insert(toc, SCAN_KEY_PROGRAM, memory);
    shm_toc_insert(toc, SCAN_KEY_COPIES, shm_toc_allocate(toc, copies_bytes(reduction)));
    reducing->n_copies = reduction->n_copies;
}

void scan_count_copies(const TableReduction *reduction, TableRows *rows)
{
    pgkm_memory_reserve(copies_bytes(reduction));
    rows->reserved += copies_bytes(reduction);
}

static void reduce_rows(ScanReducing *reducing, PgkmRequest *request, int64 copy, bool measure)
{
    PgkmError error;

    if (pg_atomic_read_u32(&reducing->failed) != 0)
        return;
    request->settings.memory_limit = pgkm_memory_limit() == 0 ? 0 : Max(pgkm_memory_available(), (uint64)1);

    const PgkmStatus status = pgkm_copies_reduce(request, copy, measure, pgkm_interrupted, &error);

    if (status == PGKM_INVALID)
        pg_atomic_write_u32(&reducing->failed, 1);
    else if (status != PGKM_OK)
        pgkm_raise(&error);
}

/* Only processes that have come before they meet have a copy. */
void scan_reduce(const ScanMember *member)
{
    ScanShared *const shared = member->shared;
    ScanReducing *const reducing = &shared->reducing;
    const TableRows *const rows = member->reader->rows;
    char *const program = (char *)shm_toc_lookup(member->toc, SCAN_KEY_PROGRAM, false);
    const int64 copy = pg_atomic_fetch_add_u32(&reducing->n_begun, 1);
    PgkmRequest request;

    scan_read_all(member->reader, shared->n_processes);
    pg_atomic_fetch_add_u64(&reducing->rows, rows->n);
    pg_atomic_fetch_add_u64(&reducing->skipped, rows->n_skipped);

    memset(&request, 0, sizeof request);
    pgkm_settings_fill(&request.settings);
    memcpy(&request.reduction, program, sizeof request.reduction);
    (void)place_program(&request.reduction, program, false);
    request.copies = {shm_toc_lookup(member->toc, SCAN_KEY_COPIES, false), reducing->n_copies};
    request.points = pgkm_rows_points(rows->used);
    if (request.reduction.exact)
        reduce_rows(reducing, &request, copy, true);
    scan_meet(shared);
    request.copies.count = pg_atomic_read_u32(&reducing->n_begun);
    reduce_rows(reducing, &request, copy, false);
}

void scan_take_copies(const ScanMember *member, TableReduction *reduction, TableRows *rows)
{
    ScanReducing *const reducing = &member->shared->reducing;
    const int64 count = pg_atomic_read_u32(&reducing->n_begun);
    const Size bytes = pgkm_copies_bytes(reduction->program, count);

    reduction->failed = pg_atomic_read_u32(&reducing->failed) != 0;
    if (reduction->failed)
        return;
    rows->n = pg_atomic_read_u64(&reducing->rows);
    rows->n_skipped = pg_atomic_read_u64(&reducing->skipped);
    rows->used->n = table_rows_used(rows);
    pgkm_rows_count(rows->used, bytes);
    reduction->copies = {MemoryContextAllocHuge(rows->context, bytes), count};
    memcpy(reduction->copies.memory, shm_toc_lookup(member->toc, SCAN_KEY_COPIES, false), bytes);
}
