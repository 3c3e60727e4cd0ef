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

/* The context takes its memory back by itself; the account has to be told. */
static void release(void *rows)
{
    PgkmRows *const buffer = (PgkmRows *)rows;

    pgkm_memory_release(buffer->reserved);
    buffer->reserved = 0;
    pgkm_segment_free(&buffer->segment);
}

PgkmRows *pgkm_rows_create(MemoryContext context, PgkmElement element, int32 d, bool weighted)
{
    PgkmRows *const rows = (PgkmRows *)MemoryContextAllocZero(context, sizeof(PgkmRows));

    rows->context = context;
    rows->element = element;
    rows->d = d;
    rows->row_bytes = (Size)d * pgkm_element_size(element);
    rows->weighted = weighted;
    rows->on_reset.func = release;
    rows->on_reset.arg = rows;
    MemoryContextRegisterResetCallback(context, &rows->on_reset);
    return rows;
}

/* From so many bytes on a buffer grows by a quarter. The system moves such blocks without a copy, and what is left
 * empty counts against the limit. */
#define LARGE_BUFFER_BYTES ((Size)64 * 1024 * 1024)

/* About as much of a larger buffer is provided at once. */
#define POPULATED_BYTES ((Size)2 * 1024 * 1024)

static Size bytes_per_row(const PgkmRows *rows)
{
    return rows->row_bytes + (rows->weighted ? sizeof(double) : 0);
}

/* The next capacity: twice the last (of a large buffer a quarter more), but not beyond the limit
 * while `needed` still fits. */
static int64 next_capacity(const PgkmRows *rows, int64 needed)
{
    const Size row = bytes_per_row(rows);
    const int64 largest = (int64)(MaxAllocHugeSize / row);
    const uint64 available = pgkm_memory_available();
    const bool large = rows->allocated * row >= LARGE_BUFFER_BYTES;
    const Size least = rows->allocated == 0 ? FIRST_BUFFER_BYTES : SECOND_BUFFER_BYTES;
    int64 capacity = Max(rows->allocated + (large ? rows->allocated / 4 : rows->allocated), (int64)(least / row));

    if (needed > largest)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("too many rows to cluster")));
    if (available / row < (uint64)(Max(capacity, needed) - rows->allocated))
        capacity = rows->allocated + (int64)(available / row);
    return Min(Max(capacity, needed), largest);
}

static void *resize(MemoryContext context, void *memory, Size bytes)
{
    return memory == NULL ? MemoryContextAllocHuge(context, bytes) : repalloc_huge(memory, bytes);
}

/* The first touch of memory costs more than filling it. To ask for some pages at once costs less; for all of them it
 * would take too long, as it cannot be interrupted. */
static void populate(PgkmRows *rows, int64 needed)
{
    const Size row = rows->row_bytes;
    const int64 end = Min(rows->allocated, Max(needed, rows->capacity + (int64)(POPULATED_BYTES / row)));

    if ((Size)rows->allocated * row < 2 * POPULATED_BYTES) {
        rows->capacity = rows->allocated;
        return;
    }
    shared_populate(rows->values + rows->capacity * row, (Size)(end - rows->capacity) * row);
    rows->capacity = end;
}

/* Makes place in memory of this process for `needed` rows in all. */
static void allocate(PgkmRows *rows, int64 needed)
{
    const int64 capacity = next_capacity(rows, needed);
    const uint64 growth = (uint64)(capacity - rows->allocated) * bytes_per_row(rows);

    pgkm_memory_reserve_part(growth, rows->estimate);
    rows->reserved += growth;
    rows->values = (char *)resize(rows->context, rows->values, (Size)capacity * rows->row_bytes);
    if (rows->weighted)
        rows->weights = (double *)resize(rows->context, rows->weights, (Size)capacity * sizeof(double));
    rows->allocated = capacity;
}

void pgkm_rows_expect(PgkmRows *rows, int64 more)
{
    const uint64 affordable = Min(pgkm_memory_available(), (uint64)MaxAllocHugeSize) / 2 / bytes_per_row(rows);
    const int64 needed = rows->n + more;

    if (needed > rows->allocated && (uint64)needed <= affordable)
        allocate(rows, needed);
}

/* Rows that grow leave their segment. */
static void leave_segment(PgkmRows *rows)
{
    PgkmRows left = *rows;

    rows->values = NULL;
    rows->weights = NULL;
    rows->n = rows->capacity = rows->allocated = 0;
    rows->reserved = 0;
    rows->segment = {};
    pgkm_rows_append(rows, left.values, (const char *)left.weights, left.n);
    pgkm_segment_free(&left.segment);
    pgkm_memory_release(left.reserved);
}

void pgkm_rows_grow(PgkmRows *rows, int64 more)
{
    const int64 needed = rows->n + more;

    if (needed <= rows->capacity)
        return;
    if (rows->segment.file != 0)
        leave_segment(rows);
    if (needed > rows->allocated)
        allocate(rows, needed);
    populate(rows, needed);
}

/* False where there is no segment to be had. */
static bool allocate_segment(PgkmRows *rows, int64 n)
{
    const Size values = MAXALIGN((Size)n * rows->row_bytes);
    const Size bytes = values + (rows->weighted ? (Size)n * sizeof(double) : 0);

    pgkm_memory_reserve_part(bytes, rows->estimate);
    rows->reserved += bytes;
    if (pgkm_segment_create(bytes, &rows->segment, NULL) != PGKM_OK) {
        rows->reserved -= bytes;
        pgkm_memory_release(bytes);
        return false;
    }
    rows->values = (char *)rows->segment.base;
    rows->weights = rows->weighted ? (double *)(rows->values + values) : NULL;
    rows->allocated = n;
    return true;
}

void pgkm_rows_make(PgkmRows *rows, int64 n, bool shared)
{
    if (n > 0 && !(shared && allocate_segment(rows, n)))
        allocate(rows, n);
    rows->capacity = rows->allocated;
    rows->n = n;
}

void pgkm_rows_shrink(PgkmRows *rows)
{
    const int64 capacity = Max(rows->n, (int64)1);

    if (rows->segment.file != 0 || rows->allocated <= capacity)
        return;

    const uint64 unused = (uint64)(rows->allocated - capacity) * bytes_per_row(rows);

    rows->values = (char *)resize(rows->context, rows->values, (Size)capacity * rows->row_bytes);
    if (rows->weighted)
        rows->weights = (double *)resize(rows->context, rows->weights, (Size)capacity * sizeof(double));
    rows->capacity = rows->allocated = capacity;
    rows->reserved -= unused;
    pgkm_memory_release(unused);
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
    if (unlikely(vector->length != rows->d)) {
        fault->kind = PGKM_ROW_LENGTH;
        fault->expected = rows->d;
        fault->found = vector->length;
        return false;
    }
    if (!pgkm_copy_vector(vector, rows->element, pgkm_rows_next(rows), fault))
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
    PgkmPoints points;

    points.values = rows->values;
    points.element = rows->element;
    points.n = rows->n;
    points.d = rows->d;
    points.weights = rows->weighted ? rows->weights : NULL;
    return points;
}

void pgkm_rows_clear(PgkmRows *rows)
{
    if (rows->segment.file == 0 && rows->values != NULL)
        pfree(rows->values);
    if (rows->segment.file == 0 && rows->weights != NULL)
        pfree(rows->weights);
    rows->values = NULL;
    rows->weights = NULL;
    rows->n = 0;
    rows->capacity = rows->allocated = 0;
    release(rows);
}
