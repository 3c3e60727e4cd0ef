/*
 * label_lookup.h - the new label of a row, for the UPDATE that writes labels.
 *
 * The UPDATE is one statement over the table, which calls two functions for its rows. Their first argument, which no
 * user can write, says where to look: so updates that run within each other's triggers do not meet.
 */
#ifndef PGKM_PG_TABLE_LABEL_LOOKUP_H
#define PGKM_PG_TABLE_LABEL_LOOKUP_H

#include "pg/compat.h"

#include "pg/rows/table_rows.h"

struct LabelLookup {
    /* By place: the rows that were read, which have ctids, and the labels of those that are used. */
    const TableRows *rows;
    const int32 *labels;
    int64 hint; /* where the last row was found: rows come in the order in which they were read */
    /* By value, where `rows` is NULL: the row that pgkm_keep_label() had last, and its label. */
    Oid table;
    ItemPointerData ctid;
    NullableDatum label;
    int64 changed; /* rows whose label changes; by value: so far */
};

/* Begins a lookup by place and counts the rows whose label changes. Allocates in the current memory context. */
void label_lookup_start(LabelLookup *lookup, const TableRows *rows, const int32 *labels);

#endif
