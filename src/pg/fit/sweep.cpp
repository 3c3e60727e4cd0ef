/*
 * sweep.cpp - what sweeps have in common: a range of k, and the rows.
 */
#include "pg/fit/sweep.h"

/* The arguments k_min, which is returned, and k_max. */
static int64 read_range(FunctionCallInfo fcinfo, int64 *k_max)
{
    const int64 k_min = pgkm_k_argument(fcinfo, SWEEP_K_MIN, "k_min");

    *k_max = pgkm_k_argument(fcinfo, SWEEP_K_MAX, "k_max");
    if (*k_max < k_min)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("k_max must be at least k_min, which is %lld, not %lld", (long long)k_min, (long long)*k_max)));
    return k_min;
}

int64 sweep_sample_argument(FunctionCallInfo fcinfo, int number)
{
    if (PG_ARGISNULL(number))
        return -1;
    if (PG_GETARG_INT32(number) < 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("sample must be at least 0")));
    return PG_GETARG_INT32(number);
}

TableCall *sweep_begin(const FitKind *kind, FunctionCallInfo fcinfo, const char *function, int64 silhouette_rows,
                       int64 *count)
{
    TableCall *const call = fit_call_create(kind, table_arguments(fcinfo, SWEEP_OPTIONS), 0, function, kind->of_one_k);
    PgkmRequest *const request = &call->request;
    const bool many = kind->algorithm != PGKM_KMEANS;
    int64 k_max;

    request->k = read_range(fcinfo, &k_max);
    request->k_last = k_max;
    request->silhouette_rows = silhouette_rows;
    table_call_find(call, TABLE_READ);

    TableWish wish = fit_wish(kind, call);

    wish.may_stream = wish.may_stream && !many;
    table_call_read(call, function, wish);

    const int64 n = call->n;

    *count = 0;
    if (n == 0)
        return call;
    request->k_last = Max(request->k, Min(k_max, n));
    if (request->k_last < k_max)
        ereport(NOTICE, (errmsg_plural("the sweep ends at k = %lld: there is %lld row",
                                       "the sweep ends at k = %lld: there are %lld rows", n, (long long)request->k_last,
                                       (long long)n)));
    *count = request->k_last - request->k + 1;
    if (many) {
        table_call_keep_rows(call);
    } else {
        kind->check_size(request, request->k_last, n);
        table_call_fit(call);
    }
    return call;
}
