/*
 * options.cpp - options of any algorithm, by the table of their fields.
 */
#include "pg/values/options.h"

#include <cmath>

#include "pg/values/datum.h"

extern "C" {
#include "access/htup_details.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/json.h"
}

void pgkm_raise_option(const char *name, const char *takes, const char *hint)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("option %s must be %s", name, takes),
                    hint == NULL ? 0 : errhint("%s", hint)));
    pg_unreachable();
}

const char *pgkm_word_of(const PgkmWords *words, int32 value)
{
    for (int i = words->count; i-- > 0;)
        if (words->words[i].value == value)
            return words->words[i].word;
    return NULL;
}

bool pgkm_word_find(const PgkmWords *words, const char *word, int32 *value)
{
    for (int i = 0; i < words->count; ++i)
        if (strcmp(word, words->words[i].word) == 0) {
            *value = words->words[i].value;
            return true;
        }
    return false;
}

int32 pgkm_word_argument(const NullableDatum *argument, const char *name, const PgkmWords *words, int32 if_null)
{
    int32 value = if_null;

    if (!argument->isnull && !pgkm_word_find(words, TextDatumGetCString(argument->value), &value))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must be %s", name, words->takes),
                        errhint("%s", words->hint)));
    return value;
}

/* The field's place in the options, and in options that are not changed. */
template <typename Value>
static Value &place_of(const PgkmField *field, void *options)
{
    return *(Value *)((char *)options + field->offset);
}

template <typename Value>
static const Value &value_of(const PgkmField *field, const void *options)
{
    return *(const Value *)((const char *)options + field->offset);
}

static bool is_of_clusters(const PgkmField *field)
{
    return field->takes == PGKM_TAKES_SHARES || field->takes == PGKM_TAKES_WEIGHTS;
}

static bool is_array(const PgkmField *field)
{
    return field->takes == PGKM_TAKES_MATRIX || field->takes == PGKM_TAKES_ARRAY || is_of_clusters(field);
}

/* Whether the number is the one that stands for NULL. */
static bool is_none(const PgkmField *field, const void *options)
{
    return ((field->takes == PGKM_TAKES_SHARE || field->takes == PGKM_TAKES_WEIGHT) &&
            value_of<double>(field, options) == 0) ||
           (field->takes == PGKM_TAKES_SIZE && value_of<int32>(field, options) == 0);
}

/* --- reading --- */

static bool all_usable(const double *values, Size count)
{
    for (Size i = 0; i < count; ++i)
        if (!(std::fabs(values[i]) <= PGKM_MAX_MAGNITUDE))
            return false;
    return true;
}

static void read_array(const PgkmField *field, Datum value, MemoryContext context, PgkmGiven *given)
{
    ArrayType *const array = DatumGetArrayTypeP(value);
    const int dimensions = ARR_NDIM(array);

    if (field->takes == PGKM_TAKES_MATRIX && dimensions != 2)
        pgkm_raise_option(field->name, "a two-dimensional array (clusters x features)");
    if (is_of_clusters(field) && dimensions != 1)
        pgkm_raise_option(field->name, "an array of one dimension, with a value for each cluster");
    if (dimensions < 1 || dimensions > (int)lengthof(given->extent))
        pgkm_raise_option(field->name, "an array of one to three dimensions");
    if (array_contains_nulls(array))
        pgkm_raise_option(field->name, "an array without nulls");

    const Size count = ArrayGetNItems(dimensions, ARR_DIMS(array));
    const double *const values = (const double *)ARR_DATA_PTR(array);

    if (!all_usable(values, count))
        pgkm_raise_option(field->name, "an array of finite values of magnitude at most 2^500");
    *given = {values, dimensions, {0}};
    if (context != NULL)
        given->values = (const double *)memcpy(MemoryContextAllocHuge(context, count * sizeof(double)), values,
                                               count * sizeof(double));
    memcpy(given->extent, ARR_DIMS(array), dimensions * sizeof(int32));
}

static void require(const PgkmField *field, bool holds, const char *takes)
{
    if (!holds)
        pgkm_raise_option(field->name, takes);
}

/* A number of rows, or a share of all. */
static bool is_share(double value)
{
    const bool is_count = value >= 1 && value <= (double)PGKM_MAX_ROWS && value == std::floor(value);

    return is_count || (value > 0 && value < 1);
}

static void require_bounds(const PgkmField *field, const PgkmGiven *given)
{
    const bool are_shares = field->takes == PGKM_TAKES_SHARES;

    for (int32 i = 0; i < given->extent[0]; ++i)
        require(field, given->values[i] == 0 || (are_shares ? is_share(given->values[i]) : given->values[i] > 0),
                are_shares ? "an array of whole numbers, and of shares between 0 and 1"
                           : "an array of numbers of at least 0");
}

