/*
 * labels.cpp - kmeans_labels: the cluster of each row of a table.
 */
#include "pg/kmeans/labels.h"

#include "pg/table/loaded.h"
#include "pg/values/composite.h"

extern "C" {
#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_labels);
}

void table_labels_fit(TableLabels *labels, FunctionCallInfo fcinfo)
{
    TableCall *const call = kmeans_call_of_arguments(fcinfo);
    TableQuery query = {};

    table_call_find(call, TABLE_LOCATE);
    query.need_ctid = true;

    TableRows *const rows = table_call_read(call, "kmeans_labels", &query);

    table_call_check_places(call, rows);
    labels->call = call;
    labels->rows = rows;
    labels->result = kmeans_call_fit(call, rows, true, true);
}

void table_labels_get(const TableLabels *labels, const TableCursor *cursor, TableLabel *label)
{
    const TableRows *const rows = labels->rows;

    label->ctid = &rows->ctids[cursor->position];
    label->table = rows->wants.table ? rows->tables[cursor->position] : labels->call->relation.id;
    label->clustered = cursor->used >= 0;
    if (label->clustered) {
        label->cluster = labels->result->labels[cursor->used];
        label->distance =
            pgkm_model_distance(labels->result->distances[cursor->used], labels->call->request.kmeans.metric);
    }
}

/*
 * A row without NULLs, made once: of the next one only the values are written, at their places,
 * which are the same for all. Forming each anew would be most of the work.
 */
struct LabelTuple {
    MinimalTuple tuple;
    char *places[LABEL_COLUMNS];
    TupleTableSlot *slot;
};

static void make_label_tuple(LabelTuple *target, TupleDesc tupdesc)
{
    ItemPointerData nowhere;
    Datum values[LABEL_COLUMNS] = {PointerGetDatum(&nowhere), 0, 0, 0};
    bool nulls[LABEL_COLUMNS] = {false};
    Size offset = 0;

    ItemPointerSetInvalid(&nowhere);
    values[LABEL_DISTANCE] = Float8GetDatum(0.0);
    target->tuple = pgkm_form_minimal_tuple(tupdesc, values, nulls);

    char *const data = (char *)target->tuple + target->tuple->t_hoff - MINIMAL_TUPLE_OFFSET;

    for (int i = 0; i < LABEL_COLUMNS; ++i) {
        const Form_pg_attribute attribute = TupleDescAttr(tupdesc, i);

        offset = att_align_nominal(offset, attribute->attalign);
        target->places[i] = data + offset;
        offset += attribute->attlen;
    }
    target->slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsMinimalTuple);
    ExecStoreMinimalTuple(target->tuple, target->slot, false);
}

static void put_label(LabelTuple *target, const TableLabel *label, Tuplestorestate *store)
{
    memcpy(target->places[LABEL_CTID], label->ctid, sizeof *label->ctid);
    memcpy(target->places[LABEL_CLUSTER_ID], &label->cluster, sizeof label->cluster);
    memcpy(target->places[LABEL_DISTANCE], &label->distance, sizeof label->distance);
    memcpy(target->places[LABEL_TABLE], &label->table, sizeof label->table);
    tuplestore_puttupleslot(store, target->slot);
}

static void put_labels(const TableLabels *labels, ReturnSetInfo *target)
{
    TableCursor cursor;
    LabelTuple tuple;
    TableLabel label;

    make_label_tuple(&tuple, target->setDesc);
    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, labels->rows)) {
        table_labels_get(labels, &cursor, &label);
        if (label.clustered)
            put_label(&tuple, &label, target->setResult);
        else
            pgkm_result_put(target, {PointerGetDatum(label.ctid), {}, {}, label.table});
        if ((cursor.position & 0xfff) == 0)
            CHECK_FOR_INTERRUPTS();
    }
    ExecDropSingleTupleTableSlot(tuple.slot);
}

/*
 * kmeans_labels(relation, features, k, ...) -> setof (row_ctid, cluster_id, distance, row_table)
 *
 *   rows := SELECT features, weight, ctid, tableoid FROM relation, as the caller; or those that are loaded
 *   return each row's cluster, in the order of the rows; NULL for a row without features
 */
Datum pgkm_kmeans_labels(PG_FUNCTION_ARGS)
{
    TableLabels labels;

    ReturnSetInfo *const target = pgkm_result_begin(fcinfo);

    table_labels_fit(&labels, fcinfo);
    pgkm_progress_writing();
    put_labels(&labels, target);
    table_call_destroy(labels.call);
    return (Datum)0;
}
