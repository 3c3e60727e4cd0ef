/*
 * row_fault.cpp - rows of function arguments, and errors: about single rows, and where in a text they are.
 */
#include "pg/values/datum.h"
#include "pg/values/weight.h"

#include <cmath>

extern "C" {
#include "utils/array.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
}

Datum pgkm_required(const NullableDatum *argument, const char *name)
{
    if (argument->isnull)
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s must not be null", name)));
    return argument->value;
}

const char *pgkm_counted(int64 count, const char *noun)
{
    return psprintf("%lld %s%s", (long long)count, noun, count == 1 ? "" : "s");
}

int pgkm_detail_of_row(const char *ctid)
{
    return ctid == NULL ? 0 : errdetail("The row is at ctid %s.", ctid);
}

[[noreturn]] static void raise_at(int sqlstate, const char *text, const char *ctid)
{
    ereport(ERROR, (errcode(sqlstate), errmsg("%s", text), pgkm_detail_of_row(ctid)));
    pg_unreachable();
}

void pgkm_raise_value_fault(PgkmRowFaultKind kind, const char *what, const char *ctid)
{
    if (kind == PGKM_ROW_NULL_ELEMENT)
        raise_at(ERRCODE_NULL_VALUE_NOT_ALLOWED, psprintf("%s must not be null", what), ctid);
    if (kind == PGKM_ROW_NAN)
        raise_at(ERRCODE_INVALID_PARAMETER_VALUE, psprintf("%s must not be NaN", what), ctid);
    if (kind == PGKM_ROW_TOO_LARGE)
        raise_at(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, psprintf("%s is out of range: its magnitude exceeds 2^500", what),
                 ctid);
    raise_at(ERRCODE_INVALID_PARAMETER_VALUE, psprintf("%s must be finite", what), ctid);
}

void pgkm_raise_row_fault(const PgkmRowFault *fault, const char *ctid, const char *noun)
{
    switch (fault->kind) {
    case PGKM_ROW_EMPTY:
        raise_at(ERRCODE_ARRAY_SUBSCRIPT_ERROR, psprintf("%ss must not be empty", noun), ctid);
    case PGKM_ROW_MULTIDIMENSIONAL:
        raise_at(ERRCODE_ARRAY_SUBSCRIPT_ERROR, psprintf("%ss must be a one-dimensional array", noun), ctid);
    case PGKM_ROW_LENGTH:
        raise_at(ERRCODE_ARRAY_SUBSCRIPT_ERROR,
                 psprintf("expected %s, not %d", pgkm_counted(fault->expected, noun), fault->found), ctid);
    case PGKM_ROW_NULL:
    case PGKM_ROW_TYPE:
        raise_at(ERRCODE_DATATYPE_MISMATCH, psprintf("%ss must be numbers of one type", noun), ctid);
    default:
        pgkm_raise_value_fault(fault->kind, psprintf("%s %d", noun, fault->position), ctid);
    }
}

void pgkm_check_length(int32 expected, int32 found)
{
    const PgkmRowFault fault = {PGKM_ROW_LENGTH, 0, expected, found};

    if (found != expected)
        pgkm_raise_row_fault(&fault, NULL);
}

/* Opens an array; false for a row to skip (PGKM_ROW_NULL), and for one that has a fault. */
static bool open_array(NullableDatum array, PgkmVector *vector, PgkmRowFault *fault)
{
    fault->kind = PGKM_ROW_NULL;
    return !array.isnull && pgkm_open_vector(array.value, vector, fault);
}

/* The same of the features in argument `number`. */
static bool open_argument(FmgrInfo *flinfo, int number, NullableDatum *features, PgkmVector *vector,
                          PgkmRowFault *fault)
{
    if (!features->isnull && pgkm_argument_is_bits(flinfo, number))
        return pgkm_open_bits(features->value, vector, fault);
    *features = pgkm_vector_value(flinfo, number, features);
    return open_array(*features, vector, fault);
}

