/*
 * quality.cpp - kmeans_quality and kmeans_silhouettes: how good the labels in a column of a table are.
 */
#include "pg/fit/sweep.h"
#include "pg/kmeans/model.h"

extern "C" {
#include "miscadmin.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_quality);
PG_FUNCTION_INFO_V1(pgkm_kmeans_silhouettes);
}

/* Behind relation and features. */
enum QualityArgument { QUALITY_LABEL = TABLE_FEATURES + 1, QUALITY_OPTIONS };

struct Judged {
    TableCall *call;
    TableRows *rows;
    int64 *labels;            /* of each cluster, ascending */
    const PgkmResult *result; /* NULL: no row has a label */
};

/* Reads the rows that have labels, and judges these; `each`: each row's silhouette is wanted. */
static void judge(Judged *judged, FunctionCallInfo fcinfo, const char *function, bool each)
{
    static const char *const unusable[] = {"init_centroids", "init_model", "max_radius", "batch_size", NULL};
    TableArguments arguments = table_arguments(fcinfo, QUALITY_OPTIONS);

    arguments.label = TextDatumGetCString(pgkm_required(&fcinfo->args[QUALITY_LABEL], "label_column"));

    TableCall *const call = fit_call_create(&kmeans_kind, arguments, 0, function, unusable);
    PgkmRequest *const request = &call->request;
    const int64 sample = each ? PG_INT64_MAX : sweep_sample_argument(fcinfo, arguments.next);
    const TableColumn *const label = table_call_find_label(call, each ? TABLE_LOCATE : TABLE_READ, arguments.label);

    *judged = {call, table_call_read(call, function, {.label = label, .labelled = true, .need_ctid = each}), NULL,
               NULL};
    if (call->n == 0)
        return;
    request->algorithm = PGKM_JUDGEMENT;
    request->silhouette_rows = sample;
    request->labels = table_rows_number_labels(judged->rows, PG_INT64_MIN, &judged->labels, &request->k);
    judged->result = table_call_fit(call);
}

/*
 * kmeans_quality(relation, features, label_column, options, ..., sample)
 *     -> setof (cluster_id, size, mass, inertia, silhouette, silhouette_error, davies_bouldin, calinski_harabasz)
 *
 *   rows := SELECT features, weight, label FROM relation WHERE label IS NOT NULL, as the caller
 *   return how good each cluster is, and all of them
 */
Datum pgkm_kmeans_quality(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const target = pgkm_result_begin(fcinfo);
    double mass = 0;
    Judged judged;

    judge(&judged, fcinfo, "kmeans_quality", false);

    const PgkmResult *const result = judged.result;

    for (int32 j = 0; result != NULL && j < result->k; ++j) {
        const PgkmClusterQuality *const one = &result->clusters[j];

        CHECK_FOR_INTERRUPTS();
        mass += one->mass;
        pgkm_result_put(target, {judged.labels[j], (int64)result->sizes[j], one->mass, result->within_ss[j],
                                 index_value(one->silhouette), index_value(one->silhouette_error),
                                 index_value(one->davies_bouldin), PgkmValue()});
    }
    if (result != NULL)
        pgkm_result_put(target,
                        {PgkmValue(), (int64)result->n, mass, result->inertia, index_value(result->quality.silhouette),
                         index_value(result->quality.silhouette_error), index_value(result->quality.davies_bouldin),
                         index_value(result->quality.calinski_harabasz)});
    table_call_destroy(judged.call);
    return (Datum)0;
}

/*
 * kmeans_silhouettes(relation, features, label_column, options, ...)
 *     -> setof (row_ctid, cluster_id, silhouette, nearest_id, row_table): of each row with a label, in their order
 */
Datum pgkm_kmeans_silhouettes(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const target = pgkm_result_begin(fcinfo);
    TableCursor cursor;
    Judged judged;

    judge(&judged, fcinfo, "kmeans_silhouettes", true);

    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, judged.rows)) {
        CHECK_FOR_INTERRUPTS();
        if (cursor.used < 0)
            continue;

        const PgkmRowSilhouette one = judged.result->silhouettes[cursor.used];
        const int32 cluster = judged.call->request.labels[cursor.used];

        pgkm_result_put(target,
                        {PointerGetDatum(&judged.rows->ctids[cursor.position]), judged.labels[cluster],
                         index_value(one.value), pgkm_value_if(one.nearest >= 0, judged.labels[Max(one.nearest, 0)]),
                         table_rows_table(judged.rows, cursor.position)});
    }
    table_call_destroy(judged.call);
    return (Datum)0;
}
