/*
 * reader.h - one process of a direct scan: chunks of blocks in, rows out; and several of them together.
 */
#ifndef PGKM_PG_SCAN_READER_H
#define PGKM_PG_SCAN_READER_H

#include "pg/scan/plan.h"

extern "C" {
#include "access/tableam.h"
#include "port/atomics.h"
}

/* Numbers of all rows, used rows and skipped rows; or positions among them. */
struct ScanPlace {
    int64 rows;
    int64 used;
    int64 skipped;
};

/* A chunk that this process has read; `count` of its rows lie behind those of the one before. */
struct ScanNote {
    uint32 chunk;
    ScanPlace count;
};

struct ScanReader {
    const ScanPlan *plan;
    pg_atomic_uint32 *next_chunk; /* of all processes */
    pg_atomic_uint64 *n_read;     /* rows, of all processes; NULL: there are no others */
    TableRows *rows;              /* as far as read */
    TableDecoder decoder;         /* for the table that is open */
    int32 relation;               /* its number in the plan; -1: none is open */
    TableScanDesc scan;           /* of it */
    TupleTableSlot *slot;
    MemoryContext scratch; /* of one row */
    ScanNote *notes;
    int32 n_notes;
    int32 notes_capacity;
};

/* Reads all that is left, as the plan says. For a plan whose d is not known yet the first row is read before that. */
TableRows *scan_reader_run(ScanPlan *plan, ScanReader *reader, TableReduction *reduction, MemoryContext context,
                           int32 *workers);

/* The first row decides how long all arrays are. It is read before workers start, so that every process knows the
 * length, and a row of another length is the same error in each of them. */
void scan_reader_first(ScanPlan *plan, ScanReader *reader);

/* A reader under the active snapshot. The struct lies in the current memory context, the rows in `context`. */
ScanReader *scan_reader_create(const ScanPlan *plan, pg_atomic_uint32 *next_chunk, MemoryContext context);

/* Makes place for its share of the rest of the scan, as one of so many processes. */
void scan_reader_expect(ScanReader *reader, int n_processes);

/* Reads the next chunk that no process has taken; false when there is none. Errors as of table_select. */
bool scan_reader_step(ScanReader *reader);

/* Reads this one. */
void scan_reader_read(ScanReader *reader, uint32 chunk);

/* Closes the table that is open. */
void scan_reader_close(ScanReader *reader);

/*
 * Reads what is left of the scan together with up to n_workers workers. Returns all rows in `context`, with
 * those that the leader's reader had read before. plan->d is known.
 * With a reduction they reduce the rows instead (TableReduction in pg/query/query.h).
 * *launched: how many workers came. Where some did, the rows lie in shared memory and have a crew for
 * scan_dismiss; otherwise they lie where the reader collects them. Errors as of table_select; 55000 when
 * shared memory is gone.
 */
TableRows *scan_parallel(ScanPlan *plan, ScanReader *reader, TableReduction *reduction, int n_workers,
                         MemoryContext context, int32 *launched);

/* Rows read so far. */
static inline ScanPlace scan_reader_count(const ScanReader *reader)
{
    const TableRows *rows = reader->rows;
    ScanPlace count;

    count.rows = rows->n;
    count.used = table_rows_used(rows);
    count.skipped = rows->n_skipped;
    return count;
}

#endif
