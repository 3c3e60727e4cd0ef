/*
 * cluster.cpp - kmeans_cluster: labels into a column of the table itself.
 */
#include "pg/kmeans/call.h"

#include "pg/kmeans/model.h"
#include "pg/table/update.h"

extern "C" {
PG_FUNCTION_INFO_V1(pgkm_table_cluster);
}

/*
 * kmeans_cluster(relation, features, k, ..., label_column, overwrite) -> setof (cluster_id, centroid, size, within_ss)
 *
 *   LOCK TABLE relation IN SHARE ROW EXCLUSIVE MODE        -- all as the caller
 *   rows := SELECT features, weight, label_column, ctid, tableoid FROM relation
 *   fit
 *   if label_column is missing: ALTER TABLE relation ADD COLUMN label_column integer; COMMENT
 *   UPDATE the rows whose label changes
 *   return the centroids
 */
Datum pgkm_table_cluster(PG_FUNCTION_ARGS)
{
    const Oid id = table_call_relation(fcinfo);
    TableCall *call = kmeans_call_of_arguments(fcinfo);
    LabelTarget target;

    label_target_arguments(&target, fcinfo, KMEANS_LABEL, "cluster_id");

    ReturnSetInfo *const output = pgkm_result_begin(fcinfo);

    TableRows *rows = table_read_for_update(call, fcinfo, id, &target, KMEANS_WEIGHT, "kmeans_cluster");
    const PgkmResult *result = kmeans_call_fit(call, rows, true, false);

    pgkm_progress_writing();
    table_write_labels(call, rows, result == NULL ? NULL : result->labels, &target, fcinfo->flinfo->fn_oid);
    if (result != NULL) {
        PgkmModel model;

        pgkm_model_of_result(result, call->request.kmeans.metric, &model);
        pgkm_put_centroids(output, &model);
    }
    table_call_destroy(call);
    return (Datum)0;
}
