/*
 * rows.h - a growing row-major buffer of rows, the input of a fit.
 *
 * The buffer lies in a memory context that its creator names. It is
 * counted against pg_kmeans.memory_limit until it is freed or the context is reset. Whatever makes a buffer
 * grow raises 54000 when that passes the limit.
 */
#ifndef PGKM_PG_ROWS_ROWS_H
#define PGKM_PG_ROWS_ROWS_H

#include "pg/values/datum.h"

struct PgkmRows {
    MemoryContextCallback on_reset;
    MemoryContext context;
    PgkmElement element;
    int32 d;
    int64 n;
    int64 capacity;  /* rows that fit before the next pgkm_rows_grow */
    Size row_bytes;  /* d elements */
    char *values;    /* n x d */
    double *weights; /* n, or NULL when unweighted */
    bool weighted;
    uint64 reserved;     /* bytes counted against the limit */
    uint64 estimate;     /* bytes that all rows will take, for the error; 0: not known */
    PgkmSegment segment; /* holds values and weights, for the GPU service to map; or none */
};

/* An empty buffer in `context` for rows of d >= 1 elements. */
PgkmRows *pgkm_rows_create(MemoryContext context, PgkmElement element, int32 d, bool weighted);

/* --- growing and shrinking --- */

/* Makes place for `more` rows behind the n present. */
void pgkm_rows_grow(PgkmRows *rows, int64 more);

/* Makes place for about so many more rows, unless that takes much of what the limit leaves. */
void pgkm_rows_expect(PgkmRows *rows, int64 more);

/* Makes an empty buffer one of n rows, whose values and weights the caller writes. With `shared` in a segment, if there
 * is memory for one: each part of it has to be filled (pgkm_segment_fill) before it is written. */
void pgkm_rows_make(PgkmRows *rows, int64 n, bool shared);

/* Gives back what a buffer leaves empty, when no more rows are to come. */
void pgkm_rows_shrink(PgkmRows *rows);

/* Frees the memory at once and gives it back to the account; the struct itself stays. */
void pgkm_rows_clear(PgkmRows *rows);

/* For other arrays of rows: how many rows of so many bytes to have place for when `capacity` is too small for `needed`,
 * and an array (NULL: none yet) of so many elements. */
int64 pgkm_next_capacity(int64 capacity, int64 needed, Size row);
void *pgkm_resize(MemoryContext context, void *memory, int64 count, Size size);

/* --- appending and reading --- */

/* Where the next row belongs. Write d elements there (and weights[n], when weighted), then count it by
 * ++rows->n. */
static inline void *pgkm_rows_next(PgkmRows *rows)
{
    if (unlikely(rows->n == rows->capacity))
        pgkm_rows_grow(rows, 1);
    return rows->values + rows->n * rows->row_bytes;
}

/* Whether that is a row of zeros, once its elements are written. */
bool pgkm_rows_next_is_zero(const PgkmRows *rows);

/* Appends one row and its weight (ignored when unweighted). False and *fault when the vector is no row of
 * this buffer. */
bool pgkm_rows_add(PgkmRows *rows, const PgkmVector *vector, double weight, PgkmRowFault *fault);

/* Appends n rows, and their weights when weighted, from unaligned memory. */
void pgkm_rows_append(PgkmRows *rows, const char *values, const char *weights, int64 n);

/* The rows as the engine takes them, and none of such rows. */
PgkmPoints pgkm_rows_points(const PgkmRows *rows);
PgkmPoints pgkm_no_points(PgkmElement element, int32 d, bool weighted);

#endif
