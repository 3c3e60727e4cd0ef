/*
 * composite_read.cpp - the fields of a model checked and copied, and models kept from row to
 * row.
 */
#include "pg/values/composite_read.h"

#include <algorithm>
#include <cmath>

extern "C" {
#include "access/htup_details.h"
#include "common/int.h"
#include "nodes/primnodes.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "utils/typcache.h"
}

void pgkm_model_open(Datum composite, const PgkmCompositeType *type, MemoryContext context, PgkmModelFields *fields)
{
    fields->type = type;
    fields->context = context;
    fields->changed = false;
    pgkm_read_fields(composite, type, fields->values);
}

const NullableDatum *pgkm_model_field(const PgkmModelFields *fields, const char *name)
{
    int i = 0;

    while (strcmp(fields->type->fields[i].name, name) != 0)
        ++i;
    return &fields->values[i];
}

void pgkm_model_set(PgkmModelFields *fields, const char *name, Datum value)
{
    *(NullableDatum *)pgkm_model_field(fields, name) = {value, false};
    fields->changed = true;
}

void pgkm_model_add_rows(PgkmModelFields *fields, int64 rows)
{
    const NullableDatum *const n = pgkm_model_field(fields, "n");
    int64 all;

    if (pg_add_s64_overflow(n->isnull ? 0 : DatumGetInt64(n->value), rows, &all))
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
    pgkm_model_set(fields, "n", Int64GetDatum(all));
}

void pgkm_model_from_one(PgkmModelFields *fields, std::initializer_list<const char *> names)
{
    for (const char *const name : names) {
        const Datum value = pgkm_model_field(fields, name)->value;
        const ArrayType *const array = DatumGetArrayTypeP(value);
        const auto is_one = [](int bound) { return bound == 1; };

        if (std::all_of(ARR_LBOUND(array), ARR_LBOUND(array) + ARR_NDIM(array), is_one))
            continue;

        ArrayType *const copy = DatumGetArrayTypePCopy(value);

        std::fill_n(ARR_LBOUND(copy), ARR_NDIM(copy), 1);
        pgkm_model_set(fields, name, PointerGetDatum(copy));
    }
}

Datum pgkm_model_form(const PgkmModelFields *fields, Datum composite)
{
    if (!fields->changed)
        return composite;

    const HeapTupleHeader header = DatumGetHeapTupleHeader(composite);
    const TupleDesc tupdesc =
        lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
    Datum values[PGKM_MOST_FIELDS];
    bool nulls[PGKM_MOST_FIELDS];

    for (int i = 0; i < fields->type->count; ++i) {
        values[i] = fields->values[i].value;
        nulls[i] = fields->values[i].isnull;
    }

    const Datum result = HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls));

    ReleaseTupleDesc(tupdesc);
    return result;
}

[[noreturn]] static void raise_fields(const PgkmModelFields *fields, const char *problem)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid %s", fields->type->name),
                    errdetail("%s", problem)));
    pg_unreachable();
}

void pgkm_raise_field(const PgkmModelFields *fields, const char *name, const char *must)
{
    raise_fields(fields, psprintf("Field %s must %s.", name, must));
}

void pgkm_model_extents(const PgkmModelFields *fields, int32 *count, int32 *d)
{
    const PgkmField *const names = fields->type->fields;
    int32 *const extents[] = {count, d};

    for (int i = 0; i < (int)lengthof(extents); ++i) {
        *extents[i] = fields->values[i].isnull ? 0 : DatumGetInt32(fields->values[i].value);
        if (*extents[i] < 1)
            raise_fields(fields, psprintf("Fields %s and %s must be at least 1.", names[0].name, names[1].name));
    }
}

int32 pgkm_model_word(const PgkmModelFields *fields, const char *name, const PgkmWords *words)
{
    const NullableDatum *const field = pgkm_model_field(fields, name);
    int32 value;

    if (field->isnull || !pgkm_word_find(words, TextDatumGetCString(field->value), &value))
        pgkm_raise_field(fields, name, psprintf("be %s", words->takes));
    return value;
}

const void *pgkm_model_array(const PgkmModelFields *fields, const char *name, const char *must, const PgkmShape &shape)
{
    const NullableDatum *const field = pgkm_model_field(fields, name);
    const void *const values = field->isnull ? NULL : pgkm_array_values(field->value, shape);

    if (values == NULL)
        pgkm_raise_field(fields, name, must);
    if (fields->context == NULL)
        return values;

    const Size size = pgkm_shape_count(shape) * 8;
    void *const copy = MemoryContextAlloc(fields->context, size);

    return memcpy(copy, values, size);
}

