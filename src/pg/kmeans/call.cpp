/*
 * call.cpp - options and fit of the k-means functions over whole tables.
 */
#include "pg/kmeans/call.h"

#include "pg/kmeans/model.h"
#include "pg/kmeans/options.h"
#include "pg/scan/scan.h"
#include "pg/table/loaded.h"

KmeansCall *kmeans_call_create(const NullableDatum *options)
{
    KmeansCall *const call = static_cast<KmeansCall *>(table_call_create(sizeof(KmeansCall)));

    pgkm_options_fields(options, call->context, &call->options);
    /* Standardized rows are others: what is zero then the engine alone sees. */
    call->need_direction = call->options.metric == PGKM_COSINE && call->options.standardize == 0;
    return call;
}

KmeansCall *kmeans_call_of_arguments(FunctionCallInfo fcinfo)
{
    const int64       k = pgkm_k_argument(fcinfo, TABLE_K);
    KmeansCall *const call = kmeans_call_create(fcinfo->args + TABLE_OPTIONS);

    call->k = k;
    return call;
}

void kmeans_call_request(const KmeansCall *call, const TableRows *rows, PgkmFitRequest *request)
{
    memset(request, 0, sizeof *request);
    request->points = pgkm_rows_points(rows->used);
    request->segment = pgkm_rows_segment(rows->used);
    request->k = call->k;
    request->options = call->options;
    request->resident = call->loaded == NULL ? NULL : call->loaded->resident;
}

static void end_reading(void *rows)
{
    scan_dismiss((TableRows *) rows);
}

const PgkmFitResult *kmeans_call_fit(KmeansCall *call, TableRows *rows, bool want_labels, bool want_distances)
{
    const PgkmMeanwhile meanwhile = {end_reading, rows};
    PgkmFitRequest      request;

    if (table_rows_used(rows) == 0) {
        scan_dismiss(rows);
        return NULL;
    }
    pgkm_model_check_size(call->k, rows->used->n, rows->used->d);
    kmeans_call_request(call, rows, &request);
    request.want_labels = want_labels;
    request.want_distances = want_distances;

    const PgkmFitResult *result = pgkm_run_fit(&request, call->context, &call->job, &meanwhile);

    pgkm_warn_clusters(result, call->k);
    return result;
}
