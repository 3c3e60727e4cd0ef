/*
 * fit_path.cpp - offers the planner a custom scan that keeps the result of a subquery that fits.
 *
 * SELECT kmeans_predict(s.m, f) FROM t, (SELECT kmeans_fit(...) AS m) AS s: as kmeans_fit is volatile, the
 * planner does not put it in the place of s.m. But a nested loop may read the subquery again for each row
 * of t: the planner thinks nothing of that where it expects one row. So its rows are kept in between.
 */
#include "pg/plan/plan.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "optimizer/pathnode.h"
}

static const char *const fits[] = {"pgkm_kmeans_fit", "pgkm_gmm_table_fit", "pgkm_pca_table_fit", "pgkm_kmeans_sweep",
                                   "pgkm_kmeans_labels"};

static bool calls_fit(Node *node, void *context)
{
    if (node == NULL)
        return false;
    if (IsA(node, FuncExpr) && pgkm_plan_source_among(((FuncExpr *)node)->funcid, fits, lengthof(fits)))
        return true;
    return pgkm_expression_tree_walker(node, calls_fit, context);
}

static Plan *plan_fit(PlannerInfo *, RelOptInfo *, CustomPath *path, List *tlist, List *, List *children)
{
    CustomScan *const scan = makeNode(CustomScan);

    /* It scans no relation: as a join it describes its rows itself, and they are the child's. */
    scan->scan.scanrelid = 0;
    scan->scan.plan.targetlist = tlist;
    scan->flags = path->flags;
    scan->custom_plans = children;
    scan->custom_scan_tlist = (List *)copyObjectImpl(((Plan *)linitial(children))->targetlist);
    scan->methods = &fit_scan_methods;
    return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {"KmeansFitOnce", plan_fit, NULL};

/* At the costs of what it keeps, which are those of the fit. */
static Path *keep(Path *path)
{
    CustomPath *const kept = makeNode(CustomPath);

    kept->path = *path;
    kept->path.type = T_CustomPath;
    kept->path.pathtype = T_CustomScan;
    kept->flags = CUSTOMPATH_SUPPORT_PROJECTION;
    kept->custom_paths = list_make1(create_material_path(path->parent, path));
    kept->methods = &path_methods;
    return &kept->path;
}

void fit_path_keep(RelOptInfo *rel, const RangeTblEntry *rte)
{
    ListCell *cell;

    if (rte->rtekind != RTE_SUBQUERY || rel->subroot == NULL ||
        !calls_fit((Node *)rel->subroot->parse->targetList, NULL))
        return;
    /* The scan is put below what the subquery's own scan computes and tests, which may depend on a row of t. */
    foreach (cell, rel->pathlist)
        if (IsA(lfirst(cell), SubqueryScanPath)) {
            SubqueryScanPath *const scan = (SubqueryScanPath *)lfirst(cell);

            scan->subpath = keep(scan->subpath);
        }
}

void fit_path_install(void)
{
    RegisterCustomScanMethods(&fit_scan_methods);
}
