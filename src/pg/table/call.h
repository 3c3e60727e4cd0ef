/*
 * call.h - what the functions over whole tables have in common, whatever they fit: their arguments, and
 * the way from there to rows.
 */
#ifndef PGKM_PG_TABLE_CALL_H
#define PGKM_PG_TABLE_CALL_H

#include "pg/compat.h"

#include "pg/progress.h"
#include "pg/columns/source.h"
#include "pg/query/query.h"
#include "pg/run/run_job.h"

/* Arguments by position. Other functions have others behind features, and options behind these. */
enum TableArgument { TABLE_RELATION, TABLE_FEATURES, TABLE_K, TABLE_OPTIONS };

/* What a table function is given, but for what is its own. NULL is what it does not take. */
struct TableArguments {
    Oid relation;
    NullableDatum features;
    NullableDatum options = {0, true}; /* a composite */
    NullableDatum weight = {0, true};
    NullableDatum nulls = {0, true};
    NullableDatum filter = {0, true};
    NullableDatum memory = {0, true};
    const char *label = NULL; /* the column for labels, which is no feature */
    int next = 0;             /* the argument behind these: the first of the function's own */
};

struct PgkmLoaded;
struct TableStream;

/* Where the rows of a fit are, while it runs. */
enum TableMemory {
    TABLE_MEMORY_AUTO,     /* in memory, if they are expected to fit */
    TABLE_MEMORY_RESIDENT, /* in memory */
    TABLE_MEMORY_STREAM,   /* in the table, which each pass over them reads */
    TABLE_MEMORY_LOADED    /* in memory, since kmeans_load */
};

struct TableCall : TableColumns {
    MemoryContext context; /* holds everything of this call */
    TableArguments arguments;
    TableRelation relation;
    const Sources *model; /* of the features of a model that the call is given; NULL: not known */
    bool keeps_missing;   /* with nulls => 'mean' missing values stay NaN: the caller has others than means */
    const double *fills;  /* after reading: the means that stand in the place of NULLs; NULL without nulls => 'mean' */
    TableMemory memory;
    PgkmRequest request; /* algorithm, k and options; points, and what stays of them, by table_call_read */
    TableRows *rows;     /* that were read and are here */
    int64 n;             /* rows that take part, other servers' and streamed ones among them */
    bool own_snapshot;   /* the active one was made for this call */
    PgkmJobHolder *job;
    PgkmRun run;
    struct Nodes *nodes;   /* other servers that hold rows, which work on them; or NULL. Those of loaded rows stay */
    TableStream *stream;   /* the rows that are read anew for each pass; or NULL */
    uint64 streamed_bytes; /* what they would need, where there was no memory for that and it is less; or 0 */
    const char *kept_by;   /* the option without which rows that are in memory could be streamed; or NULL */
    PgkmLoaded *loaded;    /* the loaded rows that are used instead of the table's; or NULL */
};

/* Arguments of a function whose first ones are relation and features, and which has options, weight, nulls, filter and
 * memory in this order, from argument number `first` on. 22004 when relation is NULL. */
TableArguments table_arguments(FunctionCallInfo fcinfo, int first);

/* The relation as given; 22004 when it is NULL. */
Oid table_call_relation(FunctionCallInfo fcinfo);

/* Makes a context below the current one, and the call in it, which is zero otherwise. 22023 for a bad word for memory.
 */
TableCall *table_call_create(void);
TableCall *table_call_create(const TableArguments &arguments);

/* Looks up the feature, weight and filter columns of call->relation as call->arguments name them. 22004 when features
 * is NULL, 22023 for a bad `nulls`, and where call->model has others; else errors as of table_features_find,
 * table_column_find. */
void table_call_find_columns(TableCall *call);

/* The call is given a model of these sources, if they are known: it is for those columns, with the levels that the
 * model knows. To be called before the columns are looked up. */
void table_call_take_model(TableCall *call, const Sources *model);

/* 22023 where call->model has other sources than the columns of the call, in their order; 42804 where one has values of
 * another kind. */
void table_call_check_model(TableCall *call);

/* The name of feature f of the rows that were read, from 0. */
const char *table_feature_name(const TableCall *call, int32 f);

/* The word for it. */
const char *table_nulls_name(TableNulls nulls);

/* Looks up the relation and its columns, and with memory => 'loaded' the rows that are loaded under those names: 55000
 * when there are none, 22023 where labels are written. */
void table_call_find(TableCall *call, TableUse use);

/* The same for a call about the rows of each label in a column, which is returned. 22023 for loaded rows, which have no
 * labels; errors as of table_column_find. */
const TableColumn *table_call_find_label(TableCall *call, TableUse use, const char *name);

/* Reads the rows of call->relation for `function` (a static string, shown as the run's), or takes the loaded
 * ones, and completes call->request where some take part. With a context, in which they lie then, they are not for a
 * request of this call. Where rows are streamed there are none in the result. Errors as of table_select. */
TableRows *table_call_read(TableCall *call, const char *function, const TableWish &wish, MemoryContext context = NULL);

/* Until error_context_stack is watch->previous again, an error about memory names the option that keeps rows there. */
void table_call_watch_errors(TableCall *call, ErrorContextCallback *watch);

/* Whether the ctids of the rows are known and still theirs. 42501 where rows were loaded without the right to read
 * ctid, 55000 as of pgkm_loaded_check_places. */
void table_call_check_places(const TableCall *call);

/* After reading, before the first of several jobs over the same rows: what a backend makes of these stays from job to
 * job. What is loaded, or on other servers, stays anyway. */
void table_call_keep_rows(TableCall *call);

/* Runs the request. The result lives as long as the call. A WARNING when less than k was found, and one when max_iter
 * ended fits. Errors as of pgkm_run_job. */
const PgkmResult *table_call_fit(TableCall *call);

/* Ends the run and frees everything. After an ERROR the memory contexts do. */
void table_call_destroy(TableCall *call);

/* The same at the end of a function: returns that value, which is none of the call's, or NULL for 0. */
Datum table_call_return(TableCall *call, FunctionCallInfo fcinfo, Datum value);

#endif
