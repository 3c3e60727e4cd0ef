/*
 * column_use.h - what else depends on a column, so that its values must not change their meaning.
 */
#ifndef PGKM_PG_TABLE_COLUMN_USE_H
#define PGKM_PG_TABLE_COLUMN_USE_H

extern "C" {
#include "postgres.h"
#include "access/attnum.h"
}

/*
 * Why this column, which is no system column, must not get values of another meaning: a sentence for a
 * DETAIL; or NULL. It counts that the column is generated, an identity, NOT NULL or of a domain with
 * constraints, and that a key (primary, unique, or foreign on either side), a constraint or a generated
 * column uses it. Other indexes, views and partition keys do not count.
 */
const char *pgkm_column_use(Oid table, AttrNumber column);

#endif
