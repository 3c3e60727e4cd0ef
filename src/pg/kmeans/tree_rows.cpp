/*
 * tree_rows.cpp - kmeans_tree as a value: built, read back and checked; its nodes; new rows brought down to a leaf.
 *
 * A row goes from the root to the nearest child, of several the first, until it is at a leaf. These are the labels of
 * the fits of which the tree is made. The leaf need not be the nearest of all leaves: kmeans_tree_probe finds these.
 */
#include "pg/kmeans/tree.h"

#include <algorithm>
#include <functional>

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_tree_nodes);
PG_FUNCTION_INFO_V1(pgkm_kmeans_tree_predict);
PG_FUNCTION_INFO_V1(pgkm_kmeans_tree_path);
PG_FUNCTION_INFO_V1(pgkm_kmeans_tree_probe);
}

enum RowArgument { ARGUMENT_TREE, ARGUMENT_FEATURES, ARGUMENT_P };

/* Those of kmeans_model, but that k is nodes; and parents. */
static const PgkmField fields[] = {{"nodes", INT4OID},
                                   {"d", INT4OID},
                                   {"centroids", FLOAT8ARRAYOID},
                                   {"size", INT8ARRAYOID},
                                   {"within_ss", FLOAT8ARRAYOID},
                                   {"inertia", FLOAT8OID},
                                   {"n_iter", INT4OID},
                                   {"converged", BOOLOID},
                                   {"n", INT8OID},
                                   {"metric", TEXTOID},
                                   {"seed", INT8OID},
                                   {"center", FLOAT8ARRAYOID},
                                   {"scale", FLOAT8ARRAYOID},
                                   {"origin", InvalidOid},
                                   {"fills", FLOAT8ARRAYOID},
                                   {"parents", INT4ARRAYOID}};
static const PgkmCompositeType tree_type = {"kmeans_tree", fields, lengthof(fields)};

TupleDesc tree_tupdesc(FunctionCallInfo fcinfo)
{
    return origin_tupdesc(fcinfo, &tree_type);
}

static Datum integers(const int32 *values, int32 count)
{
    Datum *const elements = (Datum *)palloc_extended((Size)count * sizeof(Datum), MCXT_ALLOC_HUGE);

    for (int32 i = 0; i < count; ++i)
        elements[i] = Int32GetDatum(values[i]);

    const Datum array = PointerGetDatum(construct_array(elements, count, INT4OID, 4, true, TYPALIGN_INT));

    pfree(elements);
    return array;
}

/* --- the value --- */

Datum tree_build(const PgkmResult *result, const TableCall *call, TupleDesc tupdesc)
{
    PgkmResult tree = *result;
    bool *const has_child = (bool *)palloc0(tree.k * sizeof(bool));

    for (int32 i = 1; i < tree.k; ++i)
        has_child[tree.parents[i]] = true;
    tree.inertia = 0;
    for (int32 i = 0; i < tree.k; ++i)
        tree.inertia += has_child[i] ? 0 : tree.within_ss[i];
    pfree(has_child);

    const PgkmValue origin =
        origin_build(tupdesc, &kmeans_kind, &call->request.kmeans, call, tree.center, tree.scale, tree.d);

    return pgkm_model_build(&tree, &call->request, origin, call->fills, tupdesc, integers(tree.parents, tree.k));
}

