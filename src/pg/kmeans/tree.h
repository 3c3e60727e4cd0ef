/*
 * tree.h - kmeans_tree, the composite type of a tree of clusters, and back.
 */
#ifndef PGKM_PG_TREE_H
#define PGKM_PG_TREE_H

#include "pg/kmeans/model.h"

/* A tree as the row functions need it. Its clusters are the nodes: each behind its parent, children side by side. */
struct PgkmTree {
    PgkmModel model;
    int32 *parents;  /* -1 of the root */
    int32 *levels;   /* 0 of the root */
    int32 *first;    /* child */
    int32 *children; /* how many; 0: a leaf */
};

/* The row type of a function that returns a tree, in CurrentMemoryContext. */
TupleDesc tree_tupdesc(FunctionCallInfo fcinfo);

/* The result as a kmeans_tree datum in CurrentMemoryContext. */
Datum tree_build(const PgkmResult *result, const TableCall *call, TupleDesc tupdesc);

/* Puts (node_id, parent_id, level, centroid, size) of each node. */
void tree_put_nodes(const PgkmModel *model, const int32 *parents, const int32 *levels, ReturnSetInfo *target);

#endif
