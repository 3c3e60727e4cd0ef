/*
 * call.h - what the functions over whole tables have in common: their arguments, and the
 * way from there to rows and to a result.
 */
#ifndef PGKM_PG_TABLE_CALL_H
#define PGKM_PG_TABLE_CALL_H

#include "pg/compat.h"

#include "pg/run/run_job.h"
#include "pg/progress.h"
#include "pg/table/reader.h"

/* Arguments by position: the first two of every such function, the others of kmeans_fit,
 * kmeans_labels and kmeans_cluster. */
enum TableArgument {
    TABLE_RELATION,
    TABLE_FEATURES,
    TABLE_K,
    TABLE_OPTIONS, /* eight of them, in the order of kmeans_options */
    TABLE_WEIGHT = TABLE_OPTIONS + 8,
    TABLE_LOADED,               /* kmeans_fit and kmeans_labels */
    TABLE_LABEL = TABLE_LOADED, /* kmeans_cluster; behind it overwrite */
};

struct PgkmLoaded;

struct TableCall {
    MemoryContext  context; /* holds everything of this call */
    TableRelation  relation;
    TableColumn   *features;
    int            n_features;
    TableColumn   *weight; /* NULL: unweighted */
    int64          k;
    PgkmOptions    options;
    PgkmJobHolder *job;
    PgkmRun        run;
    PgkmLoaded    *loaded; /* what the rows are taken from, instead of the table; or NULL */
};

#define NO_WEIGHT (-1)

/* The relation as given; 22004 when it is NULL. */
Oid table_call_relation(FunctionCallInfo fcinfo);

/* Makes a context below the current one; the second one reads k and the options into it. */
TableCall *table_call_create_plain(FunctionCallInfo fcinfo);
TableCall *table_call_create(FunctionCallInfo fcinfo);

/* Looks up the feature and weight columns of call->relation; the weight's name is argument
 * number `weight`, unless the function takes NO_WEIGHT. */
void table_call_find_columns(TableCall *call, FunctionCallInfo fcinfo, int weight);

/* Finds what argument number `loaded` (a boolean) asks for: the relation, its columns, and,
 * when it is true, the rows loaded under those names. */
void table_call_find(TableCall *call, FunctionCallInfo fcinfo, TableUse use, int weight, int loaded);

/* Reads the rows of call->relation for `function` (a static string, shown as the run's). Of
 * `how` the caller fills label, need_ctid and new_snapshot. */
TableRows *table_call_read(TableCall *call, const char *function, const TableQuery *how);
/* The same with the rows in a context of their own. */
TableRows *table_call_read_into(TableCall *call, const char *function, const TableQuery *how, MemoryContext context);

/* Clusters the rows, whose reading it ends (table_read_end); NULL when there are none. The result lives as long as the call. A
 * WARNING when there are fewer clusters than k. */
const PgkmFitResult *table_call_fit(TableCall *call, TableRows *rows, bool want_labels, bool want_distances);

/* A fit's request for the rows and the call's k, options and loaded rows. */
void table_call_request(const TableCall *call, const TableRows *rows, PgkmFitRequest *request);

/* Ends the run and frees everything. After an ERROR the contexts above see to that. */
void table_call_destroy(TableCall *call);

#endif
