/*
 * row.h - one row of a query, as its SELECT returns it.
 */
#ifndef PGKM_PG_QUERY_ROW_H
#define PGKM_PG_QUERY_ROW_H

#include "pg/query/query.h"

/* Which column of the SELECT holds what, counted from 0; -1: none does. Features come first. */
struct TableRowShape {
    const TableQuery *query;
    int weight;
    int label;
    int filter;
    int ctid;
    int table;
};

/* A label that is not NULL, as TableOrigin has it. */
static inline int32 table_row_label(int64 label)
{
    return label < 0 || label > PG_INT32_MAX ? TABLE_LABEL_OTHER : (int32)label;
}

/* Where a row is, for errors: "(0,1)", or "(0,1) of name". */
const char *table_origin_name(const TableOrigin *origin, bool with_table);

/* The row's place and its old label, from the columns of the SELECT. What that does not hold is zero. */
void table_row_origin(const TableRowShape *shape, const Datum *values, const bool *nulls, TableOrigin *origin);

/* Appends the row's features and weight to rows->used, which the first row creates. False when the row takes
 * no part in the fit. Errors as of table_select (query.h). */
bool table_row_append(const TableRowShape *shape, const Datum *values, const bool *nulls, const TableOrigin *origin,
                      TableRows *rows);

#endif