bool pgkm_open_row(FmgrInfo *flinfo, int number, NullableDatum features, PgkmVector *vector)
{
    PgkmRowFault fault;

    if (open_argument(flinfo, number, &features, vector, &fault))
        return true;
    if (fault.kind != PGKM_ROW_NULL)
        pgkm_raise_row_fault(&fault, NULL);
    return false;
}

int32 pgkm_array_elements(Datum array, Oid element_type, Datum **values, bool **nulls)
{
    int16 length;
    bool by_value;
    char align;
    int count;

    get_typlenbyvalalign(element_type, &length, &by_value, &align);
    deconstruct_array(DatumGetArrayTypeP(array), element_type, length, by_value, align, values, nulls, &count);
    return count;
}

bool pgkm_read_incomplete(Datum array, Oid element_type, int32 d, const double *fills, double *row, PgkmRowFault *fault)
{
    Datum *values;
    bool *nulls;

    fault->kind = PGKM_ROW_LENGTH;
    fault->expected = d;
    fault->found = pgkm_array_elements(array, element_type, &values, &nulls);

    bool usable = fault->found == d;

    for (int32 f = 0; usable && f < d; ++f)
        if (nulls[f])
            row[f] = fills == NULL ? get_float8_nan() : fills[f];
        else
            usable = pgkm_read_number(values[f], element_type, f + 1, &row[f], fault);
    pfree(values);
    pfree(nulls);
    return usable;
}

double *pgkm_read_row(FunctionCallInfo fcinfo, int number, int32 d, const char *noun, PgkmElement *element,
                      const double *fills)
{
    return pgkm_read_array(pgkm_vector_value(fcinfo->flinfo, number, &fcinfo->args[number]), d, noun, element, fills);
}

double *pgkm_read_array(NullableDatum array, int32 d, const char *noun, PgkmElement *element, const double *fills)
{
    PgkmVector vector;
    PgkmRowFault fault;
    const bool opened = open_array(array, &vector, &fault);

    if (!opened && fault.kind == PGKM_ROW_NULL)
        return NULL;
    if (!opened && (fault.kind != PGKM_ROW_NULL_ELEMENT || fills == NULL))
        pgkm_raise_row_fault(&fault, NULL, noun);

    double *const row = (double *)palloc(d * sizeof(double));

    if (!(opened ? pgkm_copy_row(&vector, PGKM_FLOAT64, d, row, &fault)
                 : pgkm_read_incomplete(array.value, vector.element_type, d, fills, row, &fault)))
        pgkm_raise_row_fault(&fault, NULL, noun);
    if (element != NULL)
        *element = pgkm_element_of(vector.element_type);
    return row;
}

double pgkm_weight_argument(FunctionCallInfo fcinfo, int number)
{
    if (PG_NARGS() <= number)
        return 1.0;
    if (PG_ARGISNULL(number))
        return 0.0;

    const double weight = PG_GETARG_FLOAT8(number);

    if (!(weight >= 0.0 && std::isfinite(weight)))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("weight must be a finite number of at least 0")));
    if (weight > PGKM_MAX_MAGNITUDE)
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("weight is out of range: its magnitude exceeds 2^500")));
    return weight;
}

bool pgkm_row_arguments(FunctionCallInfo fcinfo, int features, int weight_number, PgkmVector *vector, double *weight)
{
    NullableDatum array = fcinfo->args[features];
    PgkmRowFault fault;
    const bool opened = open_argument(fcinfo->flinfo, features, &array, vector, &fault);

    if (!opened && fault.kind == PGKM_ROW_NULL)
        return false;
    *weight = pgkm_weight_argument(fcinfo, weight_number);
    if (*weight == 0.0)
        return false;
    if (!opened)
        pgkm_raise_row_fault(&fault, NULL);
    return true;
}

void pgkm_error_lies_in(const char *text)
{
    const int position = geterrposition();

    if (position <= 0)
        return;
    errposition(0);
    internalerrposition(position);
    internalerrquery(text);
}
