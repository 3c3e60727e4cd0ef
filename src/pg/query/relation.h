/*
 * relation.h - the relation and the columns that a table function was given.
 *
 * The relation comes as a regclass, columns by name. The query that reads the rows names them as the
 * catalog does, quoted, and runs as the caller. So the only privilege that is checked here is USAGE of the
 * schema, which a name in a query would need.
 */
#ifndef PGKM_PG_QUERY_RELATION_H
#define PGKM_PG_QUERY_RELATION_H

extern "C" {
#include "postgres.h"
#include "utils/array.h"
}

#include "pg/columns/column.h"

/* What a function needs of its relation. */
enum TableUse {
    TABLE_READ,   /* rows: tables, partitioned and foreign tables, views, materialized views */
    TABLE_LOCATE, /* rows that have a ctid: tables, partitioned tables, materialized views */
    TABLE_UPDATE, /* rows that can be updated by ctid: tables and partitioned tables */
    TABLE_WRITE   /* rows that can be updated, on other servers, too */
};

struct TableRelation {
    Oid id;
    const char *name;        /* as it is in the catalog, for messages */
    const char *sql_name;    /* schema-qualified and quoted, for queries */
    bool has_rows_of_others; /* partitions or children: a ctid alone does not tell rows apart */
    bool has_ctid;           /* every row has one */
};

/* Looks the relation up. With lock = true it locks it against change, as a SELECT does. 42P01 when it was
 * dropped meanwhile, 42501 without USAGE of its schema, 42809 when it does not serve this use. */
void table_relation_find(TableRelation *relation, Oid id, TableUse use, bool lock);

/* Whether the caller may read the ctids of the relation's rows, if they have any. */
bool table_may_read_ctid(const TableRelation *relation);

/* 42501: permission denied. The hint, a sentence, says which privilege is needed. */
[[noreturn]] void table_raise_denied(const TableRelation *relation, const char *hint);

/* Looks up a column for one value, by its name as it stands in the catalog, which stays the caller's. 42703 when there
 * is none of that name, 42804 when it is no number, no boolean, or no integer. */
enum TableColumnRole { TABLE_WEIGHT, TABLE_FILTER, TABLE_LABEL };
TableColumn *table_column_find(const TableRelation *relation, TableColumnRole role, const char *name);

/* The column's type with domains resolved, or InvalidOid where there is no such column. */
Oid table_column_type(const TableRelation *relation, const char *name);

/* Looks one feature column up. 42703 and 42804 as below. */
void table_feature_find(TableColumn *column, const TableRelation *relation, const char *name);

/* Whether the text is an expression: no column has such a name, or one that differs in case, quotes or blanks alone. */
bool table_is_expression(const TableRelation *relation, const char *text);

/* The comment of a column that holds labels begins so. Users may write on, or write it themselves. */
#define TABLE_LABEL_COMMENT "made by pg_kmeans"

#endif
