/*
 * access.h - the values of one table's tuples.
 *
 * Two ways lead to them. Features that lie at fixed places are read in place, as long as
 * nothing is unusual about the tuple. Everything else, bad values included, takes the way
 * of the executor's rows: as Datums through table_row_append().
 */
#ifndef PGKM_PG_SCAN_ACCESS_H
#define PGKM_PG_SCAN_ACCESS_H

#include "pg/scan/plan.h"
#include "pg/query/row.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/rel.h"
}

/* Neighbours in tuple and features alike, of one fixed-length type. */
struct ScanRun {
    uint32 offset; /* in the tuple's data */
    int32  first;  /* feature */
    int32  count;
    Oid    type;
};

/* How features can be read in place. */
enum ScanFast { SCAN_SLOW, SCAN_RUNS, SCAN_VARLENA };

struct ScanAccess {
    const ScanPlan *plan;
    TableRowShape   shape;
    TableQuery      query; /* of the shape */
    Relation        relation;
    TupleDesc       desc;
    AttrNumber     *numbers; /* of the plan's columns */
    AttrNumber      last;    /* the highest of them */
    ScanFast        fast;
    AttrNumber      last_feature;
    ScanRun        *runs;
    int             n_runs;
    uint32          varlena_offset; /* before alignment */
    char            varlena_align;
    Datum          *attributes; /* 1 to last */
    bool           *absent;
    int             attributes_capacity;
    Datum          *values; /* by shape */
    bool           *nulls;
};

/* A label, of whatever integer type, as bigint. */
static inline int64 scan_int8(Datum value, Oid type)
{
    if (type == INT2OID)
        return DatumGetInt16(value);
    return type == INT4OID ? DatumGetInt32(value) : DatumGetInt64(value);
}

/* For the plan's tables; in the current memory context. */
ScanAccess *scan_access_create(const ScanPlan *plan);

/* Prepares for a table of the plan. */
void scan_access_open(ScanAccess *access, Relation relation);

/* Reads the features in place and appends them, and the weight, to `used`, and tells the old label;
 * false, with nothing appended, when that is not possible. */
bool scan_read_fast(const ScanAccess *access, HeapTupleHeader tuple, PgkmRows *used, TableOrigin *origin);

/* Reads and appends whatever the plan wants of the tuple, in the current memory context. */
void scan_read_slow(ScanAccess *access, HeapTupleHeader tuple, ItemPointer ctid, TableRows *rows);

#endif
