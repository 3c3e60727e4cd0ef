/*
 * label_lookup.h - the new label of a row by its place, for the UPDATE of kmeans_cluster.
 *
 * The UPDATE is one statement over the table whose two functions ask here, row by row:
 * kmeans_label_changes(tableoid, ctid) and kmeans_new_label(tableoid, ctid). Rows come in the order
 * in which they were read, so that each is found next to the one before.
 */
#ifndef PGKM_PG_LABEL_LOOKUP_H
#define PGKM_PG_LABEL_LOOKUP_H

#include "pg/compat.h"

#include "pg/rows/table_rows.h"

struct LabelLookup {
    const TableRows *rows;
    const int32     *labels;
    TableRange      *ranges;
    int              n_ranges;
    int64            hint; /* where the last row was found */
    LabelLookup     *outer; /* of the statement whose trigger runs this one */
};

/* From now on the functions look in `rows` (with ctids and old labels) and `labels` (of rows->used);
 * false, and nothing is started, when no row's label changes. In the current memory context. */
bool label_lookup_start(LabelLookup *lookup, const TableRows *rows, const int32 *labels);

/* Also to be called when the statement fails. */
void label_lookup_end(LabelLookup *lookup);

#endif
