/*
 * vector.h - columns of pgvector's types, whose values are read where they lie.
 */
#ifndef PGKM_PG_COLUMNS_VECTOR_H
#define PGKM_PG_COLUMNS_VECTOR_H

#include "pg/columns/column.h"

/* COLUMN_VECTOR or COLUMN_HALFVEC for pgvector's own types; else COLUMN_CAST. */
TableColumnKind table_vector_kind(Oid type);

/* Opens a value of such a column, in place as far as that goes, else in the current memory context. XX001 for one that
 * is not as long as it says. */
void table_vector_open(const TableColumn *column, Datum value, PgkmVector *vector);

#endif
