/*
 * reader.h - one process of a direct scan: chunks of blocks in, rows out.
 */
#ifndef PGKM_PG_SCAN_READER_H
#define PGKM_PG_SCAN_READER_H

#include "pg/scan/access.h"
#include "pg/scan/page.h"

extern "C" {
#include "port/atomics.h"
}

/* Rows, used rows and skipped rows: numbers of them, or positions. */
struct ScanPlace {
    int64 rows;
    int64 used;
    int64 skipped;
};

/* A chunk that this process has read; `count` of its rows lie behind those of the one before. */
struct ScanNote {
    uint32    chunk;
    ScanPlace count;
};

struct ScanReader {
    const ScanPlan      *plan;
    pg_atomic_uint32    *next_chunk; /* of all processes */
    pg_atomic_uint64    *n_read;     /* rows, of all processes; NULL: there are no others */
    TableRows           *rows;       /* as far as read */
    ScanAccess          *access;
    ScanSight            sight;
    BufferAccessStrategy strategy; /* for large tables */
    MemoryContext        scratch;  /* of one row */
    int32                relation; /* the plan's, open in access; -1: none */
    int32                begun;    /* the last one of which rows have been read; -1: none */
    bool                 account;  /* take notes */
    ScanNote            *notes;
    int32                n_notes;
    int32                notes_capacity;
};

/* A reader under the active snapshot, in the current memory context; its rows, and `used` as
 * soon as d is known, in `context`. With account = true it takes notes. */
ScanReader *scan_reader_create(const ScanPlan *plan, pg_atomic_uint32 *next_chunk, MemoryContext context, bool account);

/* Prepares for the rest of the scan as one of so many processes. */
void scan_reader_expect(ScanReader *reader, int n_processes);

/* Reads the next chunk that no process has taken; false when there is none. */
bool scan_reader_step(ScanReader *reader);

/* Opens a table of the plan, which come in ascending order, instead of the one that is open. */
void scan_reader_open(ScanReader *reader, int32 index);

/* Closes the table that is open. */
void scan_reader_close(ScanReader *reader);

/* Rows read so far. */
static inline ScanPlace scan_reader_count(const ScanReader *reader)
{
    const TableRows *rows = reader->rows;
    ScanPlace        count;

    count.rows = rows->n;
    count.used = table_rows_used(rows);
    count.skipped = rows->n_skipped;
    return count;
}

#endif
