/*
 * order.h - the order that results are defined by: rows by table (in the order of
 * their first appearance), then by ctid.
 */
#ifndef PGKM_PG_TABLE_ORDER_H
#define PGKM_PG_TABLE_ORDER_H

#include "pg/rows/table_rows.h"

/* Watches rows as they arrive. */
struct TableOrder {
    Oid            *tables; /* seen so far, in order of appearance */
    int             n_tables;
    int             capacity;
    ItemPointerData last;
    bool            broken; /* a row came before one that it belongs behind */
};

/* `tables` is allocated in the current memory context. */
void table_order_start(TableOrder *order);
void table_order_watch(TableOrder *order, const TableOrigin *origin);

/* The same rows in order, in the same context; `rows` is cleared. Rows must have ctids. */
TableRows *table_order_restore(const TableOrder *order, TableRows *rows);

#endif
