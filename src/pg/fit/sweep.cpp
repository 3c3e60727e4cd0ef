/*
 * sweep.cpp - what sweeps have in common: a range of k, or a list, and the rows.
 */
#include "pg/fit/sweep.h"

#include <algorithm>

extern "C" {
#include "utils/array.h"
}

/* The argument ks, which is the last, in ascending order; in the current context, as long as the call. */
static void read_list(FunctionCallInfo fcinfo, PgkmRequest *request)
{
    ArrayType *const array = PG_GETARG_ARRAYTYPE_P_COPY(PG_NARGS() - 1);
    const int count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
    int64 *const list = (int64 *)ARR_DATA_PTR(array);

    if (!PG_ARGISNULL(SWEEP_K_MIN) || !PG_ARGISNULL(SWEEP_K_MAX))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("k_min and k_max must be null where ks is given")));
    if (count == 0 || array_contains_nulls(array))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("ks must hold at least one number of clusters, and no nulls")));
    for (int i = 0; i < count; ++i) {
        const NullableDatum k = {Int64GetDatum(list[i]), false};

        pgkm_check_k(&k, "each k of ks");
    }
    std::sort(list, list + count);
    request->sweep_k = list;
    request->n_sweep = std::unique(list, list + count) - list;
    request->k = list[0];
    request->k_last = list[request->n_sweep - 1];
}

/* The k of the request, from the arguments k_min and k_max, or ks. */
static void read_range(FunctionCallInfo fcinfo, PgkmRequest *request)
{
    int64 first, last;

    if (!PG_ARGISNULL(PG_NARGS() - 1))
        return read_list(fcinfo, request);
    pgkm_check_range(&fcinfo->args[SWEEP_K_MIN], &fcinfo->args[SWEEP_K_MAX], &first, &last);
    request->k = first;
    request->k_last = last;
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

    read_range(fcinfo, request);
    request->silhouette_rows = silhouette_rows;
    table_call_find(call, TABLE_READ);

    TableWish wish = fit_wish(kind, call);

    wish.may_stream = wish.may_stream && !many;
    table_call_read(call, function, wish);

    const int64 n = call->n, k_max = request->k_last;

    *count = 0;
    if (n == 0)
        return call;
    request->k_last = Max(request->k, Min(k_max, n));
    *count = request->k_last - request->k + 1;
    if (request->sweep_k != NULL) {
        *count = request->n_sweep =
            std::upper_bound(request->sweep_k, request->sweep_k + request->n_sweep, request->k_last) - request->sweep_k;
        request->k_last = request->sweep_k[*count - 1];
    }
    if (request->k_last < k_max)
        ereport(NOTICE, (errmsg_plural("the sweep ends at k = %lld: there is %lld row",
                                       "the sweep ends at k = %lld: there are %lld rows", n, (long long)request->k_last,
                                       (long long)n)));
    if (many) {
        table_call_keep_rows(call);
    } else {
        kind->check_size(request, request->k_last, n);
        table_call_fit(call);
    }
    return call;
}
