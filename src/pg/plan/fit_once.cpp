/*
 * fit_once.cpp - a custom scan that keeps the result of a subquery that fits.
 *
 * SELECT kmeans_predict(s.m, f) FROM t, (SELECT kmeans_fit(...) AS m) AS s: as kmeans_fit is volatile, the
 * planner does not put it in the place of s.m. But a nested loop may read the subquery again for each row
 * of t: the planner thinks nothing of that where it expects one row. So its rows are kept in between, by the Material
 * below the scan.
 */
#include "pg/plan/plan.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/pathnode.h"
}

/* --- in the executor --- */

static PlanState *child_of(const CustomScanState *node)
{
    return (PlanState *)linitial(node->custom_ps);
}

/* Only where its rows may be asked for again the server's Material keeps them. */
static void begin_fit(CustomScanState *node, EState *estate, int eflags)
{
    Plan *const material = (Plan *)linitial(((const CustomScan *)node->ss.ps.plan)->custom_plans);
    const int again = (eflags & ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)) | EXEC_FLAG_REWIND;

    node->custom_ps = list_make1(ExecInitNode(material, estate, again));
}

static TupleTableSlot *next_row(CustomScanState *node)
{
    PlanState *const ps = &node->ss.ps;
    TupleTableSlot *const slot = node->ss.ss_ScanTupleSlot;
    TupleTableSlot *const kept = ExecProcNode(child_of(node));

    CHECK_FOR_INTERRUPTS();
    ResetExprContext(ps->ps_ExprContext);
    ExecClearTuple(slot);
    if (TupIsNull(kept))
        return ps->ps_ProjInfo == NULL ? slot : ExecClearTuple(ps->ps_ProjInfo->pi_state.resultslot);
    /* The values stay with the kept row: a model may be large. */
    slot_getallattrs(kept);
    memcpy(slot->tts_values, kept->tts_values, slot->tts_tupleDescriptor->natts * sizeof(Datum));
    memcpy(slot->tts_isnull, kept->tts_isnull, slot->tts_tupleDescriptor->natts * sizeof(bool));
    ExecStoreVirtualTuple(slot);
    ps->ps_ExprContext->ecxt_scantuple = slot;
    return ps->ps_ProjInfo == NULL ? slot : ExecProject(ps->ps_ProjInfo);
}

static void rescan_fit(CustomScanState *node)
{
    ExecClearTuple(node->ss.ss_ScanTupleSlot);
    if (node->ss.ps.chgParam != NULL)
        UpdateChangedParamSet(child_of(node), node->ss.ps.chgParam);
    ExecReScan(child_of(node));
}

static void end_fit(CustomScanState *node)
{
    ExecEndNode(child_of(node));
}

static const CustomExecMethods exec_methods = {
    "KmeansFitOnce", begin_fit, next_row, end_fit, rescan_fit, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};

static Node *create_fit(CustomScan *)
{
    CustomScanState *const state = makeNode(CustomScanState);

    state->methods = &exec_methods;
    return (Node *)state;
}

static const CustomScanMethods scan_methods = {"KmeansFitOnce", create_fit};

/* --- in the planner --- */

static const char *const fits[] = {"pgkm_kmeans_fit",   "pgkm_gmm_table_fit", "pgkm_pca_table_fit",
                                   "pgkm_kmeans_sweep", "pgkm_kmeans_labels", "pgkm_kmeans_tree_fit"};

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
    scan->methods = &scan_methods;
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

void fit_once_keep(RelOptInfo *rel, const RangeTblEntry *rte)
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

void fit_once_install(void)
{
    RegisterCustomScanMethods(&scan_methods);
}
