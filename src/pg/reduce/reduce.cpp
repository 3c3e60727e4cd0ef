/*
 * reduce.cpp - reduce, reduce_many and reduction_source: the functions that take a reduction once.
 */
#include "pg/reduce/call.h"
#include "pg/reduce/definition.h"

#include <cmath>

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"

PG_FUNCTION_INFO_V1(pgkm_reduce);
PG_FUNCTION_INFO_V1(pgkm_reduce_many);
PG_FUNCTION_INFO_V1(pgkm_source_of_reduction);
}

/* Of reduce, behind the relation. */
enum ReduceArgument {
    REDUCE_NAME = TABLE_RELATION + 1,
    REDUCE_PARAMS,
    REDUCE_INDEX, /* the other texts follow */
    REDUCE_LET = REDUCE_INDEX + REDUCE_TEXTS,
    REDUCE_EXACT,
    REDUCE_LAYOUT, /* from here on of reduction_source */
    REDUCE_CAPABILITY
};

/* Of reduce_many. */
enum ManyArgument { MANY_OBJECTS = TABLE_RELATION + 1, MANY_PARAMS, MANY_LET, MANY_EXACT };

/* A NaN stands for nothing: no row came to the cell. */
static Datum values_of_cell(const double *values, int64 width)
{
    bool whole = true;

    for (int64 i = 0; i < width; ++i)
        whole = whole && !std::isnan(values[i]);
    if (whole)
        return pgkm_array(values, {(int32)width});

    Datum *const elements = (Datum *)palloc(width * sizeof(Datum));
    bool *const nulls = (bool *)palloc(width * sizeof(bool));
    int extent = (int)width;
    int bound = 1;

    for (int64 i = 0; i < width; ++i) {
        elements[i] = Float8GetDatum(values[i]);
        nulls[i] = std::isnan(values[i]);
    }
    ArrayType *const array = construct_md_array(elements, nulls, 1, &extent, &bound, FLOAT8OID, sizeof(double),
                                                FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);

    pfree(elements);
    pfree(nulls);
    return PointerGetDatum(array);
}

/* The rows of the result, with the object's name where there are several. */
static void put_cells(ReturnSetInfo *result, const ReduceCall *call, const ReduceProgram *program,
                      const PgkmReduced *reduced)
{
    const double *values = reduced->values;

    for (int i = 0; i < program->n_objects; ++i) {
        const int64 width = reduce_object_width(program, i);
        const char *const name = call->objects->objects[i].name;

        if (width > (int64)(MaxAllocSize / sizeof(double)))
            ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                            errmsg("a cell of a reduction has too many values: %lld", (long long)width)));

        for (int64 cell = 0; cell < program->objects[i].cells; ++cell, values += width) {
            const Datum value = values_of_cell(values, width);

            CHECK_FOR_INTERRUPTS();
            if (name == NULL)
                pgkm_result_put(result, {cell, value});
            else
                pgkm_result_put(result, {name, cell, value});
            pfree(DatumGetPointer(value));
        }
    }
}

static void run_once(ReduceCall *call, FunctionCallInfo fcinfo, ReturnSetInfo *result)
{
    call->call = table_call_create();
    call->once = true;
    if (reduce_call_read(call, fcinfo)) {
        const ReduceProgram *const program = call->program != NULL ? call->program : reduce_call_lower(call);

        put_cells(result, call, program, reduce_call_run(call, program, call->call->context, &call->call->job));
    }
    table_call_destroy(call->call);
}

static bool exact_argument(FunctionCallInfo fcinfo, int number)
{
    return !PG_ARGISNULL(number) && PG_GETARG_BOOL(number);
}

static ReduceParameters *params_argument(FunctionCallInfo fcinfo, int number)
{
    return reduce_parameters_read(PG_ARGISNULL(number) ? NULL : PG_GETARG_JSONB_P(number));
}

