/*
 * update.h - the label column of kmeans_cluster and gmm_cluster.
 */
#ifndef PGKM_PG_TABLE_UPDATE_H
#define PGKM_PG_TABLE_UPDATE_H

#include "pg/table/call.h"

/* The HINT where a privilege is missing. */
#define TABLE_LABEL_PRIVILEGES \
    "Writing labels needs the SELECT and UPDATE privileges on the whole table, and to be its owner where the label " \
    "column is missing."

/* The column that labels go into. */
struct LabelTarget {
    const char *name;      /* cut to the length of a name as the parser would */
    bool        named;     /* by the caller; else it is the function's usual one */
    bool        overwrite; /* the caller agrees to lose what the column holds */
    bool        missing;   /* it is added just before labels are written */
    bool        ours;      /* it is there, and pg_kmeans made it */
    List       *tables;    /* OIDs of the relation and all below it, which are locked */
};

/* Argument `number`, label_column, whose NULL means the column called `usual`, and the next one,
 * overwrite. */
void label_target_arguments(LabelTarget *target, FunctionCallInfo fcinfo, int number, const char *usual);

/*
 * Finds out whether the column is missing. Raises now, and not when all is computed, whatever stands
 * against `k` labels in it: 25006 (read-only transaction), 42501 (privileges), 42701 (it holds something
 * else), 42804 (its type), 22003 (too many labels for it), and what ALTER TABLE would raise where it is missing.
 */
void label_target_check(LabelTarget *target, const TableRelation *relation, int64 k);

/* Adds the column as the caller where it is missing; a comment makes it, if it is ours, known as that. */
void label_target_prepare(const LabelTarget *target, const TableRelation *relation);

/* All that comes before a fit whose labels are to be written: locks the table, looks
 * up the columns, checks the target, and reads the rows for `function`. `weight` as for table_call_find_columns. */
TableRows *table_read_for_update(TableCall *call, FunctionCallInfo fcinfo, Oid id, LabelTarget *target,
                                 int weight, const char *function);

/* Runs a utility statement as the caller. */
void table_run_utility(const char *sql);

/* Adds the column where it is missing and writes the label of every row whose label differs from its
 * old one. `labels` are those of rows->used; the other rows get NULL. `function` is the one called, of
 * which the functions that the UPDATE needs lie in its schema. */
void table_write_labels(const TableCall *call, const TableRows *rows, const int32 *labels, const LabelTarget *target,
                        Oid function);

#endif
