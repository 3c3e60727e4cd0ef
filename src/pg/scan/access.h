/*
 * access.h - the values in one table's tuples.
 *
 * There are two ways to read them. Features at fixed offsets are read in place, as long as the tuple is an
 * ordinary one. All else, bad values included, goes the way of the executor's rows: as Datums, by
 * table_row_append().
 */
#ifndef PGKM_PG_SCAN_ACCESS_H
#define PGKM_PG_SCAN_ACCESS_H

#include "pg/scan/plan.h"
#include "pg/query/row.h"
#include "pg/values/toast.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/rel.h"
}

/* Features that lie side by side in the tuple in their order, all of one fixed-length type. */
struct ScanRun {
    uint32 offset; /* bytes, in the tuple's data */
    int32 first;   /* the first feature's number */
    int32 count;
    Oid type;
};

/* How features can be read in place: not at all, as runs of numbers, or as one array or vector. */
enum ScanFast { SCAN_SLOW, SCAN_RUNS, SCAN_VARLENA };

struct ScanAccess {
    const ScanPlan *plan;
    TableRowShape shape;
    TableQuery query; /* of the shape */
    Relation relation;
    TupleDesc desc;
    AttrNumber *numbers; /* of the plan's columns */
    AttrNumber last;     /* the highest of them */
    ScanFast fast;
    AttrNumber last_feature;
    ScanRun *runs;
    int n_runs;
    bool varlena_fixed;    /* it has the same place in all tuples without NULLs: */
    uint32 varlena_offset; /* bytes, before alignment */
    char varlena_align;
    PgkmToast *toast;
    Datum *attributes; /* 1 to last */
    bool *absent;
    int attributes_capacity;
    Datum *values; /* by shape */
    bool *nulls;
};

/* A label, of whatever integer type, as bigint. */
static inline int64 scan_int8(Datum value, Oid type)
{
    if (type == INT2OID)
        return DatumGetInt16(value);
    return type == INT4OID ? DatumGetInt32(value) : DatumGetInt64(value);
}

/* Converts `count` halves of IEEE (pgvector's halfvec) from unaligned memory, exactly. Returns whether all are finite.
 */
static inline bool scan_halves_to_floats(const char *halves, int32 count, float *out)
{
    bool finite = true;

    for (int32 i = 0; i < count; ++i) {
        uint16 half;

        memcpy(&half, halves + i * sizeof(uint16), sizeof half);

        const uint32 sign = (uint32)(half & 0x8000) << 16;
        const uint32 exponent = (half >> 10) & 0x1f;
        const uint32 fraction = half & 0x3ff;
        uint32 bits = sign | (exponent + 112) << 23 | fraction << 13;

        if (exponent == 0x1f) { /* infinite or NaN */
            bits = sign | 0x7f800000 | fraction << 13;
            finite = false;
        }
        memcpy(&out[i], &bits, sizeof bits);
        if (exponent == 0) /* zero or subnormal: so many times 2^-24 */
            out[i] = (sign != 0 ? -0x1p-24f : 0x1p-24f) * (float)fraction;
    }
    return finite;
}

/* For the plan's tables; in the current memory context. */
ScanAccess *scan_access_create(const ScanPlan *plan);

/* Prepares for a table of the plan. */
void scan_access_open(ScanAccess *access, Relation relation);

/* Reads the features in place, appends them and the weight to `used`, and sets the old label in *origin.
 * False, with nothing appended, when the tuple must be read the slow way. */
bool scan_read_fast(const ScanAccess *access, HeapTupleHeader tuple, PgkmRows *used, TableOrigin *origin);

/* Reads what the plan wants of any tuple and appends it. Leaves memory behind in the current memory context.
 * Errors as of table_select (pg/query/query.h). */
void scan_read_slow(ScanAccess *access, HeapTupleHeader tuple, ItemPointer ctid, TableRows *rows);

#endif
