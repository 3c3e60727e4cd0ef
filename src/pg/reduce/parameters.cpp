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

/* How many values there are at most: scalars in the JSON text. */
static int64 count_scalars(JsonbContainer *list)
{
    JsonbIterator *iterator = JsonbIteratorInit(list);
    JsonbIteratorToken token;
    JsonbValue value;
    int64 count = 0;

    while ((token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE)
        count += token == WJB_ELEM;
    return count;
}

/* The lists of a value, or the list itself. All are checked to be as long. */
static void read_list(PgkmNamed *name, JsonbContainer *list)
{
    JsonbIterator *iterator = JsonbIteratorInit(list);
    double *const values = reduce_numbers(count_scalars(list));
    JsonbValue value;
    JsonbIteratorToken token;
    int depth = 0;
    int64 in_row = 0;
    int64 count = 0;

    name->values = values;
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
            values[count++] = read_number(&value, name->name);
            ++*(depth == 1 ? &name->extent[0] : &in_row);
        } else {
            raise_parameter(name->name);
        }
    }
    if (name->extent[0] == 0)
        raise_parameter(name->name);
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

/* Between looks at the cancel flag. */
#define COPIED_AT_ONCE ((int64)1 << 20)

List *reduce_parameters_copy(const List *parameters)
{
    List *copy = NIL;
    ListCell *cell;

    foreach (cell, parameters) {
        const PgkmNamed *const from = (const PgkmNamed *)lfirst(cell);
        const int64 count = numbers_of(from);
        double *const values = reduce_numbers(count);

        for (int64 i = 0; i < count; i += COPIED_AT_ONCE) {
            CHECK_FOR_INTERRUPTS();
            memcpy(values + i, from->values + i, Min(count - i, COPIED_AT_ONCE) * sizeof(double));
        }
        copy = reduce_parameters_add(copy, from->name, from->dimensions, from->extent, values);
    }
    return copy;
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
