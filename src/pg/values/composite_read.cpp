/*
 * composite_read.cpp - the fields of a model checked and copied, and models kept from row to
 * row.
 */
#include "pg/values/composite_read.h"

#include <cmath>

#include "pg/compat.h"

extern "C" {
#include "nodes/primnodes.h"
#include "utils/array.h"
#include "utils/memutils.h"
}

void pgkm_raise_fields(const PgkmFields *fields, const char *problem)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid %s", fields->type),
                    errdetail("%s", problem)));
    pg_unreachable();
}

const void *pgkm_field_array(const PgkmFields *fields, int field, const char *problem, int32 planes, int32 rows,
                             int32 columns)
{
    const int32 shape[3] = {planes, rows, columns};
    const int   first = planes == 0 ? 1 : 0;
    const int   dimensions = (columns == 0 ? 2 : 3) - first;

    if (fields->nulls[field])
        pgkm_raise_fields(fields, problem);

    ArrayType *const array = DatumGetArrayTypeP(fields->values[field]);
    bool             fits = ARR_NDIM(array) == dimensions && !array_contains_nulls(array);

    for (int i = 0; fits && i < dimensions; ++i)
        fits = ARR_DIMS(array)[i] == shape[first + i];
    if (!fits)
        pgkm_raise_fields(fields, problem);

    const Size  size = (Size) Max(planes, 1) * rows * Max(columns, 1) * 8;
    void *const copy = MemoryContextAlloc(fields->context, size);

    memcpy(copy, ARR_DATA_PTR(array), size);
    return copy;
}

const double *pgkm_field_numbers(const PgkmFields *fields, int field, const char *problem, int32 planes, int32 rows,
                                 int32 columns)
{
    const double *const numbers =
        (const double *) pgkm_field_array(fields, field, problem, planes, rows, columns);
    const Size count = (Size) Max(planes, 1) * rows * Max(columns, 1);

    for (Size i = 0; i < count; ++i)
        if (!std::isfinite(numbers[i]))
            pgkm_raise_fields(fields, problem);
    return numbers;
}

/* What pgkm_cached_model keeps in fn_extra. */
struct ModelCache {
    MemoryContext context; /* of the model, its arrays and the key */
    char         *key;     /* the datum's bytes; of an external value, its TOAST pointer */
    Size          key_size;
    bool          constant; /* the argument is the same in every call */
    void         *model;
};

/* Only a constant: a parameter may change between calls, since PL/pgSQL keeps the state of
 * an expression from one evaluation to the next. */
static bool is_constant_argument(FunctionCallInfo fcinfo, int number)
{
    const Node *call = fcinfo->flinfo->fn_expr;

    return call != NULL && IsA(call, FuncExpr) && IsA(list_nth(((const FuncExpr *) call)->args, number), Const);
}

static ModelCache *new_cache(FunctionCallInfo fcinfo, int number)
{
    ModelCache *const cache = (ModelCache *) MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(ModelCache));

    cache->context = AllocSetContextCreate(fcinfo->flinfo->fn_mcxt, "kmeans model", ALLOCSET_SMALL_SIZES);
    cache->constant = is_constant_argument(fcinfo, number);
    return cache;
}

/* The bytes that tell one model from another: those of the datum as it came, which for a
 * value out of line is its TOAST pointer. Values in memory (PL/pgSQL's rows) can change
 * behind an equal pointer and have to be flattened. */
static const struct varlena *identity_of(Datum datum)
{
    struct varlena *const value = (struct varlena *) DatumGetPointer(datum);

    if (VARATT_IS_EXTERNAL(value) && !VARATT_IS_EXTERNAL_ONDISK(value))
        return pg_detoast_datum(value);
    return value;
}

const void *pgkm_cached_model(FunctionCallInfo fcinfo, int number, Size size, PgkmModelReader read)
{
    ModelCache *cache = (ModelCache *) fcinfo->flinfo->fn_extra;

    if (cache != NULL && cache->constant)
        return cache->model;

    const struct varlena *const value = identity_of(PG_GETARG_DATUM(number));
    const Size                  key_size = VARSIZE_ANY(value);

    if (likely(cache != NULL && key_size == cache->key_size && memcmp(cache->key, value, key_size) == 0))
        return cache->model;
    if (cache == NULL)
        cache = new_cache(fcinfo, number);
    /* Nobody's cache until it is whole: an error below must not leave half a model. */
    fcinfo->flinfo->fn_extra = NULL;
    MemoryContextReset(cache->context);
    cache->model = MemoryContextAllocZero(cache->context, size);
    read(PointerGetDatum(value), cache->context, cache->model);
    cache->key_size = key_size;
    if (!cache->constant) {
        cache->key = (char *) MemoryContextAlloc(cache->context, key_size);
        memcpy(cache->key, value, key_size);
    }
    fcinfo->flinfo->fn_extra = cache;
    return cache->model;
}