/* Whether these are the parents of a tree; they become the tree's. */
static bool take_parents(const NullableDatum *field, PgkmTree *tree, MemoryContext context)
{
    const int32 count = tree->model.k;
    const int32 *const parents = field->isnull ? NULL : (const int32 *)pgkm_array_values(field->value, {count});
    int32 *const all = (int32 *)MemoryContextAllocExtended(context, 4 * (Size)count * sizeof(int32),
                                                           MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

    tree->parents = all;
    tree->levels = all + count;
    tree->first = tree->levels + count;
    tree->children = tree->first + count;
    if (parents == NULL || parents[0] != -1)
        return false;
    tree->parents[0] = -1;
    for (int32 i = 1; i < count; ++i) {
        const int32 parent = parents[i];

        if (parent < 0 || parent >= i || (parent != parents[i - 1] && tree->children[parent] > 0))
            return false;
        if (tree->children[parent]++ == 0)
            tree->first[parent] = i;
        tree->parents[i] = parent;
        tree->levels[i] = tree->levels[parent] + 1;
    }
    return true;
}

static void read_tree(Datum composite, MemoryContext context, PgkmTree *tree)
{
    PgkmModelFields from;

    pgkm_model_open(composite, &tree_type, context, &from);
    pgkm_model_read_clusters(&from, &tree->model);
    if (tree->model.metric == PGKM_HAMMING)
        pgkm_raise_field(&from, "metric", "be 'l2' or 'cosine'");
    if (!take_parents(pgkm_model_field(&from, "parents"), tree, context == NULL ? CurrentMemoryContext : context))
        pgkm_raise_field(&from, "parents", "hold -1, then for each node an earlier one, with children side by side");
}

void tree_put_nodes(const PgkmModel *model, const int32 *parents, const int32 *levels, ReturnSetInfo *target)
{
    double *const values = (double *)palloc(model->d * sizeof(double));

    for (int32 i = 0; i < model->k; ++i) {
        CHECK_FOR_INTERRUPTS();
        pgkm_model_centroid(model, i, values);

        const Datum centroid = pgkm_array(values, {model->d});

        pgkm_result_put(target, {i, pgkm_value_if(parents[i] >= 0, parents[i]), levels[i], centroid, model->sizes[i]});
        pfree(DatumGetPointer(centroid));
    }
}

/* kmeans_tree_nodes(tree kmeans_tree) -> setof (node_id, parent_id, level, centroid, size), as kmeans_tree has them */
Datum pgkm_kmeans_tree_nodes(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const target = pgkm_result_begin(fcinfo);
    PgkmTree tree;

    read_tree(PG_GETARG_DATUM(ARGUMENT_TREE), NULL, &tree);
    tree_put_nodes(&tree.model, tree.parents, tree.levels, target);
    return (Datum)0;
}

/* --- rows --- */

static const PgkmTree *tree_argument(FunctionCallInfo fcinfo)
{
    return pgkm_cached_model<PgkmTree, read_tree>(fcinfo, ARGUMENT_TREE);
}

/* The leaf to which the row of the call goes, or -1 for a NULL row. */
static int32 descend(FunctionCallInfo fcinfo, const PgkmTree *tree)
{
    double *const row = pgkm_model_row(fcinfo, ARGUMENT_FEATURES, &tree->model);
    const int32 d = tree->model.d;
    int32 node = 0;

    if (row == NULL)
        return -1;
    while (tree->children[node] > 0) {
        CHECK_FOR_INTERRUPTS(); /* trees made by hand can be deep */

        const double *const centroids = tree->model.centroids + (Size)tree->first[node] * d;
        double square;
        int32 child;

        pgkm_nearest(row, centroids, tree->children[node], d, &child, &square);
        (void)pgkm_model_distance(square, tree->model.metric); /* none is the nearest beyond the range of float64 */
        node = tree->first[node] + child;
    }
    pfree(row);
    return node;
}

/* kmeans_tree_predict(tree kmeans_tree, features) -> integer: the leaf of a row. Errors as of kmeans_predict. */
Datum pgkm_kmeans_tree_predict(PG_FUNCTION_ARGS)
{
    const int32 leaf = PG_ARGISNULL(ARGUMENT_TREE) ? -1 : descend(fcinfo, tree_argument(fcinfo));

    if (leaf < 0)
        PG_RETURN_NULL();
    PG_RETURN_INT32(leaf);
}

/* kmeans_tree_path(tree kmeans_tree, features) -> integer[]: the nodes from the root to that leaf. */
Datum pgkm_kmeans_tree_path(PG_FUNCTION_ARGS)
{
    if (PG_ARGISNULL(ARGUMENT_TREE))
        PG_RETURN_NULL();

    const PgkmTree *const tree = tree_argument(fcinfo);
    const int32 leaf = descend(fcinfo, tree);

    if (leaf < 0)
        PG_RETURN_NULL();

    const int32 count = tree->levels[leaf] + 1;
    int32 *const path = (int32 *)palloc(count * sizeof(int32));

    for (int32 node = leaf; node >= 0; node = tree->parents[node])
        path[tree->levels[node]] = node;
    PG_RETURN_DATUM(integers(path, count));
}

struct Leaf {
    double square;
    int32 node;
    bool operator>(const Leaf &other) const
    {
        return square != other.square ? square > other.square : node > other.node;
    }
};

/* The distances of all leaves; returns how many there are. Leaves that lie side by side are measured together. */
static int32 measure_leaves(const PgkmTree *tree, const double *row, Leaf *leaves)
{
    const PgkmModel *const model = &tree->model;
    double *const squares = (double *)palloc_extended((Size)model->k * sizeof(double), MCXT_ALLOC_HUGE);
    int32 count = 0;

    for (int32 node = 0, end; node < model->k; node = end) {
        CHECK_FOR_INTERRUPTS();
        for (end = node; end < model->k && tree->children[end] == 0; ++end)
            ;
        if (end == node) {
            ++end;
            continue;
        }
        pgkm_distances(row, model->centroids + (Size)node * model->d, end - node, model->d, squares);
        for (int32 i = node; i < end; ++i)
            leaves[count++] = {squares[i - node], i};
    }
    pfree(squares);
    return count;
}

/*
 * kmeans_tree_probe(tree kmeans_tree, features, p bigint) -> setof (leaf, distance): the p nearest of all leaves, the
 * nearest first, of equal ones the lowest. 22023 for p below 1.
 */
Datum pgkm_kmeans_tree_probe(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const target = pgkm_result_begin(fcinfo);
    const int64 p = pgkm_k_argument(fcinfo, ARGUMENT_P, "p");
    const PgkmTree *const tree = tree_argument(fcinfo);
    double *const row = pgkm_model_row(fcinfo, ARGUMENT_FEATURES, &tree->model, 1);

    if (row == NULL)
        return (Datum)0;

    Leaf *const leaves = (Leaf *)palloc_extended((Size)tree->model.k * sizeof(Leaf), MCXT_ALLOC_HUGE);
    const int32 count = measure_leaves(tree, row, leaves);

    std::make_heap(leaves, leaves + count, std::greater<Leaf>()); /* the nearest is at the front */
    for (int32 left = count; left > 0 && count - left < p; --left) {
        CHECK_FOR_INTERRUPTS();
        pgkm_result_put(target, {leaves[0].node, pgkm_model_distance(leaves[0].square, tree->model.metric)});
        std::pop_heap(leaves, leaves + left, std::greater<Leaf>());
    }
    pfree(leaves);
    pfree(row);
    return (Datum)0;
}
