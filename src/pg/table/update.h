/*
 * update.h - the label column of kmeans_cluster and gmm_cluster.
 */
#ifndef PGKM_PG_TABLE_UPDATE_H
#define PGKM_PG_TABLE_UPDATE_H

#include "pg/table/call.h"

/* The HINT where a privilege is missing. */
#define TABLE_LABEL_PRIVILEGES                                                                                       \
    "Writing labels needs the SELECT and UPDATE privileges on the whole table, and to be its owner where the label " \
    "column is missing."

/* The column that labels go into. */
struct LabelTarget {
    const char *name; /* cut to the length of a name as the parser would */
    bool named;       /* by the caller; else it is the function's usual one */
    bool overwrite;   /* the caller agrees to lose what the column holds */
    bool missing;     /* it is added just before labels are written */
    bool ours;        /* it is there, and pg_kmeans made it */
    List *tables;     /* OIDs of the relation and all below it, which are locked */
};

/* Reads argument `number`, label_column, whose NULL means the column called `usual`, and the next one,
 * overwrite. 42602 for an empty name. */
void label_target_arguments(LabelTarget *target, FunctionCallInfo fcinfo, int number, const char *usual);

/*
 * Finds out whether the column is missing. The relation is locked (table_read_for_update). Raises what stands
 * against `k` labels in it: 42501 (privileges), 42701 (it holds something
 * else), 42804 (its type), 22003 (too many labels for it), and what ALTER TABLE would raise where it is missing.
 */
void label_target_check(LabelTarget *target, const TableRelation *relation, int64 k);

/* Adds the column where it is missing, as the caller. Marks a column that is ours by a comment. 22003 where it cannot
 * hold `k` labels: a radius may have asked for more clusters than were known before the fit. */
void label_target_prepare(const LabelTarget *target, const TableRelation *relation, int64 k);

/* Does all that comes before a fit whose labels are to be written: raises 25006 where nothing can be (a standby, a
 * read-only transaction, unless the table is temporary), locks the table against all other writers,
 * looks up the columns, checks the target, and reads the rows for `function`. Where rows are streamed (`may_stream`)
 * labels are written by table_write_by_value. Errors of these steps. */
void table_read_for_update(TableCall *call, LabelTarget *target, TableWish wish, const char *function);

/* The same of a relation with rows on other servers, which are updated by what their values say. 0A000 where the column
 * is missing over there, and for nulls and a filter. */
void table_read_elsewhere(TableCall *call, LabelTarget *target, const TableWish &wish, const char *function);

/* The label of a row by what its values say: predict(model, features) where the condition holds, else NULL. */
struct LabelExpression {
    const char *condition; /* SQL over the row */
    Oid predict;           /* pgkm_row_kmeans_predict, say: of a model, names, and the columns of these names */
    Oid predict_row;       /* kmeans_predict: the same of a row, for more columns than a function takes */
    Datum names;           /* text[] */
    Oid model_type;
    Datum model;
};

/* Adds the column where it is missing, and writes labels by value where a row has another one; NULLs where by_value is
 * NULL. `function` is as for table_write_labels: then each row's label is computed once. It is InvalidOid where rows
 * lie on other servers, which can run the UPDATE themselves: the model stands in it as a constant, and rows that a
 * trigger has skipped are not known. */
void table_write_by_value(const TableCall *call, const PgkmResult *result, const LabelExpression *by_value,
                          const LabelTarget *target, Oid function);

/* A statement that finds or writes labels by value; made by table_write_in_batches alone outside of update.cpp. */
struct LabelLookup;
struct LabelUpdate {
    const TableRelation *relation;
    const char *column;
    Oid schema; /* of our functions; InvalidOid: other servers, which lack them, take part, or other sessions write */
    bool by_value;
    const LabelExpression *by_which; /* by value; NULL: all labels are NULL */
    LabelLookup *lookup;             /* not used without a schema */
    Datum ctids;                     /* tid[]: rows that it is about; or 0 */
    Datum tables;                    /* oid[]: the tables that these are in */
};

/* Runs it as the caller, between SPI_connect and SPI_finish: $1 is a row's new label, $2 whether it changes, $4 and $5
 * are ctids and tables. Returns as SPI_execute. */
int table_execute_labels(LabelUpdate *update, const char *sql);

/* 55000 where that UPDATE was none. */
void table_check_written(const TableRelation *relation, const char *sql, int code);

/* What comes before the rows are read whose labels are to be written in batches: as table_read_for_update, but under
 * the lock of a SELECT. 0A000 where rows lie on other servers. */
void table_begin_batches(TableCall *call, LabelTarget *target, const char *function);

/* Adds the column where it is missing, for k labels, in a transaction of its own, which has begun. Checks anew what
 * stands against writing it, as others may have changed it. */
void table_prepare_batches(LabelTarget *target, Oid relation, int64 k);

/* Writes labels by value where a row has another one, at most so many rows in a transaction, and commits each; between
 * SPI_connect_ext and SPI_finish, without an active snapshot. Returns how many labels it wrote. A WARNING where some
 * are left. */
int64 table_write_in_batches(Oid relation, const char *column, const LabelExpression *by_value, int64 rows,
                             int32 batch_rows);

/* Ends the transaction and begins another one, in such a frame of SPI. */
void table_next_transaction(void);

/* The function of that name and these arguments in a schema. */
Oid table_find_function(Oid schema, const char *name, const Oid *types, int count);

/* Runs a utility statement as the caller. */
void table_run_utility(const char *sql);

/* Adds the column where it is missing, and writes the labels of the rows whose label changes. The result has those of
 * rows->used, and is NULL where there are none; the other rows get NULL. `function` is the SQL function that was
 * called: the two that the UPDATE calls are in its schema. */
void table_write_labels(const TableCall *call, const PgkmResult *result, const LabelTarget *target, Oid function);

#endif
