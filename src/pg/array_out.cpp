/*
 * array_out.cpp - arrays as results, built without a Datum per element.
 */
#include "pg/datum.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/memutils.h"
}

/* An array without NULLs around `count` values of 8 bytes. */
static Datum plain_array(const void *values, Oid type, int dimensions, int32 rows, int32 columns)
{
    const Size data = (Size) rows * Max(columns, 1) * 8;
    const Size head = ARR_OVERHEAD_NONULLS(dimensions);

    if (data > MaxAllocSize - head)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("array size exceeds the maximum allowed (%d)", (int) MaxAllocSize)));

    ArrayType *array = (ArrayType *) palloc0(head + data);

    SET_VARSIZE(array, head + data);
    array->ndim = dimensions;
    array->elemtype = type;
    ARR_DIMS(array)[0] = rows;
    ARR_LBOUND(array)[0] = 1;
    if (dimensions == 2) {
        ARR_DIMS(array)[1] = columns;
        ARR_LBOUND(array)[1] = 1;
    }
    memcpy(ARR_DATA_PTR(array), values, data);
    return PointerGetDatum(array);
}

Datum pgkm_float8_array(const double *values, int32 rows, int32 columns)
{
    return plain_array(values, FLOAT8OID, columns == 0 ? 1 : 2, rows, columns);
}

Datum pgkm_int8_array(const int64 *values, int32 length)
{
    return plain_array(values, INT8OID, 1, length, 0);
}