static void read_field(const PgkmField *field, Datum value, MemoryContext context, void *options)
{
    switch (field->takes) {
    case PGKM_TAKES_WORD:
        if (!pgkm_word_find(field->words, TextDatumGetCString(value), &place_of<int32>(field, options)))
            pgkm_raise_option(field->name, field->words->takes, field->words->hint);
        break;
    case PGKM_TAKES_COUNT:
    case PGKM_TAKES_SIZE:
        require(field, DatumGetInt32(value) >= 1, "at least 1");
        place_of<int32>(field, options) = DatumGetInt32(value);
        break;
    case PGKM_TAKES_AMOUNT:
        require(field, DatumGetFloat8(value) >= 0 && !std::isinf(DatumGetFloat8(value)),
                "a finite number of at least 0");
        place_of<double>(field, options) = DatumGetFloat8(value);
        break;
    case PGKM_TAKES_SHARE:
        require(field, is_share(DatumGetFloat8(value)), "a whole number of at least 1, or a share between 0 and 1");
        place_of<double>(field, options) = DatumGetFloat8(value);
        break;
    case PGKM_TAKES_WEIGHT:
        require(field, DatumGetFloat8(value) > 0 && !std::isinf(DatumGetFloat8(value)), "a finite number above 0");
        place_of<double>(field, options) = DatumGetFloat8(value);
        break;
    case PGKM_TAKES_SHARES:
    case PGKM_TAKES_WEIGHTS:
        read_array(field, value, context, &place_of<PgkmGiven>(field, options));
        require_bounds(field, &place_of<PgkmGiven>(field, options));
        break;
    case PGKM_TAKES_SEED:
        place_of<uint64>(field, options) = (uint64)DatumGetInt64(value);
        break;
    case PGKM_TAKES_SWITCH:
        place_of<int32>(field, options) = DatumGetBool(value) ? 1 : 0;
        break;
    case PGKM_TAKES_MODEL:
        field->read(value, context, &place_of<PgkmGivenModel>(field, options));
        break;
    default:
        read_array(field, value, context, &place_of<PgkmGiven>(field, options));
    }
}

void pgkm_options_fields(const PgkmOptionsType *type, const NullableDatum *fields, MemoryContext context, void *options)
{
    type->set_default(options);
    for (int i = 0; i < type->composite.count; ++i)
        if (!fields[i].isnull)
            read_field(&type->composite.fields[i], fields[i].value, context, options);
    if (type->settle != NULL)
        type->settle(options);
}

void pgkm_options_open(const PgkmOptionsType *type, const NullableDatum *composite, NullableDatum *fields)
{
    if (!composite->isnull)
        pgkm_read_fields(composite->value, &type->composite, fields);
    for (int i = 0; composite->isnull && i < type->composite.count; ++i)
        fields[i] = {0, true};
}

void pgkm_options_read(const PgkmOptionsType *type, const NullableDatum *composite, MemoryContext context,
                       void *options)
{
    NullableDatum fields[PGKM_MOST_FIELDS];

    pgkm_options_open(type, composite, fields);
    pgkm_options_fields(type, fields, context, options);
}

/* --- returning --- */

/* The word for an option. The default stays the default, which may be more than the value that it has here. */
static const char *word_for(const PgkmField *field, const NullableDatum *given, const void *options)
{
    const PgkmWord *const usual = &field->words->words[0];
    const bool is_usual = given->isnull || strcmp(TextDatumGetCString(given->value), usual->word) == 0;
    const int32 value = value_of<int32>(field, options);

    return is_usual && usual->value == value ? usual->word : pgkm_word_of(field->words, value);
}

static PgkmValue field_value(const PgkmField *field, const NullableDatum *given, const void *options)
{
    switch (field->takes) {
    case PGKM_TAKES_WORD:
        return word_for(field, given, options);
    case PGKM_TAKES_COUNT:
        return value_of<int32>(field, options);
    case PGKM_TAKES_SEED:
        return value_of<int64>(field, options);
    case PGKM_TAKES_SWITCH:
        return value_of<int32>(field, options) != 0;
    default:
        return value_of<double>(field, options);
    }
}

