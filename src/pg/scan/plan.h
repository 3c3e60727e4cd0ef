/*
 * plan.h - what a direct scan reads: tables, chunks of their blocks, and columns.
 *
 * The plan is flat data in one allocation, so that a copy of it in shared memory serves the workers.
 */
#ifndef PGKM_PG_SCAN_PLAN_H
#define PGKM_PG_SCAN_PLAN_H

#include "pg/query/decoder.h"

extern "C" {
#include "nodes/pg_list.h"
#include "storage/block.h"
}

/* A table that holds rows. Its blocks are read in chunks, which are numbered across all tables. */
struct ScanRelation {
    Oid id;
    BlockNumber n_blocks;
    BlockNumber toast_blocks; /* of its TOAST table */
    uint32 first_chunk;
};

struct ScanPlan {
    Size bytes; /* of the whole */
    TableQuery query;
    TableDecoder decoder; /* its places are a table's */
    int32 n_columns;      /* features, weight, filter, label */
    int32 n_relations;
    bool temporary; /* only this process can read it */
    TableWants wants;
    int32 d; /* 0: not known before the first row */
    BlockNumber chunk_blocks;
    uint32 n_chunks;
    int64 most_rows;     /* of a part of the scan (stream.cpp), about; 0: it is read at once */
    int64 expected_rows; /* set by scan_plan_workers; of a part its own */
    uint64 estimate;     /* set by scan_plan_memory: bytes that the rows will take, where that is much; or 0 */
    /* What pointers above point to: */
    ScanRelation *relations;
    TableColumn *columns;
    NameData *names;    /* of the columns */
    int32 *widths;      /* of the features: as TableRows.widths, where these are kept and the first row is read */
    AttrNumber *places; /* of the columns, of each relation */
};

/* Where chunk `chunk` lies. */
struct ScanChunk {
    int32 relation;
    BlockNumber begin;
    BlockNumber end;
};

/* Bytes of the features, as far as d is known, and the weight of a row that takes part. */
static inline double scan_features_bytes(const ScanPlan *plan)
{
    return (double)plan->d * pgkm_element_size(plan->decoder.element) +
           (plan->query.weight != NULL ? sizeof(double) : 0);
}

/* For the rows of these tables (ScanTable), which are locked; in about so many chunks. In the current memory context.
 */
ScanPlan *scan_plan_make(const TableQuery *query, List *tables, uint32 chunks);
#define SCAN_CHUNKS 256 /* enough for an even end of the scan, few enough to forget about */

/* A copy of a plan, in the current memory context. */
ScanPlan *scan_plan_copy(const ScanPlan *plan);

/* Where a chunk lies. `hint` is the number of its table, or of one near it. The last one of a table has no end. */
ScanChunk scan_plan_chunk(const ScanPlan *plan, uint32 chunk, int32 hint);

/* TableRows.widths as the first row has them, in that context; NULL where there are none. */
int32 *scan_plan_widths(const ScanPlan *plan, MemoryContext context);

/* How many workers would help, by the rules of the planner and within the memory limit. d must be known, unless all
 * is read. Sets expected_rows. */
int scan_plan_workers(ScanPlan *plan);

/* Sets `estimate`, when d and expected_rows are known. 54000 where the tables' statistics leave no doubt that
 * the rows pass the limit. */
void scan_plan_memory(ScanPlan *plan);

#endif
