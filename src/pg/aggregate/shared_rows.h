/*
 * shared_rows.h - rows of a partial aggregate that wait for the leader in the parallel query's shared memory.
 *
 * The state of a partial aggregate goes to the leader as a bytea, through a tuple queue of 64 kB. A few rows are part
 * of it. Many rows are left, block by block, in the query's area (EState.es_query_dsa), and the bytea says where.
 *
 * Who owns the blocks: the area does, and the parallel query's segment owns the area. The leader is attached to it from
 * before its workers start until it ends the query, normally or by an error. So the rows of a worker that has ended
 * stay readable, and rows that nobody took go with the area.
 *
 * Whom to believe: some distributed planners let any role hand bytes to a deserialization function. So a name of memory
 * is followed only where the executor itself calls it for the upper half of a parallel aggregate whose serialization
 * function is ours. Only that function can have written what comes there. Everywhere else, rows are part of the bytea.
 */
#ifndef PGKM_PG_AGGREGATE_SHARED_ROWS_H
#define PGKM_PG_AGGREGATE_SHARED_ROWS_H

#include "pg/compat.h"

#include "pg/rows/rows.h"

extern "C" {
#include "utils/dsa.h"
}

/* Blocks of rows in a query's area. All zero: there are none. */
struct SharedRows {
    dsa_area *area;    /* its address in the leader's process; NULL in what a worker has written */
    dsm_handle query;  /* the parallel query's segment, when a worker of it wrote them */
    dsa_pointer block; /* the one that was written last */
    int64 n;           /* rows in all blocks */
};

/* The area where the state that begins in the transition function called with `fcinfo` may leave rows; or NULL. */
dsa_area *shared_rows_area(FunctionCallInfo fcinfo);

/* How many rows fill a block. */
int64 shared_rows_of_block(const PgkmRows *rows);

/* Moves all rows to a new block. False, with nothing done, where the area has no memory for it. The bytes stay counted
 * for `rows`. */
bool shared_rows_leave(SharedRows *shared, dsa_area *area, PgkmRows *rows);

/* Makes a name of blocks, as the deserialization function called with `fcinfo` has read it, one of this process: *area
 * is the area of this process. Returns how many processes have left rows in the same way (1: not known), and in *last
 * whether nobody will read these again. 22P03 where the name is not to be believed. */
int shared_rows_find(FunctionCallInfo fcinfo, const SharedRows *shared, dsa_area **area, bool *last);

/* Appends the rows of all blocks to others. The last reader gives their memory back. */
void shared_rows_append(const SharedRows *shared, dsa_area *area, bool last, PgkmRows *rows);

#endif
