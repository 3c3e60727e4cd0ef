/*
 * copy_aggregate.c - what the aggregate kmeans is measured against: an aggregate that does
 * nothing but copy its real[] argument into one growing buffer, as any aggregate that needs all
 * rows at once must. In a parallel plan the copies stay where they are and only their number
 * travels. Built and loaded by bench/sql.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/array.h"
#include "utils/memutils.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(copy_transition);
PG_FUNCTION_INFO_V1(copy_combine);
PG_FUNCTION_INFO_V1(copy_serialize);
PG_FUNCTION_INFO_V1(copy_deserialize);
PG_FUNCTION_INFO_V1(copy_final);

typedef struct Copies {
    char *bytes;
    Size used;
    Size capacity;
    int64 rows;
} Copies;

static MemoryContext context_of(FunctionCallInfo fcinfo)
{
    MemoryContext context;

    if (!AggCheckCallContext(fcinfo, &context))
        elog(ERROR, "called outside of an aggregate");
    return context;
}

Datum copy_transition(PG_FUNCTION_ARGS)
{
    ArrayType *array = PG_GETARG_ARRAYTYPE_P(1);
    Copies *copies = PG_ARGISNULL(0) ? NULL : (Copies *)PG_GETARG_POINTER(0);
    Size size = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)) * sizeof(float4);

    if (copies == NULL) {
        copies = (Copies *)MemoryContextAllocZero(context_of(fcinfo), sizeof(Copies));
        copies->capacity = Max(512, size);
        copies->bytes = (char *)MemoryContextAllocHuge(context_of(fcinfo), copies->capacity);
    }
    if (copies->used + size > copies->capacity) {
        copies->capacity *= 2;
        copies->bytes = (char *)repalloc_huge(copies->bytes, copies->capacity);
    }
    memcpy(copies->bytes + copies->used, ARR_DATA_PTR(array), size);
    copies->used += size;
    copies->rows++;
    PG_RETURN_POINTER(copies);
}

Datum copy_combine(PG_FUNCTION_ARGS)
{
    Copies *a = PG_ARGISNULL(0) ? NULL : (Copies *)PG_GETARG_POINTER(0);

    if (a == NULL)
        a = (Copies *)MemoryContextAllocZero(context_of(fcinfo), sizeof(Copies));
    if (!PG_ARGISNULL(1))
        a->rows += ((Copies *)PG_GETARG_POINTER(1))->rows;
    PG_RETURN_POINTER(a);
}

Datum copy_serialize(PG_FUNCTION_ARGS)
{
    bytea *result = (bytea *)palloc(VARHDRSZ + sizeof(int64));

    SET_VARSIZE(result, VARHDRSZ + sizeof(int64));
    memcpy(VARDATA(result), &((Copies *)PG_GETARG_POINTER(0))->rows, sizeof(int64));
    PG_RETURN_BYTEA_P(result);
}

Datum copy_deserialize(PG_FUNCTION_ARGS)
{
    Copies *copies = (Copies *)palloc0(sizeof(Copies));

    memcpy(&copies->rows, VARDATA_ANY(PG_GETARG_BYTEA_PP(0)), sizeof(int64));
    PG_RETURN_POINTER(copies);
}

Datum copy_final(PG_FUNCTION_ARGS)
{
    PG_RETURN_INT64(PG_ARGISNULL(0) ? 0 : ((Copies *)PG_GETARG_POINTER(0))->rows);
}
