/*
 * blocks.h - rows of a parallel scan: they stay where a process has put them, until all are read.
 *
 * A process decodes rows into a small buffer, which is moved to a block whenever it is full and at the end of each
 * chunk. A worker's blocks lie in shared memory, the leader's in its own. The blocks of a chunk are a list, and a table
 * of all chunks, which is in the order of the rows, says where each list begins.
 */
#ifndef PGKM_PG_SCAN_BLOCKS_H
#define PGKM_PG_SCAN_BLOCKS_H

#include "pg/scan/reader.h"

/* The rows of a chunk. All zero: it has not been read. */
struct ScanChunkRows {
    uint64 first; /* block: a dsa_pointer, or an address in the leader's memory; 0: there are no rows */
    bool read;
    bool shared;
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
