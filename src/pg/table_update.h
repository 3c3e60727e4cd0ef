/*
 * table_update.h - the label column of kmeans_cluster and gmm_cluster.
 */
#ifndef PGKM_PG_TABLE_UPDATE_H
#define PGKM_PG_TABLE_UPDATE_H

#include "pg/table_call.h"

/* Argument `number`: the label column's name, cut to the length of a name as the parser would. */
char *table_label_argument(FunctionCallInfo fcinfo, int number);

/* All that comes before a fit whose labels are to be written: locks the table, looks
 * up the columns, adds the label column where it is missing, and reads the rows for `function`. `weight` as for table_call_find_columns. */
TableRows *table_read_for_update(TableCall *call, FunctionCallInfo fcinfo, Oid id, const char *label,
                                 int weight, const char *function);

/* Takes LOCK TABLE ... IN SHARE ROW EXCLUSIVE MODE as the caller and looks the relation up
 * under it: from then on nobody else changes its rows. */
void table_lock_for_update(TableRelation *relation, Oid id);

/* Adds the integer column as the caller where it is missing; 42804 when a column of that
 * name is no integer. */
void table_ensure_label(const TableRelation *relation, const char *label);

/* Raises now, and not when all is computed, what an UPDATE of the label column, which is there, would
 * raise whatever the rows: 25006 (read-only transaction), 42501, 428C9 (a column that the server writes). */
void table_check_label(const TableRelation *relation, const char *label);

/* Writes the label of every row whose label differs from its old one. `labels` are those of
 * rows->used; the other rows get NULL. `function` is the one called, of which the
 * functions that the UPDATE needs lie in its schema. */
void table_write_labels(const TableCall *call, const TableRows *rows, const int32 *labels, const char *label,
                        Oid function);

#endif
