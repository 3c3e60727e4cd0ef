/*
 * table.cpp - gmm_fit, gmm_labels and gmm_cluster.
 */
#include "pg/fit/labels.h"
#include "pg/gmm/gmm.h"
#include "pg/table/update.h"

extern "C" {
PG_FUNCTION_INFO_V1(pgkm_gmm_table_fit);
PG_FUNCTION_INFO_V1(pgkm_gmm_table_labels);
PG_FUNCTION_INFO_V1(pgkm_gmm_table_cluster);
}

Datum pgkm_gmm_table_fit(PG_FUNCTION_ARGS)
{
    return fit_table(&gmm_kind, fcinfo, "gmm_fit");
}

Datum pgkm_gmm_table_labels(PG_FUNCTION_ARGS)
{
    return fit_labels(&gmm_kind, fcinfo, "gmm_labels");
}

/*
 * gmm_cluster(relation, features, k, options, ..., label_column, overwrite) -> gmm_model
 *
 *   as kmeans_cluster (pg/kmeans/cluster.cpp), with the component of the largest posterior as label
 */
Datum pgkm_gmm_table_cluster(PG_FUNCTION_ARGS)
{
    const TupleDesc tupdesc = pgkm_gmm_model_tupdesc(fcinfo);
    TableCall *const call = fit_call_of_arguments(&gmm_kind, fcinfo);
    LabelTarget target;

    label_target_arguments(&target, fcinfo, call->arguments.next, "component_id");
    call->arguments.label = target.name;
    call->request.want_labels = 1;
    table_read_for_update(call, &target, {}, "gmm_cluster");

    const PgkmResult *const result = fit_rows(&gmm_kind, call);

    pgkm_progress_writing();
    table_write_labels(call, result, &target, fcinfo->flinfo->fn_oid);
    return fit_return(&gmm_kind, call, fcinfo, result, tupdesc);
}
