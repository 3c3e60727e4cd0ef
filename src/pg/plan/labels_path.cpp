/*
 * labels_path.cpp - offers the planner a custom scan for kmeans_labels in FROM.
 */
#include "pg/plan/plan.h"

#include "pg/fit/labels.h"

extern "C" {
#include "access/sysattr.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"

Datum pgkm_kmeans_labels(PG_FUNCTION_ARGS);
}

static const Oid label_types[LABEL_COLUMNS] = {TIDOID, INT4OID, FLOAT8OID, REGCLASSOID};

static set_rel_pathlist_hook_type previous_hook = NULL;

static bool returns_labels(FuncExpr *call)
{
    TupleDesc tupdesc;

    if (get_expr_result_type((Node *)call, NULL, &tupdesc) != TYPEFUNC_COMPOSITE || tupdesc->natts != LABEL_COLUMNS)
        return false;
    for (int i = 0; i < LABEL_COLUMNS; ++i)
        if (TupleDescAttr(tupdesc, i)->atttypid != label_types[i])
            return false;
    return true;
}

/* Rows of kmeans_load can be let go between two rows of a scan. */
static bool reads_loaded_rows(const FuncExpr *call)
{
    const Const *const memory = (const Const *)llast(call->args);

    return !IsA(memory, Const) ||
           (!memory->constisnull && strcmp(TextDatumGetCString(memory->constvalue), "loaded") == 0);
}

/* The call of kmeans_labels, when this range table entry is nothing else; or NULL. */
static FuncExpr *call_of(const RangeTblEntry *rte)
{
    if (rte->rtekind != RTE_FUNCTION || rte->funcordinality || list_length(rte->functions) != 1)
        return NULL;

    Node *const expression = ((RangeTblFunction *)linitial(rte->functions))->funcexpr;

    if (!IsA(expression, FuncExpr))
        return NULL;

    FuncExpr *const call = (FuncExpr *)expression;

    return call->funcretset && list_length(call->args) == TABLE_OPTIONS + 5 &&
                   pgkm_plan_is(call->funcid, "pgkm_kmeans_labels", pgkm_kmeans_labels) && returns_labels(call) &&
                   !reads_loaded_rows(call)
               ? call
               : NULL;
}

/* Whether the query needs rows as a whole (l.*::text, or to read them again after a lock), which the tuple store
 * has. What conditions on this relation alone need is not in attr_needed. */
static bool needs_whole_rows(const RelOptInfo *rel)
{
    Bitmapset *columns = NULL;
    ListCell *cell;

    if (rel->min_attr > 0 || rel->attr_needed[0 - rel->min_attr] != NULL)
        return true;
    foreach (cell, rel->baserestrictinfo)
        pull_varattnos((Node *)lfirst_node(RestrictInfo, cell)->clause, rel->relid, &columns);
    return bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, columns);
}

/* The path over the tuple store, which ours is measured by; another extension may have put its own before it. */
static const Path *function_path(const RelOptInfo *rel)
{
    ListCell *cell;

    foreach (cell, rel->pathlist) {
        const Path *const path = (const Path *)lfirst(cell);

        if (path->pathtype == T_FunctionScan)
            return path;
    }
    return NULL;
}

static Plan *plan_labels(PlannerInfo *, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *)
{
    CustomScan *const scan = makeNode(CustomScan);

    /* It scans no relation that the executor could open: as a join it describes its rows itself. */
    scan->scan.scanrelid = 0;
    scan->scan.plan.targetlist = tlist;
    scan->scan.plan.qual = extract_actual_clauses(clauses, false);
    scan->flags = path->flags;
    /* As an expression its parameters are replaced, and what it depends on is noted. */
    scan->custom_exprs = path->custom_private;
    for (int i = 0; i < LABEL_COLUMNS; ++i) {
        Var *const column = makeVar(rel->relid, i + 1, label_types[i], -1, InvalidOid, 0);

        scan->custom_scan_tlist = lappend(scan->custom_scan_tlist, makeTargetEntry((Expr *)column, i + 1, NULL, false));
    }
    scan->methods = &labels_scan_methods;
    return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {"KmeansLabels", plan_labels, NULL};

static void add_labels_path(RelOptInfo *rel, FuncExpr *call)
{
    const Path *const plain = function_path(rel);

    if (plain == NULL)
        return;

    CustomPath *const path = makeNode(CustomPath);

    path->path = *plain;
    path->path.type = T_CustomPath;
    path->path.pathtype = T_CustomScan;
    /* Half of the server's charge for a row is for storing and reading it. */
    path->path.total_cost = plain->total_cost - plain->rows * cpu_tuple_cost / 2;
    path->path.total_cost = Max(path->path.total_cost, plain->startup_cost);
    path->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_PROJECTION;
    path->custom_private = list_make1(call);
    path->methods = &path_methods;
    add_path(rel, &path->path);
}

static void choose_path(PlannerInfo *root, RelOptInfo *rel, Index index, RangeTblEntry *rte)
{
    if (previous_hook != NULL)
        previous_hook(root, rel, index, rte);
    fit_once_keep(rel, rte);

    FuncExpr *const call = rel->reloptkind == RELOPT_BASEREL ? call_of(rte) : NULL;

    if (call != NULL && !needs_whole_rows(rel))
        add_labels_path(rel, call);
}

void labels_path_install(void)
{
    RegisterCustomScanMethods(&labels_scan_methods);
    previous_hook = set_rel_pathlist_hook;
    set_rel_pathlist_hook = choose_path;
}
