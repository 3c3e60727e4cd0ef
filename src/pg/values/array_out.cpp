/*
 * array_out.cpp - arrays as results, built without a Datum per element.
 */
#include "pg/values/datum.h"

extern "C" {
#include "catalog/pg_type.h"
#include "storage/shmem.h"
#include "utils/array.h"
#include "utils/memutils.h"
}

/* An array without NULLs around values of 8 bytes. */
static Datum plain_array(const void *values, Oid type, int dimensions, const int32 *extents)
{
    const Size head = ARR_OVERHEAD_NONULLS(dimensions);
    Size       data = 8;

    for (int i = 0; i < dimensions; ++i)
        data = mul_size(data, extents[i]);

    if (data > MaxAllocSize - head)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("array size exceeds the maximum allowed (%d)", (int) MaxAllocSize)));

    ArrayType *array = (ArrayType *) palloc0(head + data);

    SET_VARSIZE(array, head + data);
    array->ndim = dimensions;
    array->elemtype = type;
    for (int i = 0; i < dimensions; ++i) {
        ARR_DIMS(array)[i] = extents[i];
        ARR_LBOUND(array)[i] = 1;
    }
    memcpy(ARR_DATA_PTR(array), values, data);
    return PointerGetDatum(array);
}

Datum pgkm_float8_array(const double *values, int32 rows, int32 columns)
{
    const int32 extents[] = {rows, columns};

    return plain_array(values, FLOAT8OID, columns == 0 ? 1 : 2, extents);
}

Datum pgkm_float8_fill(double value, int32 length)
{
    double *const values = (double *) palloc(length * sizeof(double));

    for (int32 i = 0; i < length; ++i)
        values[i] = value;

    const Datum array = pgkm_float8_array(values, length, 0);

    pfree(values);
    return array;
}

Datum pgkm_float8_cube(const double *values, int32 planes, int32 rows, int32 columns)
{
    const int32 extents[] = {planes, rows, columns};

    return plain_array(values, FLOAT8OID, 3, extents);
}

Datum pgkm_int8_array(const int64 *values, int32 length)
{
    return plain_array(values, INT8OID, 1, &length);
}
