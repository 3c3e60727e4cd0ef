/*
 * origin.cpp - where a model comes from: made of a call, read and checked.
 */
#include "pg/model/origin.h"

#include <cmath>

extern "C" {
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
}

enum OriginField {
    ORIGIN_FEATURES,
    ORIGIN_RELATION,
    ORIGIN_OPTIONS,
    ORIGIN_TIME,
    ORIGIN_MEANS,
    ORIGIN_DEVIATIONS,
    ORIGIN_SOURCES
};

static const PgkmField fields[] = {
    {"features", TEXTARRAYOID}, {"relation", TEXTOID},          {"options", JSONBOID},  {"fitted_at", TIMESTAMPTZOID},
    {"means", FLOAT8ARRAYOID},  {"deviations", FLOAT8ARRAYOID}, {"sources", InvalidOid}};
static const PgkmCompositeType origin_type = {"kmeans_origin", fields, lengthof(fields), 1};

/* --- made --- */

static PgkmValue array_or_null(const double *values, int32 d)
{
    return values == NULL ? PgkmValue() : PgkmValue(pgkm_array(values, {d}));
}

static void put_member(StringInfo json, const char *name, const char *value)
{
    appendStringInfo(json, ", \"%s\": ", name);
    escape_json(json, value);
}

/* The options, and what says which rows of a table take part. */
static Datum options_json(const PgkmOptionsType *type, const void *options, const TableCall *call)
{
    StringInfoData json;

    initStringInfo(&json);
    appendStringInfoChar(&json, '{');
    pgkm_options_put_json(type, options, &json);
    if (call != NULL && call->weight != NULL)
        put_member(&json, "weight", call->weight->name);
    if (call != NULL && call->nulls != TABLE_NULLS_ERROR)
        put_member(&json, "nulls", table_nulls_name(call->nulls));
    if (call != NULL && call->filter != NULL)
        put_member(&json, "filter", call->filter->name);
    appendStringInfoChar(&json, '}');
    return DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data));
}

/* The place of the field in a model's row type; -1: an older one lacks it. */
static int place_in(TupleDesc model)
{
    for (int i = 0; i < model->natts; ++i)
        if (!TupleDescAttr(model, i)->attisdropped && strcmp(NameStr(TupleDescAttr(model, i)->attname), "origin") == 0)
            return i;
    return -1;
}

PgkmValue origin_given(TupleDesc model, PgkmValue features, PgkmValue sources, PgkmValue means, PgkmValue deviations)
{
    const int place = place_in(model);

    if (place < 0)
        return PgkmValue();

    const TupleDesc desc = lookup_rowtype_tupdesc(TupleDescAttr(model, place)->atttypid, -1);

    pgkm_check_type(desc, &origin_type);

    const Datum made =
        pgkm_composite_make(desc, {features, PgkmValue(), PgkmValue(), PgkmValue(), means, deviations, sources});

    ReleaseTupleDesc(desc);
    return made;
}

/* The types that were looked up last. */
static struct {
    Oid origin;
    Oid source; /* InvalidOid: an older origin has no sources */
} known;

static void know_types(TupleDesc model)
{
    const int place = place_in(model);

    if (place < 0)
        return;

    const Oid type = TupleDescAttr(model, place)->atttypid;
    const TupleDesc desc = lookup_rowtype_tupdesc(type, -1);

    pgkm_check_type(desc, &origin_type);
    known.source =
        desc->natts > ORIGIN_SOURCES ? get_element_type(TupleDescAttr(desc, ORIGIN_SOURCES)->atttypid) : InvalidOid;
    known.origin = type;
    ReleaseTupleDesc(desc);
    if (OidIsValid(known.source))
        sources_check_type(known.source);
}

TupleDesc origin_tupdesc(FunctionCallInfo fcinfo, const PgkmCompositeType *type)
{
    const TupleDesc tupdesc = pgkm_result_tupdesc(fcinfo, type);

    know_types(tupdesc);
    return tupdesc;
}