/* The arguments of reduce but the relation. */
static void read_arguments(ReduceCall *call, FunctionCallInfo fcinfo, const char *function)
{
    memset(call, 0, sizeof *call);
    call->function = function;
    call->exact = exact_argument(fcinfo, REDUCE_EXACT);
    call->parameters = params_argument(fcinfo, REDUCE_PARAMS);
    call->objects = reduce_objects_of_arguments(fcinfo, REDUCE_INDEX);
    if (PG_ARGISNULL(REDUCE_NAME))
        return;
    if (call->objects->end > 0 || !PG_ARGISNULL(REDUCE_EXACT))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("a reduction is given by its name or by its texts, not by both")));
    call->objects = reduction_find(fcinfo, PG_GETARG_TEXT_PP(REDUCE_NAME), &call->exact);
}

/*
 * reduce(relation, name, params, index, value, cells, op, filter, key, let, exact) -> setof (cell, value)
 *
 *   rows := SELECT the columns that the texts name FROM relation, as the caller
 *   for each row where filter is true: R[index] := R[index] op value
 *   return R. The texts are those given, or those that are kept under the name
 */
Datum pgkm_reduce(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = pgkm_result_begin(fcinfo);
    ReduceCall call;

    read_arguments(&call, fcinfo, "reduce");
    run_once(&call, fcinfo, result);
    return (Datum)0;
}

/*
 * reduce_many(relation, objects, params, let, exact) -> setof (object, cell, value)
 *
 * The same with several objects in one pass.
 */
Datum pgkm_reduce_many(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = pgkm_result_begin(fcinfo);
    ReduceCall call;

    memset(&call, 0, sizeof call);
    call.function = "reduce_many";
    call.exact = exact_argument(fcinfo, MANY_EXACT);
    call.parameters = params_argument(fcinfo, MANY_PARAMS);
    if (PG_ARGISNULL(MANY_OBJECTS))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("objects must not be null")));
    call.objects = reduce_objects_of_jsonb(PG_GETARG_JSONB_P(MANY_OBJECTS));
    if (!PG_ARGISNULL(MANY_LET))
        reduce_objects_let(call.objects, PG_GETARG_JSONB_P(MANY_LET));
    run_once(&call, fcinfo, result);
    return (Datum)0;
}

/* The engine's text as one of SQL; the engine's is freed. */
static Datum take_text(char *source)
{
    const Size size = strlen(source);
    text *const copy = (text *)palloc_extended(VARHDRSZ + size, MCXT_ALLOC_NO_OOM);

    if (copy != NULL) {
        SET_VARSIZE(copy, VARHDRSZ + size);
        memcpy(VARDATA(copy), source, size);
    }
    pgkm_text_free(source);
    if (copy == NULL)
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
    return PointerGetDatum(copy);
}

/*
 * reduction_source(relation, ... as of reduce, layout, capability) -> text
 *
 * The CUDA C++ that reduce would run on a device of this compute capability. The rows are read, as they say how long
 * arrays are; NULL when there are none.
 */
Datum pgkm_source_of_reduction(PG_FUNCTION_ARGS)
{
    const char *const layout = PG_ARGISNULL(REDUCE_LAYOUT) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(REDUCE_LAYOUT));
    const int32 capability = PG_ARGISNULL(REDUCE_CAPABILITY) ? 90 : PG_GETARG_INT32(REDUCE_CAPABILITY);
    ReduceCall call;
    Datum source = (Datum)0;

    if (capability < 10 || capability > 999)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("capability must be from 10 to 999, as 90 for compute capability 9.0")));
    read_arguments(&call, fcinfo, "reduction_source");
    call.call = table_call_create();

    const bool any = reduce_call_read(&call, fcinfo);

    if (any) {
        const PgkmReduction reduction = reduce_program_of(reduce_call_lower(&call), call.exact);
        const PgkmRows *const rows = call.rows->used;
        PgkmError error;
        char *const found =
            pgkm_reduction_source(&reduction, rows->element, rows->d, rows->n, layout, capability, &error);

        if (found == NULL)
            pgkm_raise(&error);
        source = take_text(found);
    }
    table_call_destroy(call.call);
    if (!any)
        PG_RETURN_NULL();
    PG_RETURN_DATUM(source);
}
