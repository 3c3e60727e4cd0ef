/*
 * column_use.h - what a column is for, beside holding values.
 */
#ifndef PGKM_PG_COLUMN_USE_H
#define PGKM_PG_COLUMN_USE_H

extern "C" {
#include "postgres.h"
#include "access/attnum.h"
}

/*
 * Why a column of this table, which is not to be a system column, must not get values of another meaning:
 * it is generated or an identity, part of a key (primary, unique, foreign, on either side), of a constraint or
 * of a generated column. A sentence for a DETAIL, or NULL. Indexes that are not unique, views and partition
 * keys do not count.
 */
const char *pgkm_column_use(Oid table, AttrNumber column);

#endif
