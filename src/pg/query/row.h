/*
 * row.h - one row of a query, as its SELECT returns it.
 */
#ifndef PGKM_PG_TABLE_ROW_H
#define PGKM_PG_TABLE_ROW_H

#include "pg/query/query.h"
#include "pg/rows/table_rows.h"

/* Which column of the SELECT holds what, counted from 0; -1: absent. Features come first. */
struct TableRowShape {
    const TableQuery *query;
    int               weight;
    int               label;
    int               ctid;
    int               table;
};

/* What TableOrigin says of a label that is not NULL. */
static inline int32 table_row_label(int64 label)
{
    return label < 0 || label > PG_INT32_MAX ? TABLE_LABEL_OTHER : (int32) label;
}

/* Where the row came from and its old label; what the SELECT does not hold is zero. */
void table_row_origin(const TableRowShape *shape, const Datum *values, const bool *nulls, TableOrigin *origin);

/* Appends the row's features and weight to rows->used, which the first row creates; false
 * when the row takes no part in the fit. Raises what is wrong with a value. */
bool table_row_append(const TableRowShape *shape, const Datum *values, const bool *nulls, const TableOrigin *origin,
                      TableRows *rows);

#endif