PgkmValue origin_build(TupleDesc model, const FitKind *kind, const void *options, const TableCall *call,
                       const double *means, const double *deviations, int32 d)
{
    const int place = place_in(model);
    PgkmValue features, relation, time, sources;

    if (place < 0)
        return PgkmValue();

    const Oid type = TupleDescAttr(model, place)->atttypid;

    if (known.origin != type)
        know_types(model);

    const TupleDesc desc = lookup_rowtype_tupdesc(type, -1);

    if (call != NULL) {
        features = sources_names(call->features, call->n_features);
        relation = call->relation.sql_name;
        time = TimestampTzGetDatum(GetCurrentTransactionStartTimestamp());
        if (OidIsValid(known.source))
            sources = sources_build(call->features, call->n_features, call->levels, known.source);
    }

    const Datum made = pgkm_composite_make(desc, {features, relation, options_json(kind->options, options, call), time,
                                                  array_or_null(means, d), array_or_null(deviations, d), sources});

    ReleaseTupleDesc(desc);
    return made;
}

/* --- read --- */

/* Whether the options have it. */
static bool find_option(const NullableDatum *options, const char *name, JsonbValue *found)
{
    if (options->isnull)
        return false;

    JsonbContainer *const root = &DatumGetJsonbP(options->value)->root;

    return JsonContainerIsObject(root) && getKeyJsonValueFromContainer(root, name, strlen(name), found) != NULL;
}

static bool says_standardized(const NullableDatum *options)
{
    JsonbValue found;

    return find_option(options, "standardize", &found) && found.type == jbvBool && found.val.boolean;
}

static double read_reg_covar(const NullableDatum *options)
{
    JsonbValue found;

    if (!find_option(options, "reg_covar", &found) || found.type != jbvNumeric)
        return get_float8_nan();

    const double value =
        DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, NumericGetDatum(found.val.numeric)));

    return value >= 0 && !std::isinf(value) ? value : get_float8_nan();
}

/* d of them, or NULL. */
static const double *read_numbers(const PgkmModelFields *from, const NullableDatum *field, int32 d)
{
    const double *const numbers = field->isnull ? NULL : (const double *)pgkm_array_values(field->value, {d});

    if (!field->isnull && (numbers == NULL || !pgkm_all_finite(numbers, d)))
        pgkm_raise_field(from, "origin", "hold d finite means and deviations, or nulls");
    return numbers;
}

Origin origin_read(const PgkmModelFields *from, int32 d)
{
    const NullableDatum *const origin = pgkm_model_field(from, "origin");
    NullableDatum values[PGKM_MOST_FIELDS];

    if (origin->isnull)
        return {NULL, NULL, NULL, false, get_float8_nan()};
    pgkm_read_fields(origin->value, &origin_type, values);

    const double *const means = read_numbers(from, &values[ORIGIN_MEANS], d);
    const double *const deviations = read_numbers(from, &values[ORIGIN_DEVIATIONS], d);

    const Sources *const sources = sources_read(from, &values[ORIGIN_FEATURES], &values[ORIGIN_SOURCES], d);

    return {sources, means, deviations, says_standardized(&values[ORIGIN_OPTIONS]),
            read_reg_covar(&values[ORIGIN_OPTIONS])};
}

bool origin_estimates_missing(const PgkmModelFields *from)
{
    const NullableDatum *const origin = pgkm_model_field(from, "origin");
    const char *const em = table_nulls_name(TABLE_NULLS_EM);
    NullableDatum values[PGKM_MOST_FIELDS];
    JsonbValue found;

    if (origin->isnull)
        return false;
    pgkm_read_fields(origin->value, &origin_type, values);
    return find_option(&values[ORIGIN_OPTIONS], "nulls", &found) && found.type == jbvString &&
           found.val.string.len == (int)strlen(em) && memcmp(found.val.string.val, em, strlen(em)) == 0;
}

Origin origin_of(Datum composite, const PgkmCompositeType *type)
{
    PgkmModelFields from;
    int32 k;
    int32 d;

    pgkm_model_open(composite, type, CurrentMemoryContext, &from);
    pgkm_model_extents(&from, &k, &d);
    return origin_read(&from, d);
}
