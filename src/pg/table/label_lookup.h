/*
 * label_lookup.h - the new label of a row, for the UPDATE that writes labels.
 *
 * The UPDATE is one statement over the table. By place it calls pgkm_label_changes(tableoid, ctid) and
 * pgkm_new_label(tableoid, ctid) for each row, which look here. Rows come in the order in which they were read, so each
 * is found next to the one before. By value it calls pgkm_label_changes(label, old label), which keeps the label, and
 * then pgkm_new_label() for the same row.
 */
#ifndef PGKM_PG_TABLE_LABEL_LOOKUP_H
#define PGKM_PG_TABLE_LABEL_LOOKUP_H

#include "pg/compat.h"

#include "pg/rows/table_rows.h"

struct LabelLookup {
    const TableRows *rows;
    const int32 *labels;
    TableRange *ranges;
    int n_ranges;
    int64 hint;         /* where the last row was found */
    int64 changed;      /* rows whose label changes, so far */
    LabelLookup *outer; /* of the statement whose trigger runs this one */
};

/* From now on the functions look in `rows`, which have ctids, and in `labels`, which are those of rows->used.
 * False, and nothing begins, when no row's label changes. Allocates in the current memory context. */
bool label_lookup_start(LabelLookup *lookup, const TableRows *rows, const int32 *labels);

/* Ends that; to be called after an error, too. */
void label_lookup_end(LabelLookup *lookup);

/* The label, by value, of the row that the UPDATE is at. */
struct LabelOfRow {
    NullableDatum label;
    int64 changed;     /* as above */
    LabelOfRow *outer; /* likewise */
};

/* From now on the functions by value can be called. */
void label_of_row_start(LabelOfRow *row);

/* Ends that; to be called after an error, too. */
void label_of_row_end(LabelOfRow *row);

#endif
