/*
 * parameters.cpp - parameters from jsonb and back.
 */
#include "pg/reduce/parameters.h"

#include <cmath>

#include "pg/reduce/object.h"
#include "pg/run/memory_account.h"

extern "C" {
#include "common/shortest_dec.h"
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

double *reduce_numbers(int64 count)
{
    const Size bytes = count * sizeof(double);

    if (bytes > pgkm_memory_available())
        pgkm_raise_working_memory("A parameter", bytes);
    return (double *)MemoryContextAllocHuge(CurrentMemoryContext, bytes);
}

static int64 numbers_of(const PgkmNamed *name)
{
    return name->extent[0] * name->extent[1];
}

static void read_numbers(const PgkmNamed *name, JsonbContainer *list, int64 count, double *numbers)
{
    for (int64 i = 0; i < count; ++i) {
        JsonbValue *const value = getIthJsonbValueFromContainer(list, i);

        numbers[i] = read_number(value, name->name);
        pfree(value);
    }
}

static void require_list(const PgkmNamed *name, JsonbValue *value, int64 count)
{
    if (value->type != jbvBinary || !JsonContainerIsArray(value->val.binary.data) ||
        JsonContainerSize(value->val.binary.data) != count)
        raise_parameter(name->name);
    pfree(value);
}

/* A list of numbers, or of such lists. */
static void read_list(PgkmNamed *name, JsonbContainer *list)
{
    const int64 count = JsonContainerIsArray(list) ? JsonContainerSize(list) : 0;
    const JsonbValue *const first = count == 0 ? NULL : getIthJsonbValueFromContainer(list, 0);
    const bool has_rows = first != NULL && first->type == jbvBinary;
    const int64 width = has_rows ? JsonContainerSize(first->val.binary.data) : 1;

    if (count == 0 || width == 0)
        raise_parameter(name->name);
    /* All rows before memory is taken, which follows from the first one's length. */
    for (int64 i = 0; has_rows && i < count; ++i)
        require_list(name, getIthJsonbValueFromContainer(list, i), width);

    double *const values = reduce_numbers(count * width);

    name->dimensions = has_rows ? 2 : 1;
    name->extent[0] = count;
    name->extent[1] = width;
    name->values = values;
    if (!has_rows)
        read_numbers(name, list, count, values);
    for (int64 i = 0; has_rows && i < count; ++i)
        read_numbers(name, getIthJsonbValueFromContainer(list, i)->val.binary.data, width, values + i * width);
}

List *reduce_parameters_add(List *parameters, const char *name, int dimensions, const int64 *extent,
                            const double *values)
{
    PgkmNamed *const added = (PgkmNamed *)palloc(sizeof(PgkmNamed));

    *added = {pstrdup(name), dimensions, {extent[0], extent[1]}, 0, 0, values};
    return lappend(parameters, added);
}

List *reduce_parameters_read(Jsonb *object)
{
    static const int64 one[] = {1, 1};
    List *parameters = NIL;

    if (object == NULL)
        return NIL;
    if (!JB_ROOT_IS_OBJECT(object))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("params must be a JSON object")));
    reduce_each_field(&object->root, [&parameters](const char *name, const JsonbValue *value) {
        double *const number = value->type == jbvBinary ? NULL : reduce_numbers(1);

        parameters = reduce_parameters_add(parameters, name, 0, one, number);
        if (number == NULL)
            read_list((PgkmNamed *)llast(parameters), value->val.binary.data);
        else
            *number = read_number(value, name);
    });
    return parameters;
}

const PgkmNamed *reduce_parameters_find(const List *parameters, const char *name)
{
    ListCell *cell;

    foreach (cell, parameters)
        if (strcmp(((const PgkmNamed *)lfirst(cell))->name, name) == 0)
            return (const PgkmNamed *)lfirst(cell);
    return NULL;
}

/* The shortest text that reads back as the number, whatever extra_float_digits says. */
static void append_number(StringInfo text, double value)
{
    char digits[DOUBLE_SHORTEST_DECIMAL_LEN];

    double_to_shortest_decimal_buf(value, digits);
    appendStringInfoString(text, digits);
}

/* The values as a list of lists, a list or a number. */
static void append_values(StringInfo text, const PgkmNamed *name)
{
    static const char *const opening[] = {"", "[", "[["};
    static const char *const closing[] = {"", "]", "]]"};
    const int64 width = name->extent[1];

    for (int64 i = 0; i < numbers_of(name); ++i) {
        const bool begins_row = name->dimensions == 2 && i % width == 0;

        if (i % 4096 == 0)
            CHECK_FOR_INTERRUPTS();
        appendStringInfoString(text, i == 0 ? opening[name->dimensions] : begins_row ? "], [" : ",");
        append_number(text, name->values[i]);
    }
    appendStringInfoString(text, closing[name->dimensions]);
}

Jsonb *reduce_parameters_jsonb(const List *parameters)
{
    StringInfoData text;
    ListCell *cell;

    initStringInfo(&text);
    foreach (cell, parameters) {
        const PgkmNamed *const name = (const PgkmNamed *)lfirst(cell);

        appendStringInfoString(&text, text.len == 0 ? "{" : ", ");
        escape_json(&text, name->name);
        appendStringInfoString(&text, ": ");
        append_values(&text, name);
    }
    appendStringInfoString(&text, text.len == 0 ? "{}" : "}");
    return DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(text.data)));
}
