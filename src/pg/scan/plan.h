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
    double rows;              /* by the planner's estimate */
    uint32 first_chunk;
};

struct ScanPlan {
    Size bytes; /* of the whole */
    TableQuery query;
    TableDecoder decoder; /* its places are a table's */
    int32 n_columns;      /* features, weight, filter, label */
    int32 n_names;        /* and what expressions read */
    int32 n_relations;
    bool temporary;    /* only this process can read it */
    bool alone;        /* only this process may evaluate its expressions */
    int fixed_workers; /* as a table's storage parameter says; -1: none does */
    TableWants wants;
    int32 d; /* 0: not known before the first row */
    BlockNumber chunk_blocks;
    uint32 n_chunks;
    int64 expected_rows; /* of all tables */
    int64 most_rows;     /* of a part of a stream, about; 0: all is read at once */
    uint64 estimate;     /* bytes that the rows will take, where that is much; or 0 (scan_plan_check_memory) */
    /* What pointers above point to: */
    ScanRelation *relations;
    TableColumn *columns;
    ExpressionColumn *inputs;
    char *texts;   /* of each of them its name and, if it is computed, its expression; then the names of the inputs */
    int32 *widths; /* TableRows.widths, once d is known */
    AttrNumber *places; /* of the columns, of each relation */
    Size texts_bytes;
    Size given_bytes;
    char *given; /* the query's levels of categories, as levels_write has them; none: those that the rows have */
};

/* Bytes of the features, as far as d is known, and the weight of a row that takes part. */
static inline double scan_features_bytes(const ScanPlan *plan)
{
    return (double)pgkm_row_bytes(plan->decoder.element, plan->d) + (plan->query.weight != NULL ? sizeof(double) : 0);
}

/* For the rows of these tables (ScanTable), which are locked. In the current memory context. */
ScanPlan *scan_plan_make(const TableQuery *query, List *tables);

/* Divides the blocks into chunks of so many. */
void scan_plan_set_chunks(ScanPlan *plan, BlockNumber blocks);

/* All blocks of all tables. */
uint64 scan_plan_blocks(const ScanPlan *plan);

/* A copy of a plan, in the current memory context. */
ScanPlan *scan_plan_copy(const ScanPlan *plan);

/* Where a chunk lies. The last one of a table has no end. */
struct ScanChunk {
    int32 relation;
    BlockNumber begin;
    BlockNumber end;
};

ScanChunk scan_plan_chunk(const ScanPlan *plan, uint32 chunk);

/* Gives the rows of a plan whose d is known their widths, and an empty `used`. */
void scan_plan_open_rows(const ScanPlan *plan, TableRows *rows);

/* --- estimates (estimate.cpp) --- */

/* How many workers would help to read this part, or all, by the rules of the planner and within the memory limit. d
 * must be known, unless all is read. */
int scan_plan_workers(const ScanPlan *plan);

/* Rows of this part, or of all. */
int64 scan_plan_part_rows(const ScanPlan *plan);

/* Sets `estimate`, when d is known. 54000 where the tables' statistics leave no doubt that the rows pass the limit; it
 * names what the fit needs if they are streamed, where that is given. */
void scan_plan_check_memory(ScanPlan *plan, uint64 streamed_bytes);

#endif
