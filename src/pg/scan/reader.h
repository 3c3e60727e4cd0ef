/*
 * reader.h - one process of a direct scan: chunks of blocks in, rows out; and several of them together.
 */
#ifndef PGKM_PG_SCAN_READER_H
#define PGKM_PG_SCAN_READER_H

#include "pg/scan/plan.h"

extern "C" {
#include "access/tableam.h"
#include "port/atomics.h"
#include "utils/dsa.h"
}

/* Numbers of all rows, used rows and skipped rows; or positions among them. */
struct ScanPlace {
    int64 rows;
    int64 used;
    int64 skipped;
};

struct ScanChunkRows;

struct ScanReader {
    const ScanPlan *plan;
    pg_atomic_uint32 *next_chunk; /* of all processes */
    pg_atomic_uint64 *n_read;     /* rows, of all processes; NULL: there are no others */
    TableRows *rows;              /* as far as read, or the buffer for the next block */
    TableDecoder decoder;         /* for the table that is open */
    TableField *fields;           /* of its columns, if each has one */
    int32 relation;               /* its number in the plan; -1: none is open */
    TableScanDesc scan;           /* of it */
    TupleTableSlot *slot;
    MemoryContext scratch; /* of one row */
    /* Of a parallel scan: */
    int64 block_rows;      /* a block has at most so many; PG_INT64_MAX: there are no blocks */
    ScanChunkRows *chunks; /* of all processes */
    dsa_area *area;        /* where workers have blocks */
    bool area_is_used;     /* this one is a worker */
    bool full;             /* and found no room there */
    uint64 first;          /* block of the chunk, and the last one; 0: none */
    uint64 last;
    int64 n_left;  /* rows in all blocks */
    int32 process; /* 0: the leader; workers follow */
    int32 n_processes;
    dsa_pointer *levels; /* where each worker has left its levels, if features are categories */
};

/* A reader under the active snapshot. The struct lies in the current memory context, the rows in `context`. */
ScanReader *scan_reader_create(const ScanPlan *plan, pg_atomic_uint32 *next_chunk, MemoryContext context);

/* Reads the next chunk that no process has taken; false when there is none, or no room for it. Errors as of
 * table_select. */
bool scan_reader_step(ScanReader *reader);

/* Reads this one. */
void scan_reader_read(ScanReader *reader, uint32 chunk);

/* Closes the table that is open. */
void scan_reader_close(ScanReader *reader);

/*
 * Reads what is left of the scan together with up to n_workers workers. Returns all rows in `context`, with
 * those that the reader had read before; NULL, with nothing done, when no worker came. plan->d is known. *launched: how
 * many workers came. Errors as of table_select.
 */
TableRows *scan_parallel(const ScanPlan *plan, ScanReader *reader, int n_workers, MemoryContext context,
                         int32 *launched);

/* --- blocks.cpp: rows of a parallel scan stay where a process has put them, until all are read --- */

/*
 * A process decodes rows into a small buffer, which is moved to a block whenever it is full and at the end of each
 * chunk. A worker's blocks lie in shared memory, the leader's in its own. The blocks of a chunk are a list, and a table
 * of all chunks, which is in the order of the rows, says where each list begins.
 */

/* The rows of a chunk. All zero: it has not been read. */
struct ScanChunkRows {
    uint64 first; /* block: a dsa_pointer, or an address in the leader's memory; 0: there are no rows */
    bool read;
    bool shared;
    int32 process; /* 0: the leader */
};

/* How many rows fill a block. */
int64 scan_block_rows(const ScanPlan *plan);

/* Moves the rows in the reader's buffer to a block behind those of the same chunk. False, with nothing done, where
 * there is no shared memory for it. 54000 when that passes the limit. */
bool scan_block_leave(ScanReader *reader);

/* Ends a chunk: its rows are those of the blocks since the last one. */
void scan_block_publish(ScanReader *reader, uint32 chunk);

/* Gives back the blocks of a chunk that cannot be read to its end. */
void scan_block_drop(ScanReader *reader);

/* The rows of all chunks, in their order, in memory of this process: threads copy them, and give back each block as it
 * is copied. The reader's own buffer has none any more. Errors as of table_select. */
TableRows *scan_bring_together(ScanReader *reader, MemoryContext context);

#endif
