/*
 * reduce.cpp - a direct scan by several processes that reduce rows where they read them.
 *
 * Where the order of rows does not matter:
 *
 *   all:     read chunks; with exact sums look for the greatest magnitudes; meet
 *   all:     reduce their rows to a copy of R
 *
 * Where it does, and the chunks have been counted, all read segments of the rows, each to a copy of its own. Else the
 * leader wants the rows.
 *
 * Where a row fails, or rows are not as they were counted, there are no copies. Whoever reads the rows once more finds
 * the first that fails, whichever process has met with one.
 */
#include "pg/scan/parallel.h"

#include "pg/run/run_job.h"
#include "pg/settings.h"

extern "C" {
#include "utils/memutils.h"
}

/* --- the program --- */

/* Walks over the arrays behind a program, as they lie side by side. */
struct Walk {
    char *next; /* NULL: they are counted */
    Size bytes;
    bool writes;
};

template <typename T>
static void walk_over(Walk *walk, const T **array, int64 count)
{
    const Size bytes = count * sizeof(T);

    walk->bytes += MAXALIGN(bytes);
    if (walk->next == NULL)
        return;
    if (walk->writes && bytes > 0)
        memcpy(walk->next, *array, bytes);
    *array = (const T *)walk->next;
    walk->next += MAXALIGN(bytes);
}

static Size walk_arrays(PgkmReduction *program, char *memory, bool writes)
{
    Walk walk = {memory, 0, writes};

    walk_over(&walk, &program->expressions, program->n_expressions);
    walk_over(&walk, &program->loops, program->n_loops);
    walk_over(&walk, &program->parameters, program->n_parameters);
    walk_over(&walk, &program->items, program->n_items);
    walk_over(&walk, &program->objects, program->n_objects);
    return walk.bytes;
}

static Size program_bytes(const PgkmReduction *program)
{
    PgkmReduction copy = *program;

    return MAXALIGN(sizeof copy) + walk_arrays(&copy, NULL, false);
}

static void write_program(const PgkmReduction *program, char *memory)
{
    PgkmReduction copy = *program;

    (void)walk_arrays(&copy, memory + MAXALIGN(sizeof copy), true);
    memcpy(memory, &copy, sizeof copy);
}

static PgkmReduction read_program(shm_toc *toc)
{
    char *const memory = (char *)shm_toc_lookup(toc, SCAN_KEY_PROGRAM, false);
    PgkmReduction program;

    memcpy(&program, memory, sizeof program);
    (void)walk_arrays(&program, memory + MAXALIGN(sizeof program), false);
    return program;
}

/* --- shared memory --- */

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

void scan_reduction_put(shm_toc *toc, const TableReduction *reduction, ScanShared *shared)
{
    char *const program = (char *)shm_toc_allocate(toc, program_bytes(reduction->program));

    write_program(reduction->program, program);
    shm_toc_insert(toc, SCAN_KEY_PROGRAM, program);
    shm_toc_insert(toc, SCAN_KEY_COPIES, shm_toc_allocate(toc, copies_bytes(reduction)));
    shared->reduces = pgkm_copies_ordered(reduction->program) != 0 ? SCAN_ROWS : SCAN_SHARES;
    shared->reducing.n_copies = reduction->n_copies;
    shared->slices.wanted = 0; /* unless rows have to come together after all */
}

void scan_count_copies(const TableReduction *reduction, TableRows *rows)
{
    pgkm_memory_reserve(copies_bytes(reduction));
    rows->reserved += copies_bytes(reduction);
}

/* Without rows. */
static PgkmRequest make_request(const ScanMember *member)
{
    PgkmRequest request;

    memset(&request, 0, sizeof request);
    pgkm_settings_fill(&request.settings);
    request.reduction = read_program(member->toc);
    request.copies = {shm_toc_lookup(member->toc, SCAN_KEY_COPIES, false), member->shared->reducing.n_copies};
    request.points = pgkm_rows_points(member->reader->rows->used);
    return request;
}

/* --- rows --- */

static void fail(ScanReducing *reducing)
{
    pg_atomic_write_u32(&reducing->failed, 1);
}

static bool has_failed(ScanReducing *reducing)
{
    return pg_atomic_read_u32(&reducing->failed) != 0;
}

static void reduce_rows(ScanReducing *reducing, PgkmRequest *request, int64 copy, bool measure)
{
    PgkmError error;

    if (has_failed(reducing))
        return;
    request->settings.memory_limit = pgkm_memory_limit() == 0 ? 0 : Max(pgkm_memory_available(), (uint64)1);

    const PgkmStatus status = pgkm_copies_reduce(request, copy, measure, pgkm_interrupted, &error);

    if (status == PGKM_INVALID)
        fail(reducing);
    else if (status != PGKM_OK)
        pgkm_raise(&error);
}

