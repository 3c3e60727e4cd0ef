/*
 * column.h - what a column of a table can be as a feature.
 */
#ifndef PGKM_PG_COLUMNS_COLUMN_H
#define PGKM_PG_COLUMNS_COLUMN_H

#include "pg/columns/expression.h"
#include "pg/values/datum.h"

enum TableColumnKind {
    COLUMN_NUMBER,   /* a number or boolean; a point in time or a length of time, in days */
    COLUMN_CATEGORY, /* text, an enumeration, a uuid: one feature a level, 0 or 1 */
    COLUMN_ARRAY,    /* an array of numbers */
    COLUMN_VECTOR,   /* pgvector's vector */
    COLUMN_HALFVEC,
    COLUMN_BITS, /* a bit string; its type is bit */
    COLUMN_CAST  /* another type with a cast to real[] */
};

struct TableColumn {
    const char *name; /* or the expression as it was given */
    TableColumnKind kind;
    Oid type;                            /* domains resolved; of an array its element's, of a vector float4 */
    const Expression *expression = NULL; /* its inputs are those of the query (TableColumns); NULL: it is a column */
};

/* Whether it holds one value, not a whole row of features. */
static inline bool column_is_single(const TableColumn *column)
{
    return column->kind == COLUMN_NUMBER || column->kind == COLUMN_CATEGORY;
}

/* A column of this name and type, domains resolved; false for a type that no feature has. */
bool column_classify(TableColumn *column, const char *name, Oid type);

/* For ereport: which types features have. */
int column_detail_of_types(void);

/* For ereport: what makes a feature of a value of such a type. */
int column_hint_of_type(const char *name, Oid type);

/* The arithmetic of features in these columns: float32 where every value is a real, bits of a bit string, else float64.
 */
PgkmElement table_columns_element(const TableColumn *columns, int count);

/* Whether the features are the bits of one bit string. */
bool table_columns_are_bits(const TableColumn *columns, int count);

/* Whether every column holds a single value. */
bool table_columns_are_single(const TableColumn *columns, int count);

/* Whether one of them is a category. */
bool table_columns_have_categories(const TableColumn *columns, int count);

/* The bytes that tell the values of a category apart, of a text its own. They lie in the value, in `room`, or, of a
 * value that is out of line or compressed, in the current memory context. */
struct CategoryKey {
    const char *bytes;
    int32 length;
};
#define CATEGORY_ROOM sizeof(Oid)
CategoryKey category_key(Oid type, Datum value, char room[CATEGORY_ROOM]);

/* The order of levels: that of their bytes. */
bool category_is_before(const CategoryKey &a, const CategoryKey &b);

/* The value's text, in the current memory context. */
CategoryKey category_text(Oid type, Datum value, const CategoryKey *key);

#endif
