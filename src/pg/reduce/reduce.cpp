/*
 * reduce.cpp - kmeans_reduction, kmeans_reduce, kmeans_reduce_many and kmeans_reduce_source.
 */
#include "pg/reduce/call.h"

#include <cmath>

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"

PG_FUNCTION_INFO_V1(pgkm_reduction_define);
PG_FUNCTION_INFO_V1(pgkm_reduce);
PG_FUNCTION_INFO_V1(pgkm_reduce_many);
PG_FUNCTION_INFO_V1(pgkm_source_of_reduction);
}

/* Of kmeans_reduce and, from its texts on, of kmeans_reduction. */
enum ReduceArgument {
    REDUCE_VALUE = TABLE_RELATION + 1,
    REDUCE_PARAMS,
    REDUCE_INDEX,                                    /* the other texts, let and exact follow */
    REDUCE_LAYOUT = REDUCE_INDEX + REDUCE_TEXTS + 2, /* from here on of kmeans_reduce_source */
    REDUCE_CAPABILITY
};

/* Of kmeans_reduce_many. */
enum ManyArgument { MANY_OBJECTS = TABLE_RELATION + 1, MANY_PARAMS, MANY_LET, MANY_EXACT };

/* The cells of an object of so many values each, as rows, with its name if it has one. A NaN stands for nothing: no row
 * came to the cell. Returns where the values of the next object begin. */
static const double *put_cells(ReturnSetInfo *result, const char *name, int64 cells, int64 width, const double *values)
{
    if (width > (int64)(MaxAllocSize / sizeof(double)))
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("a cell of a reduction has too many values: %lld", (long long)width)));

    Datum *const elements = (Datum *)palloc(width * sizeof(Datum));
    bool *const nulls = (bool *)palloc(width * sizeof(bool));
    int extent = (int)width;
    int bound = 1;

    for (int64 cell = 0; cell < cells; ++cell, values += width) {
        CHECK_FOR_INTERRUPTS();
        for (int64 i = 0; i < width; ++i) {
            elements[i] = Float8GetDatum(values[i]);
            nulls[i] = std::isnan(values[i]);
        }

        const Datum value = PointerGetDatum(construct_md_array(elements, nulls, 1, &extent, &bound, FLOAT8OID,
                                                               sizeof(double), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));

        if (name == NULL)
            pgkm_result_put(result, {cell, value});
        else
            pgkm_result_put(result, {name, cell, value});
        pfree(DatumGetPointer(value));
    }
    return values;
}

/* Reduces the rows once, and returns the cells. */
static Datum run_once(ReduceCall *call, FunctionCallInfo fcinfo)
{
    ReturnSetInfo *const result = pgkm_result_begin(fcinfo);

    call->once = true;
    if (reduce_call_read(call, fcinfo)) {
        TableCall *const table = call->call;
        const PgkmReduction *const program = &call->program;
        const double *values = reduce_call_run(call, program, table->context, &table->job)->values;

        for (int i = 0; i < program->n_objects; ++i)
            values = put_cells(result, call->source.object_names[i], program->objects[i].cells,
                               pgkm_object_width(program, i), values);
    }
    table_call_destroy(call->call);
    return (Datum)0;
}

static void begin_call(ReduceCall *call, FunctionCallInfo fcinfo, const char *function, int params)
{
    memset(call, 0, sizeof *call);
    call->function = function;
    call->parameters = reduce_parameters_read(PG_ARGISNULL(params) ? NULL : PG_GETARG_JSONB_P(params));
}

/* The arguments of reduce: the reduction as a value, or by its texts. */
static void read_arguments(ReduceCall *call, FunctionCallInfo fcinfo, const char *function)
{
    begin_call(call, fcinfo, function, REDUCE_PARAMS);
    for (int i = REDUCE_INDEX; i < REDUCE_LAYOUT; ++i)
        if (!PG_ARGISNULL(REDUCE_VALUE) && !PG_ARGISNULL(i))
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("a reduction is given as a value or by its texts, not by both")));

    const Datum value =
        PG_ARGISNULL(REDUCE_VALUE) ? reduce_value_of_arguments(fcinfo, REDUCE_INDEX) : PG_GETARG_DATUM(REDUCE_VALUE);

    reduce_read_value(&call->source, DatumGetJsonbP(value));
}

/*
 * kmeans_reduction(index, value, cells, op, filter, key, let, exact) -> jsonb
 *
 * The reduction as a value, once its texts are checked as far as that goes without columns.
 */
Datum pgkm_reduction_define(PG_FUNCTION_ARGS)
{
    const Datum value = reduce_value_of_arguments(fcinfo, 0);
    ReduceSource source;

    reduce_read_value(&source, DatumGetJsonbP(value));
    PG_RETURN_DATUM(value);
}

/*
 * kmeans_reduce(relation, reduction, params, index, value, cells, op, filter, key, let, exact) -> setof (cell, value)
 *
 *   rows := SELECT the columns that the texts name FROM relation, as the caller
 *   for each row where filter is true: R[index] := R[index] op value
 *   return R. The texts are those given, or those of the reduction that kmeans_reduction made
 */
Datum pgkm_reduce(PG_FUNCTION_ARGS)
{
    ReduceCall call;

    read_arguments(&call, fcinfo, "kmeans_reduce");
    return run_once(&call, fcinfo);
}

/*
 * kmeans_reduce_many(relation, objects, params, let, exact) -> setof (object, cell, value)
 *
 * The same with several objects in one pass.
 */
Datum pgkm_reduce_many(PG_FUNCTION_ARGS)
{
    ReduceCall call;

    begin_call(&call, fcinfo, "kmeans_reduce_many", MANY_PARAMS);
    reduce_read_objects(&call.source, DatumGetJsonbP(pgkm_required(&fcinfo->args[MANY_OBJECTS], "objects")));
    if (!PG_ARGISNULL(MANY_LET))
        reduce_read_let(&call.source, &PG_GETARG_JSONB_P(MANY_LET)->root);
    call.source.exact = !PG_ARGISNULL(MANY_EXACT) && PG_GETARG_BOOL(MANY_EXACT);
    return run_once(&call, fcinfo);
}

/* The engine's text as one of SQL; the engine's is freed. */
static Datum take_text(char *source)
{
    Datum volatile copy = (Datum)0;

    PG_TRY();
    {
        copy = CStringGetTextDatum(source);
    }
    PG_CATCH();
    {
        pgkm_text_free(source);
        PG_RE_THROW();
    }
    PG_END_TRY();
    pgkm_text_free(source);
    return copy;
}

/*
 * kmeans_reduce_source(relation, ... as of kmeans_reduce, layout, capability) -> text
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
    read_arguments(&call, fcinfo, "kmeans_reduce_source");

    const bool any = reduce_call_read(&call, fcinfo);

    if (any) {
        const PgkmReduction reduction = reduce_call_program(&call);
        const PgkmRows *const rows = call.rows->used;
        PgkmError error;
        char *const found = pgkm_reduction_source(&reduction, rows->element, rows->d, layout, capability, &error);

        if (found == NULL)
            pgkm_raise(&error);
        source = take_text(found);
    }
    table_call_destroy(call.call);
    if (!any)
        PG_RETURN_NULL();
    PG_RETURN_DATUM(source);
}
