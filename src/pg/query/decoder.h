/*
 * decoder.h - rows of a query out of slots: those that its SELECT returns, and those of a table that is scanned.
 */
#ifndef PGKM_PG_QUERY_DECODER_H
#define PGKM_PG_QUERY_DECODER_H

#include "pg/columns/levels.h"
#include "pg/query/query.h"

extern "C" {
#include "executor/tuptable.h"
}

/* An expression among the columns of a query. */
struct TableComputed {
    ExpressionState *state;
    NullableDatum result; /* of the row that is decoded */
};

/* Rows that are decoded at once, unless something is NULL, out of line, infinite or NaN. */
enum TablePlain { DECODE_OTHERS, DECODE_REALS, DECODE_NUMBERS, DECODE_REAL_ARRAY };

/* Where tuples of a table without NULLs have a column, behind their headers. */
struct TableField {
    int32 offset;
    int16 length;
    bool by_value;
};

/* Where a slot has the columns of a query, and what becomes of them. */
struct TableDecoder {
    const TableQuery *query;
    const AttrNumber *places; /* in the slot, from 0, by the numbers of table_query_name; -1: it is computed */
    AttrNumber last;          /* so many attributes of the slot are needed */
    const TableField *fields; /* where tuples of a heap without NULLs have all columns; NULL: not at one place each */
    int n_fields;
    int weight; /* the column's number; -1: there is none */
    int filter;
    int label;
    int ctid;        /* its place in the slot; -1: it is the slot's own */
    int table;       /* likewise */
    Oid relation;    /* that of all rows, where the slot does not say it; or InvalidOid */
    bool with_ctid;  /* errors may name it */
    bool with_table; /* a ctid alone does not tell rows apart */
    TablePlain plain;
    bool is_simple; /* there are features alone, of which any will do */
    PgkmElement element;
    Levels *levels;           /* of this process; NULL: no feature is a category */
    TableComputed **computed; /* of this process, by the numbers of columns, NULL for others; NULL: nothing is */
};

/* A row in a slot, whose columns are fetched, and computed where they are expressions; column i is that of
 * table_query_column. */
struct TableSlotRow {
    const TableDecoder *decoder;
    const TupleTableSlot *slot;

    bool is_computed(int i) const { return unlikely(decoder->places[i] < 0); }
    bool is_null(int i) const
    {
        return is_computed(i) ? decoder->computed[i]->result.isnull : slot->tts_isnull[decoder->places[i]];
    }
    Datum value(int i) const
    {
        return is_computed(i) ? decoder->computed[i]->result.value : slot->tts_values[decoder->places[i]];
    }
};

/* For a query. All but places, last, ctid and table. */
void table_decoder_init(TableDecoder *decoder, const TableQuery *query);

/* Finds the fields of the `count` columns, whose places in a table the decoder has, for the decoder to use. */
void table_find_fields(TableDecoder *decoder, TupleDesc tupdesc, int count, TableField *fields);

/* Fetches the columns of the row in the slot, and where it is. */
void table_decode_origin(const TableDecoder *decoder, TupleTableSlot *slot, TableOrigin *origin);

/* Appends that row: its origin, and what of it takes part in the fit. The first row that does creates rows->used. May
 * leave memory behind in the current context. Errors as of table_select (query.h). */
void table_decode(const TableDecoder *decoder, const TupleTableSlot *slot, TableOrigin *origin, TableRows *rows);

/* Has the decoder evaluate expressions and collect the levels of its categories from now on, in the current memory
 * context. `given`: what levels_write has written of those that there are; NULL: the query's. */
void table_decoder_begin(TableDecoder *decoder, const char *given);

/* Writes the rows, all of which that decoder has read, with the levels that it has met. */
void table_decoder_end_levels(const TableDecoder *decoder, TableRows *rows);

/* Evaluates the expressions among the features. Of rows that are not simple table_decode_with_care does. */
void table_compute_features(const TableDecoder *decoder, const TupleTableSlot *slot, const TableOrigin *origin);

/* Any row. `written`: its features are in their place already. */
void table_decode_with_care(const TableDecoder *decoder, const TupleTableSlot *slot, TableOrigin *origin,
                            TableRows *rows, bool written);

/* The row of a table that is scanned, columns and all. */
void table_decode_scanned(const TableDecoder *decoder, TupleTableSlot *slot, TableRows *rows);

/* The sizes of a context for what decoding a row leaves behind: values out of line fit into its first block. */
#define TABLE_ROW_SIZES 64 * 1024, 64 * 1024, ALLOCSET_DEFAULT_MAXSIZE

/* The SELECT of a query as text, and a decoder of what it returns. In the current memory context. */
char *table_select_text(const TableQuery *query, TableDecoder *decoder);

/* Settings under which it is planned and run until the current nest level ends: a scan starts at the first block, one
 * process reads, and the table itself, not an index over all columns. */
void table_select_settings(void);

/* Where a row is, for errors: "(0,1)", or "(0,1) of name". */
const char *table_origin_name(const TableOrigin *origin, bool with_table);

#endif
