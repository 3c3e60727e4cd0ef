/*
 * parameters.cpp - parameters from jsonb and back.
 */
#include "pg/reduce/parameters.h"

#include <cmath>

#include "pg/run/memory_account.h"
#include "pg/values/json_text.h"

extern "C" {
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/memutils.h"
}

[[noreturn]] static void raise_parameter(const char *name)
{
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("parameter \"%s\" must be a number, a list of numbers, or a list of lists of equal length", name)));
    pg_unreachable();
}

static double read_number(const JsonbValue *value, const char *name)
{
    if (value->type != jbvNumeric)
        raise_parameter(name);
    const double number =
        DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, NumericGetDatum(value->val.numeric)));

    if (std::isinf(number))
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("parameter \"%s\" is out of range", name)));
    return number;
}

static Size check_bytes(int64 count)
{
    const Size bytes = count * sizeof(double);

    if (bytes > pgkm_memory_available())
        pgkm_raise_working_memory("A parameter", bytes);
    return bytes;
}

double *reduce_numbers(int64 count)
{
    return (double *)MemoryContextAllocHuge(CurrentMemoryContext, check_bytes(count));
}

static double *add_values(ReduceParameters *parameters, int64 count)
{
    const int64 needed = parameters->n_values + count;

    if (needed > parameters->capacity) {
        const int64 capacity = Max(needed, Max(2 * parameters->capacity, (int64)64));

        parameters->values = parameters->capacity == 0
                                 ? reduce_numbers(capacity)
                                 : (double *)repalloc_huge(parameters->values, check_bytes(capacity));
        parameters->capacity = capacity;
    }
    parameters->n_values = needed;
    return parameters->values + parameters->n_values - count;
}

/* Between looks at the cancel flag. */
#define COPIED_AT_ONCE ((int64)1 << 20)

/* Without names, with place for so many. */
static ReduceParameters *make_parameters(int n_names)
{
    ReduceParameters *const parameters = (ReduceParameters *)palloc0(sizeof(ReduceParameters));

    parameters->names = (ReduceName *)palloc(Max(n_names, 1) * sizeof(ReduceName));
    return parameters;
}

/* The lists of a value, or the list itself. All are checked to be as long. */
static void read_list(ReduceParameters *parameters, ReduceName *name, JsonbContainer *list)
{
    JsonbIterator *iterator = JsonbIteratorInit(list);
    JsonbValue value;
    JsonbIteratorToken token;
    int depth = 0;
    int32 in_row = 0;

    name->extent[0] = 0;
    while ((token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE) {
        const bool has_numbers = name->dimensions == 1 && name->extent[0] > 0; /* no list may follow them */

        if (token == WJB_BEGIN_ARRAY && ++depth <= 2 && !has_numbers) {
            name->dimensions = Max(name->dimensions, depth);
            in_row = 0;
        } else if (token == WJB_END_ARRAY) {
            if (depth-- == 2 && (in_row == 0 || (++name->extent[0] > 1 && in_row != name->extent[1])))
                raise_parameter(name->name);
            name->extent[1] = name->dimensions == 2 ? in_row : 1;
        } else if (token == WJB_ELEM && depth == name->dimensions) {
            *add_values(parameters, 1) = read_number(&value, name->name);
            ++*(depth == 1 ? &name->extent[0] : &in_row);
        } else {
            raise_parameter(name->name);
        }
    }
    if (name->extent[0] == 0)
        raise_parameter(name->name);
}

static void read_parameter(ReduceParameters *parameters, const char *text, const JsonbValue *value)
{
    ReduceName *const name = &parameters->names[parameters->n_names++];

    *name = {text, 0, {1, 1}, parameters->n_values, false};
    if (value->type == jbvBinary)
        read_list(parameters, name, value->val.binary.data);
    else
        *add_values(parameters, 1) = read_number(value, text);
}

ReduceParameters *reduce_parameters_read(Jsonb *object)
{
    if (object == NULL)
        return make_parameters(0);
    if (!JB_ROOT_IS_OBJECT(object))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("params must be a JSON object")));

    ReduceParameters *const parameters = make_parameters(JB_ROOT_COUNT(object));

    reduce_each_field(&object->root, [parameters](const char *name, const JsonbValue *value) {
        read_parameter(parameters, name, value);
    });
    return parameters;
}

static void add_parameter(ReduceParameters *parameters, const char *name, const ReduceName *shape, const double *values)
{
    const int64 count = (int64)shape->extent[0] * shape->extent[1];
    ReduceName *const added = &parameters->names[parameters->n_names++];

    *added = *shape;
    added->name = pstrdup(name);
    added->first = parameters->n_values;

    double *const target = add_values(parameters, count);

    for (int64 i = 0; i < count; i += COPIED_AT_ONCE) {
        CHECK_FOR_INTERRUPTS();
        memcpy(target + i, values + i, Min(count - i, COPIED_AT_ONCE) * sizeof(double));
    }
}

/* Those of another name than `except`, under their name behind a prefix. */
static void add_all(ReduceParameters *parameters, const ReduceParameters *from, const char *except, const char *prefix)
{
    for (int i = 0; i < from->n_names; ++i)
        if (except == NULL || strcmp(from->names[i].name, except) != 0)
            add_parameter(parameters, psprintf("%s%s", prefix, from->names[i].name), &from->names[i],
                          from->values + from->names[i].first);
}

ReduceParameters *reduce_parameters_with(const ReduceParameters *parameters, const char *name, int dimensions,
                                         const int64 *extent, const double *values)
{
    ReduceParameters *const more = make_parameters(parameters->n_names + 1);
    const ReduceName shape = {name, dimensions, {(int32)extent[0], (int32)extent[1]}, 0, false};

    add_all(more, parameters, name, "");
    add_parameter(more, name, &shape, values);
    return more;
}

ReduceParameters *reduce_parameters_with_old(const ReduceParameters *parameters, const ReduceParameters *from)
{
    ReduceParameters *const more = make_parameters(parameters->n_names + from->n_names);

    add_all(more, parameters, NULL, "");
    add_all(more, from, NULL, "old.");
    return more;
}

ReduceParameters *reduce_parameters_copy(const ReduceParameters *parameters)
{
    ReduceParameters *const copy = make_parameters(parameters->n_names);

    add_all(copy, parameters, NULL, "");
    return copy;
}

Jsonb *reduce_parameters_jsonb(const ReduceParameters *parameters)
{
    StringInfoData text;

    initStringInfo(&text);
    appendStringInfoChar(&text, '{');
    for (int i = 0; i < parameters->n_names; ++i) {
        const ReduceName *const name = &parameters->names[i];
        const double *const values = parameters->values + name->first;

        appendStringInfoString(&text, i == 0 ? "" : ", ");
        escape_json(&text, name->name);
        appendStringInfoString(&text, ": ");
        for (int32 row = 0; row < name->extent[0] && name->dimensions == 2; ++row) {
            CHECK_FOR_INTERRUPTS();
            appendStringInfoString(&text, row == 0 ? "[" : ", ");
            pgkm_append_list(&text, values + (int64)row * name->extent[1], name->extent[1]);
        }
        if (name->dimensions == 2)
            appendStringInfoChar(&text, ']');
        else if (name->dimensions == 1)
            pgkm_append_list(&text, values, name->extent[0]);
        else
            pgkm_append_double(&text, values[0]);
    }
    appendStringInfoChar(&text, '}');
    return DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(text.data)));
}
