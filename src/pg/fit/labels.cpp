/*
 * labels.cpp - kmeans_labels and gmm_labels: the cluster of each row of a table.
 */
#include "pg/fit/labels.h"

#include "pg/values/composite.h"

extern "C" {
#include "miscadmin.h"
}

void table_labels_fit(TableLabels *labels, const FitKind *kind, FunctionCallInfo fcinfo, const char *function)
{
    TableCall *const call = fit_call_of_arguments(kind, fcinfo);

    table_call_find(call, TABLE_LOCATE);
    labels->call = call;
    labels->rows = table_call_read(call, function, {.need_ctid = true});
    table_call_check_places(call);
    call->request.want_labels = 1;
    call->request.want_distances = kind->algorithm == PGKM_KMEANS;
    labels->result = fit_rows(kind, call);
}

void table_labels_get(const TableLabels *labels, const TableCursor *cursor, TableLabel *label)
{
    const TableRows *const rows = labels->rows;
    const PgkmResult *const result = labels->result;

    label->ctid = &rows->ctids[cursor->position];
    label->table = table_rows_table(rows, cursor->position);
    label->clustered = cursor->used >= 0;
    if (label->clustered)
        label->cluster = result->labels[cursor->used];
    if (label->clustered && result->distances != NULL)
        label->distance = fit_distance(result->distances[cursor->used], labels->call->request.kmeans.metric);
}

/*
 * kmeans_labels(relation, features, k, options, ...) -> setof (row_ctid, cluster_id, distance, row_table)
 * gmm_labels(relation, features, k, options, ...) -> setof (row_ctid, component_id, row_table)
 *
 *   rows := SELECT features, weight, ctid, tableoid FROM relation, as the caller; or those that are loaded
 *   return each row's cluster, in the order of the rows; NULL for a row that takes no part
 */
Datum fit_labels(const FitKind *kind, FunctionCallInfo fcinfo, const char *function)
{
    ReturnSetInfo *const target = pgkm_result_begin(fcinfo);
    TableLabels labels;
    TableCursor cursor;
    TableLabel label;

    table_labels_fit(&labels, kind, fcinfo, function);
    pgkm_progress_writing();
    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, labels.rows)) {
        table_labels_get(&labels, &cursor, &label);

        const PgkmValue cluster = pgkm_value_if(label.clustered, label.cluster);

        if (kind->algorithm == PGKM_KMEANS)
            pgkm_result_put(target, {PointerGetDatum(label.ctid), cluster,
                                     pgkm_value_if(label.clustered, label.distance), label.table});
        else
            pgkm_result_put(target, {PointerGetDatum(label.ctid), cluster, label.table});
        CHECK_FOR_INTERRUPTS();
    }
    table_call_destroy(labels.call);
    return (Datum)0;
}
