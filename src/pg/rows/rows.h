/*
 * rows.h - a growing row-major buffer of rows, the input of a fit.
 *
 * The buffer lies in a memory context given by its creator, or in shared memory that
 * lives as long, and is counted against pg_kmeans.memory_limit until it is freed or the
 * context is reset.
 */
#ifndef PGKM_PG_ROWS_H
#define PGKM_PG_ROWS_H

#include "pg/values/datum.h"
#include "pg/shared/view.h"

struct PgkmRows {
    MemoryContextCallback on_reset;
    MemoryContext         context;
    PgkmElement           element;
    int32                 d;
    int64                 n;
    int64                 capacity;  /* rows that fit before the next pgkm_rows_grow */
    Size                  row_bytes; /* d elements */
    char                 *values;    /* n x d */
    double               *weights;   /* n, or NULL when unweighted */
    bool                  weighted;
    uint64                reserved;  /* bytes counted against the limit */
    uint64                estimate;  /* bytes that all rows to come will take, for the error when they are too many; 0: not known */
    SharedView           *view;      /* holds the buffers; or NULL */
    int64                 expected;  /* move to shared memory when they are many: so many, about; 0: do not */
};

/* Rows of at least so many bytes are worth segments of their own. */
#define PGKM_LARGE_PART_BYTES ((Size) 1024 * 1024)

static inline Size pgkm_element_size(PgkmElement element)
{
    return element == PGKM_FLOAT32 ? sizeof(float) : sizeof(double);
}

/* An empty buffer in `context` for rows of d >= 1 elements. */
PgkmRows *pgkm_rows_create(MemoryContext context, PgkmElement element, int32 d, bool weighted);

/* Makes place for `more` rows behind the n present. 54000 when that passes the limit. */
void pgkm_rows_grow(PgkmRows *rows, int64 more);

/* Makes place for about so many more rows, unless that takes much of what the limit leaves. */
void pgkm_rows_expect(PgkmRows *rows, int64 more);

/* Lets unweighted rows lie in shared memory: what is to go to another process need not be copied
 * there. They move out where that has no room for more. False when there is no place for them. */
bool pgkm_rows_share(PgkmRows *rows);

/* Rows of another process as slices that hold n of them: the buffer, where it lies in shared memory,
 * takes the slices over, whole pages of whole rows (of n x d) as they are. Rows that it had on its last page come
 * behind them. False, with nothing done, where that is not possible. */
bool pgkm_rows_take(PgkmRows *rows, const SharedSlice *slices, int n_slices, int64 n);

/* Gives back what rows in shared memory have of it beyond their last page. */
void pgkm_rows_trim(PgkmRows *rows);

/* Makes what is counted for the rows against the limit so many bytes. 54000 when that passes it. */
void pgkm_rows_count(PgkmRows *rows, Size bytes);

/* For pgkm_rows_grow: makes place for `needed` rows in all in shared memory, if they lie or belong
 * there; false when they lie, or lie now, in memory of this process. */
bool pgkm_rows_grow_shared(PgkmRows *rows, int64 needed);

/* Gives back what rows in memory of this process leave empty, when no more are to come. */
void pgkm_rows_shrink(PgkmRows *rows);

/* Where the next row belongs. Write d elements there (and weights[n], when weighted), then
 * count it by ++rows->n. */
static inline void *pgkm_rows_next(PgkmRows *rows)
{
    if (unlikely(rows->n == rows->capacity))
        pgkm_rows_grow(rows, 1);
    return rows->values + rows->n * rows->row_bytes;
}

/* Whether that is a row of zeros, once its elements are written. */
bool pgkm_rows_next_is_zero(const PgkmRows *rows);

/* Appends one row and its weight (ignored when unweighted); false and *fault when the vector
 * is no row of this buffer. */
bool pgkm_rows_add(PgkmRows *rows, const PgkmVector *vector, double weight, PgkmRowFault *fault);

/* Appends n rows (and their weights, when weighted) from unaligned memory. */
void pgkm_rows_append(PgkmRows *rows, const char *values, const char *weights, int64 n);

/* Makes an empty buffer the owner of a view for `capacity` rows: values from its start on, weights
 * at an offset. The caller has counted it in `reserved`, and it does not grow. */
void pgkm_rows_adopt(PgkmRows *rows, SharedView *view, int64 capacity, Size weights);

/* The rows as the engine takes them. */
PgkmPoints pgkm_rows_points(const PgkmRows *rows);

/* The view that holds them, for PgkmFitRequest; none when they lie in this process's memory. */
PgkmSegment pgkm_rows_segment(const PgkmRows *rows);

/* Frees the memory at once and gives it back to the account; the struct itself stays. */
void pgkm_rows_clear(PgkmRows *rows);

#endif
