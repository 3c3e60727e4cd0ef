/*
 * labels.h - the clusters of a table's rows.
 *
 * The functions kmeans_labels and gmm_labels return them through a tuple store. In FROM the custom scan of
 * pg/plan/labels_scan.cpp takes the place of kmeans_labels, and returns one row at a time.
 */
#ifndef PGKM_PG_FIT_LABELS_H
#define PGKM_PG_FIT_LABELS_H

#include "pg/fit/fit.h"

/* The columns that kmeans_labels returns; gmm_labels has no distance. */
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
    double distance; /* of k-means */
};

/* Reads and fits the rows as the arguments of the function, in `fcinfo`, say. Everything lies in labels->call, which
 * the caller destroys; errors are those of the function. */
void table_labels_fit(TableLabels *labels, const FitKind *kind, FunctionCallInfo fcinfo, const char *function);

/* The label of the row at the cursor. */
void table_labels_get(const TableLabels *labels, const TableCursor *cursor, TableLabel *label);

/* All of such a function. */
Datum fit_labels(const FitKind *kind, FunctionCallInfo fcinfo, const char *function);

#endif
