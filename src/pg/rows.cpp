/*
 * rows.cpp - a growing row-major buffer of rows, the input of a fit.
 */
#include "pg/rows.h"

#include "pg/boundary.h"

extern "C" {
#include "utils/memutils.h"
}

/* The first buffer holds about this many bytes: with many groups most of them stay small. */
#define FIRST_BUFFER_BYTES 512

/* The context takes the memory back by itself; the account has to be told. */
static void release_account(void *rows)
{
    PgkmRows *const buffer = (PgkmRows *) rows;

    pgkm_memory_release(buffer->reserved);
    buffer->reserved = 0;
}

PgkmRows *pgkm_rows_create(MemoryContext context, PgkmElement element, int32 d, bool weighted)
{
    PgkmRows *const rows = (PgkmRows *) MemoryContextAllocZero(context, sizeof(PgkmRows));

    rows->context = context;
    rows->element = element;
    rows->d = d;
    rows->row_bytes = (Size) d * pgkm_element_size(element);
    rows->weighted = weighted;
    rows->on_reset.func = release_account;
    rows->on_reset.arg = rows;
    MemoryContextRegisterResetCallback(context, &rows->on_reset);
    return rows;
}

/* The next capacity: twice the last, but not beyond the limit while `needed` still fits. */
static int64 next_capacity(const PgkmRows *rows, int64 needed, Size bytes_per_row)
{
    const int64  largest = (int64) (MaxAllocHugeSize / bytes_per_row);
    const uint64 available = pgkm_memory_available();
    int64        capacity = Max(rows->capacity * 2, (int64) (FIRST_BUFFER_BYTES / bytes_per_row));

    if (needed > largest)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("too many rows to cluster")));
    if (available / bytes_per_row < (uint64) (Max(capacity, needed) - rows->capacity))
        capacity = rows->capacity + (int64) (available / bytes_per_row);
    return Min(Max(capacity, needed), largest);
}

static void *resize(MemoryContext context, void *memory, Size bytes)
{
    return memory == NULL ? MemoryContextAllocHuge(context, bytes) : repalloc_huge(memory, bytes);
}

void pgkm_rows_grow(PgkmRows *rows, int64 more)
{
    const Size  bytes_per_row = rows->row_bytes + (rows->weighted ? sizeof(double) : 0);
    const int64 needed = rows->n + more;

    if (needed <= rows->capacity)
        return;

    const int64  capacity = next_capacity(rows, needed, bytes_per_row);
    const uint64 growth = (uint64) (capacity - rows->capacity) * bytes_per_row;

    pgkm_memory_reserve(growth);
    rows->reserved += growth;
    rows->values = (char *) resize(rows->context, rows->values, (Size) capacity * rows->row_bytes);
    if (rows->weighted)
        rows->weights = (double *) resize(rows->context, rows->weights, (Size) capacity * sizeof(double));
    rows->capacity = capacity;
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
    memcpy(rows->values + rows->n * rows->row_bytes, values, n * rows->row_bytes);
    if (rows->weighted)
        memcpy(rows->weights + rows->n, weights, n * sizeof(double));
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
    if (rows->values != NULL)
        pfree(rows->values);
    if (rows->weights != NULL)
        pfree(rows->weights);
    rows->values = NULL;
    rows->weights = NULL;
    rows->n = 0;
    rows->capacity = 0;
    release_account(rows);
}
