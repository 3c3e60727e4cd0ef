/*
 * rows.cpp - a growing row-major buffer of rows, the input of a fit.
 */
#include "pg/rows/rows.h"

#include "pg/run/memory_account.h"

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
    SharedView *const view = buffer->view;

    pgkm_memory_release(buffer->reserved);
    buffer->reserved = 0;
    buffer->view = NULL;
    if (view != NULL)
        shared_view_detach(view);
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

    if (needed > rows->allocated && (uint64)needed <= affordable && rows->view == NULL)
        allocate(rows, needed);
}

void pgkm_rows_grow(PgkmRows *rows, int64 more)
{
    const int64 needed = rows->n + more;

    if (needed <= rows->capacity)
        return;
    if (needed > rows->allocated)
        allocate(rows, needed);
    populate(rows, needed);
}

void pgkm_rows_shrink(PgkmRows *rows)
{
    const int64 capacity = Max(rows->n, (int64)1);

    if (rows->view != NULL || rows->allocated <= capacity)
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

void pgkm_rows_adopt(PgkmRows *rows, SharedView *view, int64 capacity, Size weights)
{
    Assert(rows->values == NULL);
    rows->view = view;
    rows->values = view->base;
    rows->weights = rows->weighted ? (double *)(view->base + weights) : NULL;
    rows->capacity = capacity;
}

void pgkm_rows_count(PgkmRows *rows, Size bytes)
{
    if (bytes > rows->reserved)
        pgkm_memory_reserve(bytes - rows->reserved);
    else
        pgkm_memory_release(rows->reserved - bytes);
    rows->reserved = bytes;
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

PgkmSegment pgkm_rows_segment(const PgkmRows *rows)
{
    PgkmSegment segment = {0, NULL, 0};

    if (rows->view != NULL) {
        segment.handle = dsm_segment_handle(rows->view->directory);
        segment.base = rows->view->base;
        segment.bytes = rows->view->bytes;
    }
    return segment;
}

void pgkm_rows_clear(PgkmRows *rows)
{
    if (rows->view == NULL && rows->values != NULL)
        pfree(rows->values);
    if (rows->view == NULL && rows->weights != NULL)
        pfree(rows->weights);
    rows->values = NULL;
    rows->weights = NULL;
    rows->n = 0;
    rows->capacity = rows->allocated = 0;
    release(rows);
}
