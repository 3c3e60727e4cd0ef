/*
 * table_fit.cpp - kmeans_fit and kmeans_labels: a table by name, clustered.
 */
#include "pg/table_call.h"

#include <cmath>

#include "pg/model.h"

extern "C" {
#include "miscadmin.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(pgkm_table_fit);
PG_FUNCTION_INFO_V1(pgkm_table_labels);
}

static TableRows *read_rows(TableCall *call, const char *function, bool need_ctid)
{
    TableQuery query;

    memset(&query, 0, sizeof query);
    query.need_ctid = need_ctid;
    return table_call_read(call, function, &query);
}

/*
 * kmeans_fit(relation, features, k, ...) -> kmeans_model
 *
 *   rows := SELECT features, weight FROM relation, as the caller; or those that are loaded
 *   return the model of the rows that have features; NULL when there are none
 */
Datum pgkm_table_fit(PG_FUNCTION_ARGS)
{
    TupleDesc  tupdesc = pgkm_model_tupdesc(fcinfo);
    TableCall  *call = table_call_create(fcinfo);
    Datum       model = (Datum) 0;

    table_call_find(call, fcinfo, TABLE_READ, TABLE_WEIGHT, TABLE_LOADED);

    const PgkmFitResult *result = table_call_fit(call, read_rows(call, "kmeans_fit", false), false);

    if (result != NULL)
        model = pgkm_model_build(result, &call->options, tupdesc);
    const bool isnull = result == NULL;
    table_call_destroy(call);
    if (isnull)
        PG_RETURN_NULL();
    PG_RETURN_DATUM(model);
}

/* What kmeans_distance returns too: Euclidean, or 1 - cosine (half the squared distance of unit vectors). */
static double distance_of(double squared, PgkmMetric metric)
{
    return metric == PGKM_COSINE ? squared / 2 : std::sqrt(squared);
}

static void put_labels(const TableCall *call, const TableRows *rows, const PgkmFitResult *result,
                       ReturnSetInfo *target)
{
    enum { CTID, CLUSTER_ID, DISTANCE, TABLEOID, COUNT };
    TableCursor cursor;

    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, rows)) {
        TableOrigin origin = table_rows_origin(rows, cursor.position);
        Datum       values[COUNT] = {0};
        bool        nulls[COUNT] = {false};

        values[CTID] = PointerGetDatum(&origin.ctid);
        values[TABLEOID] = ObjectIdGetDatum(OidIsValid(origin.table) ? origin.table : call->relation.id);
        nulls[CLUSTER_ID] = nulls[DISTANCE] = cursor.used < 0;
        if (cursor.used >= 0) {
            values[CLUSTER_ID] = Int32GetDatum(result->labels[cursor.used]);
            values[DISTANCE] = Float8GetDatum(distance_of(result->distances[cursor.used], call->options.metric));
        }
        tuplestore_putvalues(target->setResult, target->setDesc, values, nulls);
        if ((cursor.position & 0xfff) == 0)
            CHECK_FOR_INTERRUPTS();
    }
}

/*
 * kmeans_labels(relation, features, k, ...) -> setof (ctid, cluster_id, distance, tableoid)
 *
 *   rows := SELECT features, weight, ctid, tableoid FROM relation, as the caller; or those that are loaded
 *   return each row's cluster, in the order of the rows; NULL for a row without features
 */
Datum pgkm_table_labels(PG_FUNCTION_ARGS)
{
    TableCall *call = table_call_create(fcinfo);

    InitMaterializedSRF(fcinfo, 0);
    table_call_find(call, fcinfo, TABLE_LOCATE, TABLE_WEIGHT, TABLE_LOADED);

    TableRows *rows = read_rows(call, "kmeans_labels", true);

    if (!rows->wants.ctid)
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("permission denied for table %s", call->relation.name),
                        errdetail("The rows were loaded without the right to read ctid.")));

    const PgkmFitResult *result = table_call_fit(call, rows, true);

    pgkm_progress_writing();
    put_labels(call, rows, result, (ReturnSetInfo *) fcinfo->resultinfo);
    table_call_destroy(call);
    return (Datum) 0;
}
