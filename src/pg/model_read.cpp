/*
 * model_read.cpp - kmeans_model unpacked, checked, and kept from row to row.
 */
#include "pg/model.h"

#include <cmath>

#include "pg/compat.h"
#include "pg/model_fields.h"
#include "pg/options.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/primnodes.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
}

/* What pgkm_model_cached keeps in fn_extra. */
struct ModelCache {
    MemoryContext context; /* of the model's arrays and the key */
    char         *key;     /* the datum's bytes; of an external value, its TOAST pointer */
    Size          key_size;
    bool          constant; /* the argument is the same in every call */
    PgkmModel     model;
};

[[noreturn]] static void raise_model(const char *problem)
{
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid kmeans_model"), errdetail("%s", problem)));
    pg_unreachable();
}

static const Oid field_types[MODEL_COUNT] = {INT4OID, INT4OID, FLOAT8ARRAYOID, INT8ARRAYOID, FLOAT8ARRAYOID,
                                             FLOAT8OID, INT4OID, BOOLOID, INT8OID, TEXTOID,
                                             INT8OID, FLOAT8ARRAYOID, FLOAT8ARRAYOID};

const PgkmCompositeType pgkm_model_type = {"kmeans_model", field_types, MODEL_COUNT};

/* One field while it is read: its value, what to say when it is no good, and where its
 * copy goes. What detoasting takes stays in CurrentMemoryContext. */
struct FieldReader {
    const Datum  *values;
    const bool   *nulls;
    MemoryContext context;
};

/* An array of 8-byte values of the given shape (columns = 0: one-dimensional), copied. */
static const void *copy_array(const FieldReader *reader, ModelField field, const char *problem, int32 rows,
                              int32 columns)
{
    if (reader->nulls[field])
        raise_model(problem);

    ArrayType *const array = DatumGetArrayTypeP(reader->values[field]);
    const int        dimensions = columns == 0 ? 1 : 2;

    if (ARR_NDIM(array) != dimensions || ARR_DIMS(array)[0] != rows ||
        (dimensions == 2 && ARR_DIMS(array)[1] != columns) || array_contains_nulls(array))
        raise_model(problem);

    const Size  size = (Size) rows * Max(columns, 1) * 8;
    void *const copy = MemoryContextAlloc(reader->context, size);

    memcpy(copy, ARR_DATA_PTR(array), size);
    return copy;
}

static const double *copy_numbers(const FieldReader *reader, ModelField field, const char *problem, int32 rows,
                                  int32 columns)
{
    const double *const numbers = (const double *) copy_array(reader, field, problem, rows, columns);
    const Size          count = (Size) rows * Max(columns, 1);

    for (Size i = 0; i < count; ++i)
        if (!std::isfinite(numbers[i]))
            raise_model(problem);
    return numbers;
}

static void read_standardization(const FieldReader *reader, PgkmModel *model)
{
    model->center = NULL;
    model->scale = NULL;
    if (reader->nulls[MODEL_CENTER] && reader->nulls[MODEL_SCALE])
        return;
    model->center = copy_numbers(reader, MODEL_CENTER, "Field center must hold d finite values, or be null like scale.",
                                 model->d, 0);
    model->scale = copy_numbers(reader, MODEL_SCALE, "Field scale must hold d finite values, or be null like center.",
                                model->d, 0);
    for (int32 f = 0; f < model->d; ++f)
        if (!(model->scale[f] > 0))
            raise_model("Field scale must hold positive values.");
}

static int32 read_extent(const FieldReader *reader, ModelField field)
{
    const int32 extent = reader->nulls[field] ? 0 : DatumGetInt32(reader->values[field]);

    if (extent < 1)
        raise_model("Fields k and d must be at least 1.");
    return extent;
}

static void read_fields(const FieldReader *reader, PgkmModel *model)
{
    model->k = read_extent(reader, MODEL_K);
    model->d = read_extent(reader, MODEL_D);
    if (reader->nulls[MODEL_METRIC] ||
        !pgkm_metric_from_name(TextDatumGetCString(reader->values[MODEL_METRIC]), &model->metric))
        raise_model("Field metric must be 'l2' or 'cosine'.");
    model->centroids =
        copy_numbers(reader, MODEL_CENTROIDS, "Field centroids must hold k x d finite values.", model->k, model->d);
    model->sizes = (const int64 *) copy_array(reader, MODEL_SIZE, "Field size must hold k values.", model->k, 0);
    model->within_ss = copy_numbers(reader, MODEL_WITHIN_SS, "Field within_ss must hold k finite values.", model->k, 0);
    read_standardization(reader, model);
}

void pgkm_model_read(Datum composite, MemoryContext context, PgkmModel *model)
{
    Datum             values[MODEL_COUNT];
    bool              nulls[MODEL_COUNT];
    const FieldReader reader = {values, nulls, context};

    pgkm_read_composite(composite, &pgkm_model_type, values, nulls);
    read_fields(&reader, model);
}

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

const PgkmModel *pgkm_model_cached(FunctionCallInfo fcinfo, int number)
{
    ModelCache *cache = (ModelCache *) fcinfo->flinfo->fn_extra;

    if (cache != NULL && cache->constant)
        return &cache->model;

    const struct varlena *const value = identity_of(PG_GETARG_DATUM(number));
    const Size                  size = VARSIZE_ANY(value);

    if (likely(cache != NULL && size == cache->key_size && memcmp(cache->key, value, size) == 0))
        return &cache->model;
    if (cache == NULL)
        cache = new_cache(fcinfo, number);
    /* Nobody's cache until it is whole: an error below must not leave half a model. */
    fcinfo->flinfo->fn_extra = NULL;
    MemoryContextReset(cache->context);
    pgkm_model_read(PointerGetDatum(value), cache->context, &cache->model);
    cache->key_size = size;
    if (!cache->constant) {
        cache->key = (char *) MemoryContextAlloc(cache->context, size);
        memcpy(cache->key, value, size);
    }
    fcinfo->flinfo->fn_extra = cache;
    return &cache->model;
}
