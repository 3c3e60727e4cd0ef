/*
 * table_labels.cpp - kmeans_labels: the cluster of each row of a table.
 */
#include "pg/compat.h"
#include "pg/table_call.h"

#include <cmath>

extern "C" {
#include "access/tupmacs.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(pgkm_table_labels);
}

enum LabelColumn { CTID, CLUSTER_ID, DISTANCE, TABLEOID, LABEL_COLUMNS };

/* What kmeans_distance returns too: Euclidean, or 1 - cosine (half the squared distance of unit vectors). */
static double distance_of(double squared, PgkmMetric metric)
{
    return metric == PGKM_COSINE ? squared / 2 : std::sqrt(squared);
}

/*
 * A row without NULLs, made once: of the next one only the values are written, at their places,
 * which are the same for all. Forming each anew would be most of the work.
 */
struct LabelTuple {
    MinimalTuple    tuple;
    char           *places[LABEL_COLUMNS];
    TupleTableSlot *slot;
};

static void make_label_tuple(LabelTuple *target, TupleDesc tupdesc)
{
    ItemPointerData nowhere;
    Datum           values[LABEL_COLUMNS] = {PointerGetDatum(&nowhere), 0, 0, 0};
    bool            nulls[LABEL_COLUMNS] = {false};
    Size            offset = 0;

    ItemPointerSetInvalid(&nowhere);
    values[DISTANCE] = Float8GetDatum(0.0);
    target->tuple = pgkm_form_minimal_tuple(tupdesc, values, nulls);

    char *const data = (char *) target->tuple + target->tuple->t_hoff - MINIMAL_TUPLE_OFFSET;

    for (int i = 0; i < LABEL_COLUMNS; ++i) {
        const Form_pg_attribute attribute = TupleDescAttr(tupdesc, i);

        offset = att_align_nominal(offset, attribute->attalign);
        target->places[i] = data + offset;
        offset += attribute->attlen;
    }
    target->slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsMinimalTuple);
    ExecStoreMinimalTuple(target->tuple, target->slot, false);
}

static void put_label(LabelTuple *label, const TableOrigin *origin, int32 cluster, double distance,
                      Tuplestorestate *store)
{
    memcpy(label->places[CTID], &origin->ctid, sizeof origin->ctid);
    memcpy(label->places[CLUSTER_ID], &cluster, sizeof cluster);
    memcpy(label->places[DISTANCE], &distance, sizeof distance);
    memcpy(label->places[TABLEOID], &origin->table, sizeof origin->table);
    tuplestore_puttupleslot(store, label->slot);
}

/* A row that takes no part. */
static void put_unlabelled(TableOrigin *origin, ReturnSetInfo *target)
{
    Datum values[LABEL_COLUMNS] = {PointerGetDatum(&origin->ctid), 0, 0, ObjectIdGetDatum(origin->table)};
    bool  nulls[LABEL_COLUMNS] = {false, true, true, false};

    tuplestore_putvalues(target->setResult, target->setDesc, values, nulls);
}

static void put_labels(const TableCall *call, const TableRows *rows, const PgkmFitResult *result,
                       ReturnSetInfo *target)
{
    TableCursor cursor;
    LabelTuple  label;

    make_label_tuple(&label, target->setDesc);
    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, rows)) {
        TableOrigin origin = table_rows_origin(rows, cursor.position);

        if (!OidIsValid(origin.table))
            origin.table = call->relation.id;
        if (cursor.used < 0)
            put_unlabelled(&origin, target);
        else
            put_label(&label, &origin, result->labels[cursor.used],
                      distance_of(result->distances[cursor.used], call->options.metric), target->setResult);
        if ((cursor.position & 0xfff) == 0)
            CHECK_FOR_INTERRUPTS();
    }
    ExecDropSingleTupleTableSlot(label.slot);
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
    TableQuery query;

    InitMaterializedSRF(fcinfo, 0);
    table_call_find(call, fcinfo, TABLE_LOCATE, TABLE_WEIGHT, TABLE_LOADED);

    memset(&query, 0, sizeof query);
    query.need_ctid = true;

    TableRows *rows = table_call_read(call, "kmeans_labels", &query);

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
