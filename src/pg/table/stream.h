/*
 * stream.h - a fit of rows that exceed pg_kmeans.memory_limit: the table is read anew for each pass over them.
 */
#ifndef PGKM_PG_TABLE_STREAM_H
#define PGKM_PG_TABLE_STREAM_H

#include "pg/scan/scan.h"
#include "pg/table/call.h"

/* What the engine reads. */
struct TableStream {
    PgkmStream *stream;
    PgkmPoints points;       /* none, but of the kind of the rows */
    int64 n;                 /* rows that take part in a pass */
    PgkmMeanwhile meanwhile; /* feeds the job of a request for them */
};

/* What rows in memory, and the work on them as far as that is known, take. */
double table_bytes_in_memory(const TableCall *call, const TableQuery *query, const DirectScan *scan);

/* Makes a stream of a scan that has begun, if call->memory or the size of the table says so, and counts the rows that
 * take part. NULL where they belong into memory; where there is none for chunks either, call->streamed_bytes
 * says so. The call's request is complete but for its points.
 * Errors as of table_select; 54000 when the limit has no room for chunks of some rows. */
TableStream *table_stream_begin(TableCall *call, const TableQuery *query, DirectScan *scan, MemoryContext context,
                                PgkmScanReport *report);

/* No more passes: ends the scan. */
void table_stream_end(TableStream *stream);

#endif
