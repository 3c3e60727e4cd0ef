/*
 * order.h - the order of rows by which results are defined: by table, in the order in which tables first
 * appear, then by ctid.
 */
#ifndef PGKM_PG_QUERY_ORDER_H
#define PGKM_PG_QUERY_ORDER_H

#include "pg/rows/table_rows.h"

/* Whether rows arrive in that order. */
struct TableOrder {
    Oid *tables; /* seen so far, in order of appearance */
    int n_tables;
    int capacity;
    ItemPointerData last;
    bool broken; /* a row came before one that it belongs behind */
};

/* Before the first row. `tables` is allocated in the current memory context. */
void table_order_start(TableOrder *order);

/* Takes note of the next row. */
void table_order_watch(TableOrder *order, const TableOrigin *origin);

/* The same rows in order, in the same context; `rows` is cleared. Rows must have ctids. 54000 when both
 * together pass pg_kmeans.memory_limit. */
TableRows *table_order_restore(const TableOrder *order, TableRows *rows);

#endif