Datum pgkm_options_make(FunctionCallInfo fcinfo, const PgkmOptionsType *type)
{
    const TupleDesc tupdesc = pgkm_result_tupdesc(fcinfo, &type->composite);
    PgkmAnyOptions options;
    Datum values[PGKM_MOST_FIELDS];
    bool nulls[PGKM_MOST_FIELDS];

    pgkm_options_fields(type, fcinfo->args, CurrentMemoryContext, &options);
    for (int i = 0; i < type->composite.count; ++i) {
        const PgkmField *const field = &type->composite.fields[i];
        const bool has_default = !is_array(field) && field->takes != PGKM_TAKES_SHARE &&
                                 field->takes != PGKM_TAKES_WEIGHT && field->takes != PGKM_TAKES_SIZE &&
                                 field->takes != PGKM_TAKES_MODEL;

        nulls[i] = !has_default && PG_ARGISNULL(i);
        values[i] = has_default ? field_value(field, &fcinfo->args[i], &options).datum : PG_GETARG_DATUM(i);
    }
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

static void put_json_value(const PgkmField *field, const void *options, StringInfo json)
{
    if (is_none(field, options)) {
        appendStringInfoString(json, "null");
        return;
    }
    switch (field->takes) {
    case PGKM_TAKES_WORD:
        escape_json(json, pgkm_word_of(field->words, value_of<int32>(field, options)));
        break;
    case PGKM_TAKES_COUNT:
    case PGKM_TAKES_SIZE:
        appendStringInfo(json, "%d", value_of<int32>(field, options));
        break;
    case PGKM_TAKES_SEED:
        appendStringInfo(json, "%lld", (long long)value_of<int64>(field, options));
        break;
    case PGKM_TAKES_SWITCH:
        appendStringInfoString(json, value_of<int32>(field, options) != 0 ? "true" : "false");
        break;
    case PGKM_TAKES_SHARE:
    case PGKM_TAKES_WEIGHT:
    case PGKM_TAKES_AMOUNT:
        appendStringInfo(json, "%.17g", value_of<double>(field, options));
        break;
    default:
        appendStringInfoString(json, value_of<PgkmGiven>(field, options).dimensions > 0 ? "\"given\"" : "null");
    }
}

void pgkm_options_put_json(const PgkmOptionsType *type, const void *options, StringInfo json)
{
    for (int i = 0; i < type->composite.count; ++i) {
        appendStringInfo(json, "%s\"%s\": ", i == 0 ? "" : ", ", type->composite.fields[i].name);
        put_json_value(&type->composite.fields[i], options, json);
    }
}

/* --- comparing --- */

static bool same_given(const PgkmGiven *a, const PgkmGiven *b)
{
    Size size = a->dimensions == 0 ? 0 : sizeof(double);

    for (int i = 0; i < a->dimensions; ++i)
        size *= a->extent[i];
    return a->dimensions == b->dimensions && memcmp(a->extent, b->extent, sizeof a->extent) == 0 &&
           (size == 0 || memcmp(a->values, b->values, size) == 0);
}

static bool same_model(const PgkmGivenModel *a, const PgkmGivenModel *b)
{
    return same_given(&a->centroids, &b->centroids) && same_given(&a->center, &b->center) &&
           same_given(&a->scale, &b->scale) && a->metric == b->metric && same_given(&a->weights, &b->weights) &&
           same_given(&a->covariances, &b->covariances) && a->covariance_type == b->covariance_type;
}

static bool same_field(const PgkmField *field, const void *a, const void *b)
{
    switch (field->takes) {
    case PGKM_TAKES_AMOUNT:
    case PGKM_TAKES_SHARE:
    case PGKM_TAKES_WEIGHT:
        return value_of<double>(field, a) == value_of<double>(field, b);
    case PGKM_TAKES_SEED:
        return value_of<uint64>(field, a) == value_of<uint64>(field, b);
    case PGKM_TAKES_MATRIX:
    case PGKM_TAKES_ARRAY:
    case PGKM_TAKES_SHARES:
    case PGKM_TAKES_WEIGHTS:
        return same_given(&value_of<PgkmGiven>(field, a), &value_of<PgkmGiven>(field, b));
    case PGKM_TAKES_MODEL:
        return same_model(&value_of<PgkmGivenModel>(field, a), &value_of<PgkmGivenModel>(field, b));
    default:
        return value_of<int32>(field, a) == value_of<int32>(field, b);
    }
}

void pgkm_options_refuse(const PgkmOptionsType *type, const void *options, const char *option, const char *function)
{
    PgkmAnyOptions usual;

    type->set_default(&usual);
    for (int i = 0; i < type->composite.count; ++i)
        if (strcmp(type->composite.fields[i].name, option) == 0 &&
            !same_field(&type->composite.fields[i], &usual, options))
            ereport(ERROR,
                    (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s cannot use option %s", function, option)));
}

bool pgkm_options_same(const PgkmOptionsType *type, const void *a, const void *b)
{
    for (int i = 0; i < type->composite.count; ++i)
        if (!same_field(&type->composite.fields[i], a, b))
            return false;
    return true;
}
