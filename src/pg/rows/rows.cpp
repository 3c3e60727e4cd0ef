/*
 * rows.cpp - a growing row-major buffer of rows, the input of a fit.
 */
#include "pg/rows/rows.h"

#include "pg/run/memory_account.h"
#include "pg/shared/pages.h"

extern "C" {
#include "utils/memutils.h"
}

/* Bytes of the first buffer, about, and the least of the next ones. Where there are millions of groups, most of them
 * have a row or two. */
#define FIRST_BUFFER_BYTES 64
#define SECOND_BUFFER_BYTES 512

/* From so many bytes on a buffer grows by a quarter. The system moves such blocks without a copy, and what is left
 * empty counts against the limit. */
#define LARGE_BUFFER_BYTES ((Size)64 * 1024 * 1024)

/* The context takes its memory back by itself; the account has to be told. */
static void release(void *rows)
{
    PgkmRows *const buffer = (PgkmRows *)rows;

    pgkm_memory_hold(&buffer->reserved, -(int64)buffer->reserved);
    pgkm_segment_free(&buffer->segment);
}

PgkmRows *pgkm_rows_create(MemoryContext context, PgkmElement element, int32 d, bool weighted)
{
    PgkmRows *const rows = (PgkmRows *)MemoryContextAllocZero(context, sizeof(PgkmRows));

    rows->context = context;
    rows->element = element;
    rows->d = d;
    rows->row_bytes = pgkm_row_bytes(element, d);
    rows->weighted = weighted;
    rows->on_reset.func = release;
    rows->on_reset.arg = rows;
    MemoryContextRegisterResetCallback(context, &rows->on_reset);
    return rows;
}

static Size bytes_per_row(const PgkmRows *rows)
{
    return rows->row_bytes + (rows->weighted ? sizeof(double) : 0);
}

int64 pgkm_next_capacity(int64 capacity, int64 needed, Size row)
{
    const int64 largest = (int64)(MaxAllocHugeSize / row);
    const bool large = capacity * row >= LARGE_BUFFER_BYTES;
    const Size least = capacity == 0 ? FIRST_BUFFER_BYTES : SECOND_BUFFER_BYTES;
    const int64 affordable = capacity + (int64)Min(pgkm_memory_free() / row, (uint64)largest);
    const int64 wanted = Max(capacity + (large ? capacity / 4 : capacity), (int64)(least / row));

    if (needed > largest)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("too many rows to cluster")));
    return Min(Max(Min(wanted, affordable), needed), largest);
}

void *pgkm_resize(MemoryContext context, void *memory, int64 count, Size size)
{
    void *const resized =
        memory == NULL ? MemoryContextAllocHuge(context, count * size) : repalloc_huge(memory, count * size);

    shared_large_pages(resized, count * size);
    return resized;
}

/* Makes place in memory of this process for so many rows in all. */
static void set_capacity(PgkmRows *rows, int64 capacity)
{
    pgkm_memory_hold(&rows->reserved, (capacity - rows->capacity) * (int64)bytes_per_row(rows), rows->estimate);
    rows->values = (char *)pgkm_resize(rows->context, rows->values, capacity, rows->row_bytes);
    if (rows->weighted)
        rows->weights = (double *)pgkm_resize(rows->context, rows->weights, capacity, sizeof(double));
    rows->capacity = capacity;
}

void pgkm_rows_expect(PgkmRows *rows, int64 more)
{
    const uint64 affordable = Min(pgkm_memory_free(), (uint64)MaxAllocHugeSize) / 2 / bytes_per_row(rows);
    const int64 needed = rows->n + more;

    if (needed > rows->capacity && (uint64)needed <= affordable)
        set_capacity(rows, needed);
}

/* Rows that grow leave their segment. */
static void leave_segment(PgkmRows *rows)
{
    PgkmRows left = *rows;

    rows->values = NULL;
    rows->weights = NULL;
    rows->n = rows->capacity = 0;
    rows->reserved = 0;
    rows->segment = {};
    pgkm_rows_append(rows, left.values, (const char *)left.weights, left.n);
    release(&left);
}

void pgkm_rows_grow(PgkmRows *rows, int64 more)
{
    const int64 needed = rows->n + more;

    if (needed <= rows->capacity)
        return;
    if (rows->segment.file != 0)
        leave_segment(rows);
    if (needed > rows->capacity)
        set_capacity(rows, pgkm_next_capacity(rows->capacity, needed, bytes_per_row(rows)));
}

/* False where there is no segment to be had. */
static bool allocate_segment(PgkmRows *rows, int64 n)
{
    const Size values = MAXALIGN((Size)n * rows->row_bytes);
    const Size bytes = values + (rows->weighted ? (Size)n * sizeof(double) : 0);

    pgkm_memory_hold(&rows->reserved, bytes, rows->estimate);
    if (pgkm_segment_create(bytes, &rows->segment, NULL) != PGKM_OK) {
        pgkm_memory_hold(&rows->reserved, -(int64)bytes);
        return false;
    }
    rows->values = (char *)rows->segment.base;
    rows->weights = rows->weighted ? (double *)(rows->values + values) : NULL;
    rows->capacity = n;
    return true;
}

void pgkm_rows_make(PgkmRows *rows, int64 n, bool shared)
{
    if (n > 0 && !(shared && allocate_segment(rows, n)))
        set_capacity(rows, n);
    rows->n = n;
}

void pgkm_rows_shrink(PgkmRows *rows)
{
    const int64 capacity = Max(rows->n, (int64)1);

    if (rows->segment.file == 0 && rows->capacity > capacity)
        set_capacity(rows, capacity);
}

template <typename T>
static bool is_zero(const T *row, int32 d)
{
    for (int32 i = 0; i < d; ++i)
        if (row[i] != 0)
            return false;
    return true;
}

bool pgkm_rows_next_is_zero(const PgkmRows *rows)
{
    const char *const row = rows->values + rows->n * rows->row_bytes;

    return rows->element == PGKM_FLOAT32 ? is_zero((const float *)row, rows->d) : is_zero((const double *)row, rows->d);
}

bool pgkm_rows_add(PgkmRows *rows, const PgkmVector *vector, double weight, PgkmRowFault *fault)
{
    if (!pgkm_copy_row(vector, rows->element, rows->d, pgkm_rows_next(rows), fault))
        return false;
    if (rows->weighted)
        rows->weights[rows->n] = weight;
    ++rows->n;
    return true;
}

void pgkm_rows_append(PgkmRows *rows, const char *values, const char *weights, int64 n)
{
    pgkm_rows_grow(rows, n);
    pgkm_copy(rows->values + rows->n * rows->row_bytes, values, n * rows->row_bytes);
    if (rows->weighted)
        pgkm_copy(rows->weights + rows->n, weights, n * sizeof(double));
    rows->n += n;
}

PgkmPoints pgkm_rows_points(const PgkmRows *rows)
{
    return {rows->values, rows->element, rows->n, rows->d, rows->weighted ? rows->weights : NULL};
}

PgkmPoints pgkm_no_points(PgkmElement element, int32 d, bool weighted)
{
    static const double none = 0;

    return {&none, element, 0, d, weighted ? &none : NULL};
}

void pgkm_rows_clear(PgkmRows *rows)
{
    if (rows->segment.file == 0 && rows->values != NULL)
        pfree(rows->values);
    if (rows->segment.file == 0 && rows->weights != NULL)
        pfree(rows->weights);
    rows->values = NULL;
    rows->weights = NULL;
    rows->n = rows->capacity = 0;
    release(rows);
}
