/*
 * query.h - what a table function asks for: which rows of a relation, and which of their columns; and the
 * SELECT that answers it.
 */
#ifndef PGKM_PG_QUERY_QUERY_H
#define PGKM_PG_QUERY_QUERY_H

#include "pg/query/relation.h"
#include "pg/rows/table_rows.h"

/* What becomes of a row with NULLs beside other values. */
enum TableNulls {
    TABLE_NULLS_ERROR,
    TABLE_NULLS_SKIP, /* it takes no part */
    TABLE_NULLS_MEAN, /* they are NaN, until pgkm_fill_missing has seen all rows */
    TABLE_NULLS_EM    /* they stay NaN: the fit estimates what is missing */
};

/* Whether such a row is read all the same. */
static inline bool table_keeps_nulls(TableNulls nulls)
{
    return nulls == TABLE_NULLS_MEAN || nulls == TABLE_NULLS_EM;
}

/* The columns that decide which rows take part, and what of them. */
struct TableColumns {
    TableColumn *features;
    int n_features;
    TableColumn *weight;      /* a number, or NULL */
    TableColumn *filter;      /* a boolean, or NULL */
    ExpressionColumn *inputs; /* the columns that expressions among these read */
    int n_inputs;
    ExpressionColumns all; /* of the relation, once an expression has been looked up; else zero */
    const Datum *levels;   /* of each feature that is a category, as of levels_create; NULL: those that its rows have */
    TableNulls nulls;
    bool takes_nulls;    /* the caller may say what becomes of a NULL */
    bool need_direction; /* a row of zeros, which has none, is an error */
    bool takes_bits;     /* the feature may be a bit string */
};

/* The features that these texts (text[]) name: numbers and categories, columns or expressions, or one array or vector.
 * The one text "*" stands for every column that can be a feature beside others, but for keys, labels and the columns
 * of these names; a NOTICE lists them. 42703 where there is no column of a name, 42804 for a type that cannot be a
 * feature, 22023 and 22004 for a bad list; of expressions as of expression_parse. */
void table_features_find(TableColumns *columns, const TableRelation *relation, ArrayType *names, const List *except);

/* The filter: a boolean column, or a condition. */
void table_filter_find(TableColumns *columns, const TableRelation *relation, const char *condition);

/* Whether a feature is an expression. */
bool table_columns_have_expressions(const TableColumns *columns);

/* What a function asks for beside its columns. */
struct TableWish {
    const TableColumn *label = NULL; /* an integer to read along, or NULL */
    bool labelled = false;           /* a row whose label is NULL takes no part */
    bool need_ctid = false;          /* else it is read only where the caller may */
    bool on_nodes = false;           /* other servers may work on the rows that they hold */
    bool unchanged = false;          /* the caller knows that the transaction has changed none of these rows there */
    bool may_stream = false;         /* the caller's fit takes rows chunk by chunk */
    const char *kept_by = NULL;      /* the option because of which it does not; or NULL */
    void (*on_first)(void *arg, const TableRows *first) = NULL; /* called, maybe, before most rows are read; or NULL */
    void *on_first_arg = NULL;
};

/*
 * The rows are those that a SELECT by the current user would see under the active snapshot, by table, in the order in
 * which a sequential scan comes to these, and by ctid. A row takes no part in the fit if its filter is NULL or false,
 * if its features are NULL (its array; all of its columns), or if its weight is NULL or 0. Nothing else is read of it
 * then.
 */
struct TableQuery : TableColumns, TableWish {
    const TableRelation *relation;
    bool streamed; /* memory => 'stream' */
};

/* Column number i of those that are asked for, from 0: features, weight, filter and label; and how many there are. */
static inline const TableColumn *table_query_column(const TableQuery *query, int i)
{
    const TableColumn *const others[] = {query->weight, query->filter, query->label};

    if (i < query->n_features)
        return &query->features[i];
    i -= query->n_features;
    for (const TableColumn *other : others)
        if (other != NULL && i-- == 0)
            return other;
    return NULL;
}

static inline int table_query_columns(const TableQuery *query)
{
    return query->n_features + (query->weight != NULL) + (query->filter != NULL) + (query->label != NULL);
}

/* The names of the columns that are read, by the same numbers, and of the inputs behind them; NULL for an expression,
 * which is computed. */
static inline const char *table_query_name(const TableQuery *query, int i)
{
    const int count = table_query_columns(query);

    if (i >= count)
        return query->inputs[i - count].name;

    const TableColumn *const column = table_query_column(query, i);

    return column->expression == NULL ? column->name : NULL;
}

static inline int table_query_names(const TableQuery *query)
{
    return table_query_columns(query) + query->n_inputs;
}

/* What is kept of each row beside its features. */
static inline TableWants table_query_wants(const TableQuery *query)
{
    return {query->need_ctid, query->label != NULL};
}

/*
 * All rows of the query, in `context`, by one SELECT as the current user. 22004, 22003, 22023 and 2202E for bad values,
 * which name the column or element and the row's ctid; 54000 when pg_kmeans.memory_limit would be passed; and what the
 * SELECT raises.
 */
TableRows *table_select(const TableQuery *query, MemoryContext context);

/* Sets a setting until the current nest level ends (NewGUCNestLevel, AtEOXact_GUC). */
void table_set_for_now(const char *name, const char *value);

#endif