const double *pgkm_model_numbers(const PgkmModelFields *fields, const char *name, const char *must,
                                 const PgkmShape &shape)
{
    const double *const numbers = (const double *)pgkm_model_array(fields, name, must, shape);

    if (!pgkm_all_finite(numbers, pgkm_shape_count(shape)))
        pgkm_raise_field(fields, name, must);
    return numbers;
}

bool pgkm_model_has(const PgkmModelFields *fields, const char *name)
{
    const NullableDatum *const field = pgkm_model_field(fields, name);

    return !field->isnull && ARR_NDIM(DatumGetArrayTypeP(field->value)) != 0;
}

bool pgkm_model_is_null(const PgkmModelFields *fields)
{
    bool isnull = true;

    for (int i = 0; i < fields->type->count; ++i)
        isnull = isnull && fields->values[i].isnull;
    return isnull;
}

void pgkm_model_units(const PgkmModelFields *fields, int32 d, const double **center, const double **scale)
{
    bool identity = true;

    *center = *scale = NULL;
    if (!pgkm_model_has(fields, "center") && !pgkm_model_has(fields, "scale"))
        return;
    *center = pgkm_model_numbers(fields, "center", "hold d finite values, or be empty like scale", {d});
    *scale = pgkm_model_numbers(fields, "scale", "hold d finite values, or be empty like center", {d});
    for (int32 f = 0; f < d; ++f) {
        if (!((*scale)[f] > 0))
            pgkm_raise_field(fields, "scale", "hold positive values");
        identity = identity && (*center)[f] == 0 && (*scale)[f] == 1;
    }
    if (identity)
        *center = *scale = NULL;
}

const double *pgkm_model_fills(const PgkmModelFields *fields, int32 d)
{
    if (!pgkm_model_has(fields, "fills"))
        return NULL;

    const double *const fills = pgkm_model_numbers(fields, "fills", "hold d finite values, or be empty", {d});

    for (int32 f = 0; f < d; ++f)
        if (std::fabs(fills[f]) > PGKM_MAX_MAGNITUDE)
            pgkm_raise_field(fields, "fills", "hold values of magnitude 2^500 at most");
    return fills;
}

/* What pgkm_cached_model_of keeps in fn_extra. */
struct ModelCache {
    PgkmCallCache call;
    MemoryContext context; /* of the model, its arrays and the key */
    char *key;             /* the datum's bytes; of an external value, its TOAST pointer */
    Size key_size;
    bool constant; /* the argument is the same in every call */
    void *model;   /* NULL: none, or only half of one after an error */
};

/* Only a constant: a parameter may change between calls, since PL/pgSQL keeps the state of
 * an expression from one evaluation to the next. */
static bool is_constant_argument(FunctionCallInfo fcinfo, int number)
{
    const Node *call = fcinfo->flinfo->fn_expr;

    return call != NULL && IsA(call, FuncExpr) && IsA(list_nth(((const FuncExpr *)call)->args, number), Const);
}

static ModelCache *cache_of(FunctionCallInfo fcinfo, int number)
{
    ModelCache *const cache = (ModelCache *)pgkm_call_cache(fcinfo->flinfo, sizeof(ModelCache));

    if (unlikely(cache->context == NULL)) {
        cache->context = AllocSetContextCreate(fcinfo->flinfo->fn_mcxt, "kmeans model", ALLOCSET_SMALL_SIZES);
        cache->constant = is_constant_argument(fcinfo, number);
    }
    return cache;
}

/* The bytes that tell one model from another: those of the datum as it came, which for a
 * value out of line is its TOAST pointer. Values in memory (PL/pgSQL's rows) can change
 * behind an equal pointer and have to be flattened. */
static const struct varlena *identity_of(Datum datum)
{
    struct varlena *const value = (struct varlena *)DatumGetPointer(datum);

    if (VARATT_IS_EXTERNAL(value) && !VARATT_IS_EXTERNAL_ONDISK(value))
        return pg_detoast_datum(value);
    return value;
}

const void *pgkm_cached_model_of(FunctionCallInfo fcinfo, int number, Size size,
                                 void (*read)(Datum composite, MemoryContext context, void *model))
{
    ModelCache *const cache = cache_of(fcinfo, number);

    if (cache->model != NULL && cache->constant)
        return cache->model;

    const struct varlena *const value = identity_of(PG_GETARG_DATUM(number));
    const Size key_size = VARSIZE_ANY(value);

    if (likely(cache->model != NULL && key_size == cache->key_size && memcmp(cache->key, value, key_size) == 0))
        return cache->model;
    cache->model = NULL;
    MemoryContextReset(cache->context);

    void *const model = MemoryContextAllocZero(cache->context, size);

    read(PointerGetDatum(value), cache->context, model);
    cache->key_size = key_size;
    if (!cache->constant) {
        cache->key = (char *)MemoryContextAlloc(cache->context, key_size);
        memcpy(cache->key, value, key_size);
    }
    cache->model = model;
    return model;
}
