/*
 * fit.cpp - the way of a table function from its arguments to a model.
 */
#include "pg/fit/fit.h"

#include <algorithm>
#include <climits>

int64 pgkm_check_k(const NullableDatum *k, const char *name)
{
    if (k->isnull)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must not be null", name)));

    const int64 value = DatumGetInt64(k->value);

    if (value < 1 || value > INT_MAX)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must be between 1 and %d", name, INT_MAX)));
    return value;
}

int64 pgkm_k_argument(FunctionCallInfo fcinfo, int number, const char *name)
{
    return pgkm_check_k(&fcinfo->args[number], name);
}

static PgkmGiven given_units(const double *values, int32 d, bool was_standardized, double usual, MemoryContext context)
{
    if (values == NULL && was_standardized) {
        double *const made =
            (double *)MemoryContextAlloc(context == NULL ? CurrentMemoryContext : context, d * sizeof(double));

        values = std::fill_n(made, d, usual) - d;
    }
    return values == NULL ? PgkmGiven{NULL, 0, {0}} : PgkmGiven{values, 1, {d}};
}

void fit_give_units(PgkmGivenModel *model, const double *center, const double *scale, bool was_standardized,
                    MemoryContext context)
{
    const int32 d = model->centroids.extent[1];

    model->center = given_units(center, d, was_standardized, 0, context);
    model->scale = given_units(scale, d, was_standardized, 1, context);
}

void pgkm_check_range(const NullableDatum *k_min, const NullableDatum *k_max, int64 *first, int64 *last)
{
    *first = pgkm_check_k(k_min, "k_min");
    *last = pgkm_check_k(k_max, "k_max");
    if (*last < *first)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("k_max must be at least k_min, which is %lld, not %lld", (long long)*first, (long long)*last)));
}

TableCall *fit_call_create(const FitKind *kind, const TableArguments &arguments, int64 k, const char *function,
                           const char *const *unusable)
{
    TableCall *const call = table_call_create(arguments);
    PgkmAnyOptions *const options = fit_options(&call->request);
    NullableDatum fields[PGKM_MOST_FIELDS];

    call->request.algorithm = kind->algorithm;
    call->request.k = k;
    pgkm_options_open(kind->options, &arguments.options, fields);
    pgkm_options_fields(kind->options, fields, call->context, options);
    for (; unusable != NULL && *unusable != NULL; ++unusable)
        pgkm_options_refuse(kind->options, options, *unusable, function);
    if (kind->note_options != NULL)
        kind->note_options(call, fields);
    return call;
}

TableCall *fit_call_of_arguments(const FitKind *kind, FunctionCallInfo fcinfo)
{
    if (!kind->takes_k)
        return fit_call_create(kind, table_arguments(fcinfo, TABLE_K), 0);

    const int64 k = pgkm_k_argument(fcinfo, TABLE_K);
    TableCall *const call = fit_call_create(kind, table_arguments(fcinfo, TABLE_OPTIONS), k);

    call->takes_bits = kind->algorithm == PGKM_KMEANS && call->request.kmeans.metric == PGKM_HAMMING;
    return call;
}

TableWish fit_wish(const FitKind *kind, const TableCall *call)
{
    const char *const kept_by = kind->needs_all_rows == NULL ? NULL : kind->needs_all_rows(&call->request);

    return {.on_nodes = kept_by == NULL, .may_stream = kept_by == NULL, .kept_by = kept_by};
}

const PgkmResult *fit_rows(const FitKind *kind, TableCall *call)
{
    if (call->n == 0)
        return NULL;
    if (kind->check_size != NULL)
        kind->check_size(&call->request, call->request.k, call->n);
    return table_call_fit(call);
}

Datum fit_return(const FitKind *kind, TableCall *call, FunctionCallInfo fcinfo, const PgkmResult *result,
                 TupleDesc tupdesc)
{
    const Datum model = result == NULL ? (Datum)0 : kind->model(result, &call->request, call, tupdesc);

    return table_call_return(call, fcinfo, model);
}

/*
 * NAME(relation, features [, k], options, ...) -> model
 *
 *   rows := SELECT features, weight FROM relation, as the caller; or those that are loaded
 *   return the model of the rows that have features; NULL when there are none
 */
Datum fit_table(const FitKind *kind, FunctionCallInfo fcinfo, const char *function)
{
    const TupleDesc tupdesc = kind->tupdesc(fcinfo);
    TableCall *const call = fit_call_of_arguments(kind, fcinfo);

    table_call_find(call, TABLE_READ);
    table_call_read(call, function, fit_wish(kind, call));
    return fit_return(kind, call, fcinfo, fit_rows(kind, call), tupdesc);
}
