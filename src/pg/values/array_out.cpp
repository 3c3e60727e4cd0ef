/*
 * array_out.cpp - arrays of 8-byte values as results and as arguments, without a Datum per element.
 */
#include "pg/values/datum.h"

#include <algorithm>
#include <cmath>

extern "C" {
#include "catalog/pg_type.h"
#include "storage/shmem.h"
#include "utils/array.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_array_part);
}

/* An array without NULLs around values of 8 bytes; zeros for NULL. */
static Datum plain_array(const void *values, Oid type, const PgkmShape &shape)
{
    const Size head = ARR_OVERHEAD_NONULLS(shape.dimensions);
    Size data = 8;

    for (int i = 0; i < shape.dimensions; ++i)
        data = mul_size(data, shape.extents[i]);

    if (data > MaxAllocSize - head)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("array size exceeds the maximum allowed (%d)", (int)MaxAllocSize)));

    ArrayType *array = (ArrayType *)palloc0(head + data);

    SET_VARSIZE(array, head + data);
    array->ndim = shape.dimensions;
    array->elemtype = type;
    for (int i = 0; i < shape.dimensions; ++i) {
        ARR_DIMS(array)[i] = shape.extents[i];
        ARR_LBOUND(array)[i] = 1;
    }
    if (values != NULL)
        memcpy(ARR_DATA_PTR(array), values, data);
    return PointerGetDatum(array);
}

Datum pgkm_array(const double *values, const PgkmShape &shape)
{
    return plain_array(values, FLOAT8OID, shape);
}

Datum pgkm_array(const int64 *values, const PgkmShape &shape)
{
    return plain_array(values, INT8OID, shape);
}

Datum pgkm_array_or_empty(const double *values, int32 length)
{
    return values == NULL ? PointerGetDatum(construct_empty_array(FLOAT8OID)) : pgkm_array(values, {length});
}

const void *pgkm_array_values(Datum array, const PgkmShape &shape)
{
    ArrayType *const plain = DatumGetArrayTypeP(array);
    const bool fits = ARR_NDIM(plain) == shape.dimensions && !array_contains_nulls(plain) &&
                      std::equal(shape.extents, shape.extents + shape.dimensions, ARR_DIMS(plain));

    return fits ? ARR_DATA_PTR(plain) : NULL;
}

bool pgkm_all_finite(const double *values, Size count)
{
    return std::all_of(values, values + count, [](double value) { return std::isfinite(value); });
}

/* pgkm_part(parts double precision[], i integer) -> double precision[]: part i, from 1, of an array of such parts; NULL
 * where it has none. It is what `parts[i:i]` is, with one dimension less. */
Datum pgkm_array_part(PG_FUNCTION_ARGS)
{
    ArrayType *const parts = PG_GETARG_ARRAYTYPE_P(0);
    const int32 i = PG_GETARG_INT32(1);
    PgkmShape shape = {};

    for (int dimension = 1; dimension < Min(ARR_NDIM(parts), 4); ++dimension)
        shape.extents[shape.dimensions++] = ARR_DIMS(parts)[dimension];
    if (shape.dimensions == 0 || array_contains_nulls(parts) || i < 1 || i > ARR_DIMS(parts)[0])
        PG_RETURN_NULL();
    PG_RETURN_DATUM(pgkm_array((const double *)ARR_DATA_PTR(parts) + (i - 1) * pgkm_shape_count(shape), shape));
}
