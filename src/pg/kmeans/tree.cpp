/*
 * tree.cpp - kmeans_tree, kmeans_tree_fit: clusters of a table that are divided into clusters.
 */
#include "pg/kmeans/tree.h"

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "pg/run/fit_count.h"

extern "C" {
#include "miscadmin.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_tree);
PG_FUNCTION_INFO_V1(pgkm_kmeans_tree_fit);
}

/* Arguments by position, behind relation and features. */
enum TreeArgument { TREE_BRANCHES = TABLE_FEATURES + 1, TREE_K, TREE_OPTIONS };

#define BISECTING "bisecting"

[[noreturn]] static void raise_branches(void)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("branches must be '" BISECTING "', or numbers of at least 2 in braces"),
                    errhint("'{64,16}' divides the rows into 64 clusters and each of these into 16.")));
}

/* The numbers of a text like {64,16}; 22023 for another text. */
static int32 *parse_branches(const char *text, int32 *count)
{
    int32 *const branches = (int32 *)palloc((strlen(text) + 1) * sizeof(int32));
    const char *at = text + strspn(text, " ");

    *count = 0;
    if (*at != '{')
        raise_branches();
    do {
        char *end;

        errno = 0;
        const long number = strtol(at + 1, &end, 10);

        if (end == at + 1 || errno != 0 || number < 2 || number > INT_MAX)
            raise_branches();
        branches[(*count)++] = (int32)number;
        at = end + strspn(end, " ");
    } while (*at == ',');
    if (*at != '}' || at[1 + strspn(at + 1, " ")] != '\0')
        raise_branches();
    return branches;
}

/* What branches and k say: k alone bisects. */
static void read_shape(FunctionCallInfo fcinfo, PgkmRequest *request, const char *function)
{
    request->algorithm = PGKM_TREE;
    request->k = 1;
    if (PG_ARGISNULL(TREE_BRANCHES) && PG_ARGISNULL(TREE_K))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s needs branches or k", function),
                        errhint("branches => '{64,16}' divides the rows into 64 clusters and each of these into 16. "
                                "k => 8 divides them by two until there are 8.")));

    const char *const branches =
        PG_ARGISNULL(TREE_BRANCHES) ? BISECTING : TextDatumGetCString(PG_GETARG_DATUM(TREE_BRANCHES));

    if (strcmp(branches, BISECTING) == 0) {
        if (PG_ARGISNULL(TREE_K))
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("k must not be null where branches is 'bisecting'"),
                            errhint("k => 8 divides the rows by two until there are 8 clusters.")));
        request->k = pgkm_k_argument(fcinfo, TREE_K);
        return;
    }
    request->branches = parse_branches(branches, &request->n_branches);
    if (!PG_ARGISNULL(TREE_K))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("k must be null unless branches is 'bisecting'")));
}

static TableCall *read_arguments(FunctionCallInfo fcinfo, const char *function)
{
    static const char *const unusable[] = {"init_centroids", "min_size",    "max_size",  "batch_size", "init_model",
                                           "max_radius",     "min_sizes",   "max_sizes", "min_weight", "max_weight",
                                           "min_weights",    "max_weights", NULL};
    TableCall *const call = fit_call_create(&kmeans_kind, table_arguments(fcinfo, TREE_OPTIONS), 0, function, unusable);
    const MemoryContext caller = MemoryContextSwitchTo(call->context);

    read_shape(fcinfo, &call->request, function);
    MemoryContextSwitchTo(caller);
    return call;
}

/* Fewer leaves than wanted are worth a WARNING. Every inner node of a bisected tree has two children. */
static void warn_fewer_leaves(const TableCall *call, const PgkmResult *tree)
{
    PgkmResult leaves = *tree;
    PgkmFitCount count = {};

    leaves.k = (tree->k + 1) / 2;
    if (call->request.n_branches == 0 && pgkm_count_fewer(&count, PGKM_KMEANS, &leaves, call->request.k))
        pgkm_warn_counted(&count);
}

/* 54000 where a tree of as many nodes as there may be would pass the maximum size of a value. */
static void check_size(const TableCall *call)
{
    const PgkmRequest *const request = &call->request;
    int64 level = 1;
    int64 nodes = request->n_branches > 0 ? 1 : 2 * Min(request->k, call->n) - 1;

    for (int32 i = 0; i < request->n_branches; ++i) {
        level = level > call->n / request->branches[i] ? call->n : level * request->branches[i];
        nodes += level;
    }
    pgkm_model_check_size(request, nodes, nodes);
}

/*
 * Fits the rows of the call; NULL when there are none.
 *
 *   rows := SELECT features, weight FROM relation, as the caller; or those that are loaded
 *   return the mean of all rows, the clusters of all rows, the clusters of the rows of each cluster, ...
 */
static const PgkmResult *fit_tree(TableCall *call, const char *function, bool is_value)
{
    table_call_find(call, TABLE_READ);
    table_call_read(call, function, {});
    if (call->n == 0)
        return NULL;
    if (is_value)
        check_size(call);

    const PgkmResult *const tree = table_call_fit(call);

    warn_fewer_leaves(call, tree);
    return tree;
}

/* kmeans_tree(relation, features, branches, k, options, ...) -> setof (node_id, parent_id, level, centroid, size) */
Datum pgkm_kmeans_tree(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const target = pgkm_result_begin(fcinfo);
    TableCall *const call = read_arguments(fcinfo, "kmeans_tree");
    const PgkmResult *const tree = fit_tree(call, "kmeans_tree", false);

    if (tree != NULL) {
        const PgkmModel model = {.k = tree->k,
                                 .d = tree->d,
                                 .metric = PGKM_L2,
                                 .centroids = tree->centroids,
                                 .sizes = tree->sizes,
                                 .within_ss = tree->within_ss,
                                 .masses = NULL,
                                 .center = tree->center,
                                 .scale = tree->scale,
                                 .fills = NULL,
                                 .columns = {}};

        tree_put_nodes(&model, tree->parents, tree->levels, target);
    }
    table_call_destroy(call);
    return (Datum)0;
}

/* kmeans_tree_fit(relation, features, branches, k, options, ...) -> kmeans_tree; NULL when there are no rows */
Datum pgkm_kmeans_tree_fit(PG_FUNCTION_ARGS)
{
    const TupleDesc tupdesc = tree_tupdesc(fcinfo);
    TableCall *const call = read_arguments(fcinfo, "kmeans_tree_fit");
    const PgkmResult *const tree = fit_tree(call, "kmeans_tree_fit", true);

    return table_call_return(call, fcinfo, tree == NULL ? (Datum)0 : tree_build(tree, call, tupdesc));
}