/* Only processes that have come before they meet have a copy. */
static void reduce_share(const ScanMember *member)
{
    ScanShared *const shared = member->shared;
    ScanReducing *const reducing = &shared->reducing;
    const TableRows *const rows = member->reader->rows;
    const int64 copy = pg_atomic_fetch_add_u32(&reducing->n_begun, 1);

    scan_read_all(member->reader, shared->n_processes);
    pg_atomic_fetch_add_u64(&reducing->rows, rows->n);
    pg_atomic_fetch_add_u64(&reducing->skipped, rows->n_skipped);

    PgkmRequest request = make_request(member);

    if (request.reduction.exact)
        reduce_rows(reducing, &request, copy, true);
    scan_meet(shared);
    request.copies.count = pg_atomic_read_u32(&reducing->n_begun);
    reduce_rows(reducing, &request, copy, false);
}

/* False where that is not possible. */
static bool cut_segments(const ScanMember *member)
{
    ScanReducing *const reducing = &member->shared->reducing;
    PgkmRequest request = make_request(member);

    request.points.n = member->counted[member->reader->plan->n_chunks].used;
    if (request.points.n == 0)
        return false;
    reducing->n_copies = pgkm_copies_segments(&request, reducing->first_rows);
    pg_atomic_write_u64(&reducing->rows, request.points.n);
    return reducing->n_copies > 0;
}

void scan_prepare_reduction(const ScanMember *member, bool counted, TableRows *rows)
{
    ScanShared *const shared = member->shared;

    if (counted && cut_segments(member)) {
        shared->reduces = SCAN_SEGMENTS;
        return;
    }
    scan_slices_plan(member->reader->plan, shared->n_processes, &shared->slices);
    pgkm_rows_count(rows->used, shared->slices.wanted * shared->slices.bytes);
}

/* Reads rows first to last - 1, from *chunk on, which is the one that has the first of them, or one before. *chunk is
 * then the one that has the last. Returns how many others lie before them; -1 where rows are not as they were counted.
 */
static int64 read_segment(const ScanMember *member, int64 first, int64 last, uint32 *chunk)
{
    ScanReader *const reader = member->reader;
    const ScanPlace *const counted = member->counted;

    while (counted[*chunk + 1].used <= first)
        ++*chunk;

    const int64 before = first - counted[*chunk].used;

    reader->rows->used->n = 0;
    for (;; ++*chunk) {
        scan_reader_read(reader, *chunk);
        if (reader->notes[reader->n_notes - 1].count.used != counted[*chunk + 1].used - counted[*chunk].used)
            return -1;
        if (counted[*chunk + 1].used >= last)
            return before;
    }
}

static void reduce_segments(const ScanMember *member)
{
    ScanReducing *const reducing = &member->shared->reducing;
    const PgkmRows *const used = member->reader->rows->used;
    PgkmRequest request = make_request(member);
    int64 segment;
    uint32 chunk = 0;

    while (!has_failed(reducing) && (segment = pg_atomic_fetch_add_u32(&reducing->n_begun, 1)) < reducing->n_copies) {
        const int64 first = reducing->first_rows[segment];
        const int64 last = reducing->first_rows[segment + 1];
        const int64 before = read_segment(member, first, last, &chunk);

        if (before < 0) {
            fail(reducing);
            break;
        }
        request.points = pgkm_rows_points(used);
        request.points.values = used->values + before * used->row_bytes;
        request.points.n = last - first;
        reduce_rows(reducing, &request, segment, false);
    }
    scan_reader_close(member->reader);
}

void scan_reduce(const ScanMember *member)
{
    if (member->shared->reduces == SCAN_SHARES)
        reduce_share(member);
    else
        reduce_segments(member);
}

void scan_take_copies(const ScanMember *member, TableReduction *reduction, TableRows *rows)
{
    ScanReducing *const reducing = &member->shared->reducing;
    const int64 count = Min((int64)pg_atomic_read_u32(&reducing->n_begun), reducing->n_copies);
    const Size bytes = pgkm_copies_bytes(reduction->program, count);

    reduction->failed = has_failed(reducing);
    if (reduction->failed)
        return;
    rows->n = pg_atomic_read_u64(&reducing->rows);
    rows->n_skipped = pg_atomic_read_u64(&reducing->skipped);
    rows->used->n = table_rows_used(rows);
    pgkm_rows_count(rows->used, bytes);
    reduction->copies = {MemoryContextAllocHuge(rows->context, bytes), count};
    memcpy(reduction->copies.memory, shm_toc_lookup(member->toc, SCAN_KEY_COPIES, false), bytes);
}
