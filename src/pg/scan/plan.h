/*
 * plan.h - what a direct scan reads: tables, chunks of their blocks, and columns.
 *
 * The plan is flat data without pointers in one allocation, so that a copy of it in shared memory serves
 * the workers.
 */
#ifndef PGKM_PG_SCAN_PLAN_H
#define PGKM_PG_SCAN_PLAN_H

#include "pg/query/query.h"

extern "C" {
#include "nodes/pg_list.h"
#include "storage/block.h"
}

/* The start of a value of pgvector's types, behind its varlena header. */
struct ScanVectorHead {
    int16 count;
    int16 unused;
};

/* How a value lies in a tuple. */
enum ScanLayout {
    SCAN_NUMBER,
    SCAN_ARRAY,
    SCAN_VECTOR,  /* pgvector: ScanVectorHead, float4 values */
    SCAN_HALFVEC, /* likewise with float2 values */
    SCAN_UNKNOWN
};

struct ScanColumn {
    NameData name;
    TableColumn column; /* its name is NULL: pointers do not travel between processes */
    ScanLayout layout;
    int32 width; /* as TableRows.widths, where these are kept and the first row is read */
};

/* A table that holds rows. Its blocks are read in chunks, which are numbered across all tables. */
struct ScanRelation {
    Oid id;
    BlockNumber n_blocks;
    BlockNumber toast_blocks; /* of its TOAST table */
    uint32 first_chunk;
};

struct ScanPlan {
    Size bytes; /* of the whole */
    int32 n_features;
    int32 n_columns; /* features, weight, label, filter */
    int32 n_relations;
    bool weighted;
    bool labelled;
    bool filtered;
    TableNulls nulls;    /* as in TableQuery */
    bool need_direction; /* as in TableQuery */
    bool takes_nulls;    /* likewise */
    bool with_ctid;      /* messages may name it */
    bool with_table;     /* a ctid alone does not tell rows apart */
    bool temporary;      /* only this process can read it */
    bool mixed;          /* arrays stand beside other columns */
    TableWants wants;
    PgkmElement element;
    int32 d; /* 0: not known before the first row */
    BlockNumber chunk_blocks;
    uint32 n_chunks;
    int64 most_rows;     /* of a part of the scan (stream.cpp), about; 0: it is read at once */
    int64 expected_rows; /* set by scan_plan_workers; of a part its own */
    bool mostly_toast;   /* likewise: nearly all that is read lies in TOAST tables */
    uint64 estimate;     /* set by scan_plan_memory: bytes that the rows will take, where that is much; or 0 */
    /* relations, then columns */
};

/* Where chunk `chunk` lies. */
struct ScanChunk {
    int32 relation;
    BlockNumber begin;
    BlockNumber end;
};

static inline ScanRelation *scan_plan_relations(const ScanPlan *plan)
{
    return (ScanRelation *)((char *)plan + MAXALIGN(sizeof(ScanPlan)));
}

static inline ScanColumn *scan_plan_columns(const ScanPlan *plan)
{
    return (ScanColumn *)((char *)scan_plan_relations(plan) + MAXALIGN(plan->n_relations * sizeof(ScanRelation)));
}

/* Bytes of the features, as far as d is known, and the weight of a row that takes part. */
static inline double scan_features_bytes(const ScanPlan *plan)
{
    return (double)plan->d * pgkm_element_size(plan->element) + (plan->weighted ? sizeof(double) : 0);
}

/* OIDs of the tables that hold a relation's rows, in the order in which a SELECT reads them. Each is locked
 * as by a SELECT. */
List *scan_leaves(Oid relation);

/* For the rows of these tables, which are locked; in about so many chunks. In the current memory context. */
ScanPlan *scan_plan_make(const TableQuery *query, List *leaves, uint32 chunks);
#define SCAN_CHUNKS 1024 /* enough for an even end of the scan, few enough to forget about */

/* Where a chunk lies. `hint` is the number of its table, or of one before that. */
ScanChunk scan_plan_chunk(const ScanPlan *plan, uint32 chunk, int32 hint);

/* TableRows.widths as the first row has them, in that context. */
int32 *scan_plan_widths(const ScanPlan *plan, MemoryContext context);

/* How many workers would help, by the rules of the planner and within the memory limit. d must be known, unless all
 * is read. Sets expected_rows and mostly_toast. */
int scan_plan_workers(ScanPlan *plan);

/* Sets `estimate`, when d and expected_rows are known. 54000 where the tables' statistics leave no doubt that
 * the rows pass the limit. */
void scan_plan_memory(ScanPlan *plan);

/* How values of a vector type lie in a tuple; SCAN_UNKNOWN unless it is one of pgvector's. */
ScanLayout scan_vector_layout(Oid type);

/* Whether a value of SCAN_VECTOR or SCAN_HALFVEC, of `size` bytes behind its varlena header, is as long
 * as its head says. The head goes to *head. */
bool scan_vector_fits(ScanLayout layout, const char *bytes, Size size, ScanVectorHead *head);

#endif
