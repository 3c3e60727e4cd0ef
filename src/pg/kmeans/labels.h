/*
 * labels.h - the clusters of a table's rows.
 *
 * Two return them: the function kmeans_labels, which fills a tuple store, and the custom scan of
 * pg/plan/labels_scan.cpp, which takes the function's place in FROM and returns one row at a time.
 */
#ifndef PGKM_PG_KMEANS_LABELS_H
#define PGKM_PG_KMEANS_LABELS_H

#include "pg/kmeans/call.h"

/* The columns that kmeans_labels returns. */
enum LabelColumn { LABEL_CTID, LABEL_CLUSTER_ID, LABEL_DISTANCE, LABEL_TABLE, LABEL_COLUMNS };

struct TableLabels {
    TableCall *call;
    TableRows *rows;
    const PgkmResult *result; /* NULL: no row takes part */
};

/* One row: its place, and its cluster unless it takes no part. */
struct TableLabel {
    ItemPointer ctid;
    Oid table;
    bool clustered;
    int32 cluster;
    double distance;
};

/* Reads and clusters the rows as the arguments of kmeans_labels, in `fcinfo`, say. Everything lies in
 * labels->call, which the caller destroys; errors are those of the function. */
void table_labels_fit(TableLabels *labels, FunctionCallInfo fcinfo);

/* The label of the row at the cursor. */
void table_labels_get(const TableLabels *labels, const TableCursor *cursor, TableLabel *label);

#endif
