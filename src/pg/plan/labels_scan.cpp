/*
 * labels_scan.cpp - the executor's side of kmeans_labels in FROM.
 */
#include "pg/plan/plan.h"

#include "pg/fit/labels.h"
#include "pg/kmeans/model.h"
#include "pg/progress.h"

extern "C" {
#include "catalog/objectaccess.h"
#include "catalog/pg_proc.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "pgstat.h"
#include "utils/acl.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

struct LabelsScan {
    CustomScanState css; /* first: the executor knows only this */
    FuncExpr *call;
    List *arguments;       /* ExprState */
    Bitmapset *parameters; /* that the arguments depend on */
    FmgrInfo function;
    FunctionCallInfo fcinfo;
    MemoryContext context; /* of the labels; reset before others are made */
    bool fitted;
    PgkmRunReport run; /* of the last fit; its function is NULL before the first, and when there were no rows */
    TableLabels labels;
    TableCursor cursor;
};

/* Looking for the parameters that an expression depends on. */
struct ParameterSearch {
    const PlannedStmt *plan;
    Bitmapset *found;
};

/* A subquery depends on what its plan takes from outside, except what it is passed. */
static Bitmapset *parameters_of_subquery(const SubPlan *subquery, const PlannedStmt *plan)
{
    const Plan *const body = (const Plan *)list_nth(plan->subplans, subquery->plan_id - 1);
    Bitmapset *parameters = bms_copy(body->extParam);
    ListCell *cell;

    foreach (cell, subquery->parParam)
        parameters = bms_del_member(parameters, lfirst_int(cell));
    return parameters;
}

static bool find_parameters(Node *node, void *argument)
{
    ParameterSearch *const search = (ParameterSearch *)argument;

    if (node == NULL)
        return false;
    if (IsA(node, Param) && ((Param *)node)->paramkind == PARAM_EXEC)
        search->found = bms_add_member(search->found, ((Param *)node)->paramid);
    if (IsA(node, SubPlan))
        search->found = bms_add_members(search->found, parameters_of_subquery((SubPlan *)node, search->plan));
    return pgkm_expression_tree_walker(node, find_parameters, argument);
}

/* What the executor asks before it calls a function in FROM. */
static void check_privilege(Oid function)
{
    const AclResult result = pgkm_function_aclcheck(function, GetUserId());

    if (result != ACLCHECK_OK)
        aclcheck_error(result, OBJECT_FUNCTION, get_func_name(function));
    InvokeFunctionExecuteHook(function);
}

static void begin_labels(CustomScanState *node, EState *estate, int)
{
    LabelsScan *const scan = (LabelsScan *)node;
    FuncExpr *const call = (FuncExpr *)linitial(((CustomScan *)node->ss.ps.plan)->custom_exprs);
    ParameterSearch search = {estate->es_plannedstmt, NULL};

    check_privilege(call->funcid);
    scan->call = call;
    scan->arguments = ExecInitExprList(call->args, &node->ss.ps);
    (void)find_parameters((Node *)call, &search);
    scan->parameters = search.found;
    fmgr_info(call->funcid, &scan->function);
    fmgr_info_set_expr((Node *)call, &scan->function);
    scan->fcinfo = (FunctionCallInfo)palloc0(SizeForFunctionCallInfo(list_length(call->args)));
    InitFunctionCallInfoData(*scan->fcinfo, &scan->function, list_length(call->args), call->inputcollid, NULL, NULL);
    scan->context = AllocSetContextCreate(estate->es_query_cxt, "kmeans labels", ALLOCSET_DEFAULT_SIZES);
}

static void evaluate_arguments(LabelsScan *scan)
{
    ExprContext *const context = scan->css.ss.ps.ps_ExprContext;
    ListCell *cell;
    int i = 0;

    foreach (cell, scan->arguments) {
        NullableDatum *const argument = &scan->fcinfo->args[i++];

        argument->value = ExecEvalExprSwitchContext((ExprState *)lfirst(cell), context, &argument->isnull);
    }
}

/* Runs the fit, at the start or after a reset. Between rows other queries may run and show their own progress, so
 * this one's ends here. The rows themselves are not needed any more. */
static void fit_labels(LabelsScan *scan)
{
    const MemoryContext caller = MemoryContextSwitchTo(scan->context);
    PgStat_FunctionCallUsage usage;

    evaluate_arguments(scan);
    pgstat_init_function_usage(scan->fcinfo, &usage);
    table_labels_fit(&scan->labels, &kmeans_kind, scan->fcinfo, "kmeans_labels");
    pgkm_run_end(&scan->labels.call->run);
    memset(&scan->run, 0, sizeof scan->run);
    if (scan->labels.result != NULL)
        scan->run = *pgkm_last_run();
    Assert(scan->labels.call->loaded == NULL);
    if (scan->labels.rows->used != NULL)
        pgkm_rows_clear(scan->labels.rows->used);
    pgstat_end_function_usage(&usage, true);
    table_cursor_start(&scan->cursor);
    scan->fitted = true;
    MemoryContextSwitchTo(caller);
}

static TupleTableSlot *store_label(const LabelsScan *scan, TupleTableSlot *slot)
{
    TableLabel label;

    table_labels_get(&scan->labels, &scan->cursor, &label);
    slot->tts_values[LABEL_CTID] = PointerGetDatum(label.ctid);
    slot->tts_values[LABEL_TABLE] = ObjectIdGetDatum(label.table);
    slot->tts_isnull[LABEL_CTID] = slot->tts_isnull[LABEL_TABLE] = false;
    slot->tts_isnull[LABEL_CLUSTER_ID] = slot->tts_isnull[LABEL_DISTANCE] = !label.clustered;
    if (label.clustered) {
        slot->tts_values[LABEL_CLUSTER_ID] = Int32GetDatum(label.cluster);
        slot->tts_values[LABEL_DISTANCE] = Float8GetDatum(label.distance);
    }
    return ExecStoreVirtualTuple(slot);
}

/* The next row in the scan's direction; an empty slot behind the last and before the first. */
static TupleTableSlot *fetch_label(LabelsScan *scan)
{
    TupleTableSlot *const slot = scan->css.ss.ss_ScanTupleSlot;
    const TableRows *const rows = scan->labels.rows;

    ExecClearTuple(slot);
    if (ScanDirectionIsBackward(scan->css.ss.ps.state->es_direction) ? table_cursor_previous(&scan->cursor, rows)
                                                                     : table_cursor_next(&scan->cursor, rows))
        return store_label(scan, slot);
    return slot;
}

/* ExecScan() would take a scan of no relation for a join and ask it to repeat a row after a lock;
 * such rows are read through the tuple store (labels_path.cpp). */
static TupleTableSlot *next_labels(CustomScanState *node)
{
    LabelsScan *const scan = (LabelsScan *)node;
    PlanState *const ps = &node->ss.ps;
    ExprContext *const context = ps->ps_ExprContext;

    if (!scan->fitted)
        fit_labels(scan);
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        ResetExprContext(context);

        TupleTableSlot *const slot = fetch_label(scan);

        if (TupIsNull(slot))
            return ps->ps_ProjInfo == NULL ? slot : ExecClearTuple(ps->ps_ProjInfo->pi_state.resultslot);
        context->ecxt_scantuple = slot;
        if (ExecQual(ps->qual, context))
            return ps->ps_ProjInfo == NULL ? slot : ExecProject(ps->ps_ProjInfo);
        InstrCountFiltered1(node, 1);
    }
}

static void forget_labels(LabelsScan *scan)
{
    ExecClearTuple(scan->css.ss.ss_ScanTupleSlot);
    scan->fitted = false;
    MemoryContextReset(scan->context);
}

static void rescan_labels(CustomScanState *node)
{
    LabelsScan *const scan = (LabelsScan *)node;

    if (bms_overlap(node->ss.ps.chgParam, scan->parameters))
        forget_labels(scan);
    else if (scan->fitted)
        table_cursor_start(&scan->cursor);
}

static void end_labels(CustomScanState *node)
{
    LabelsScan *const scan = (LabelsScan *)node;

    forget_labels(scan);
    MemoryContextDelete(scan->context);
}

/* An argument that the plan knows; NULL for another one. */
static const Const *constant_argument(const LabelsScan *scan, int number)
{
    const Node *const argument = (const Node *)list_nth(scan->call->args, number);

    return IsA(argument, Const) && !((const Const *)argument)->constisnull ? (const Const *)argument : NULL;
}

static void explain_fit(const PgkmRunReport *run, ExplainState *es)
{
    const double *const seconds = run->fit.job.seconds;

    ExplainPropertyText("Backend", run->fit.job.backend, es);
    ExplainPropertyText("Rows Read", run->scan.way, es);
    ExplainPropertyInteger("Iterations", NULL, run->fit.n_iter, es);
    if (!es->timing)
        return;
    ExplainPropertyFloat("Reading Time", "ms", run->scan.seconds * 1e3, 3, es);
    ExplainPropertyFloat("Seeding Time", "ms", seconds[PGKM_SEEDING] * 1e3, 3, es);
    ExplainPropertyFloat("Iterations Time", "ms", (seconds[PGKM_ITERATING] + seconds[PGKM_REFINING]) * 1e3, 3, es);
    ExplainPropertyFloat("Labels Time", "ms", seconds[PGKM_LABELLING] * 1e3, 3, es);
}

static void explain_labels(CustomScanState *node, List *, ExplainState *es)
{
    const LabelsScan *const scan = (const LabelsScan *)node;
    const char *const name = get_func_name(scan->call->funcid);
    const Const *const relation = constant_argument(scan, TABLE_RELATION);
    const Const *const k = constant_argument(scan, TABLE_K);

    if (name != NULL)
        ExplainPropertyText("Function", name, es);
    if (relation != NULL)
        ExplainPropertyText("Relation", DatumGetCString(DirectFunctionCall1(regclassout, relation->constvalue)), es);
    if (k != NULL)
        ExplainPropertyInteger("Clusters", NULL, DatumGetInt64(k->constvalue), es);
    if (scan->run.function != NULL)
        explain_fit(&scan->run, es);
}

static const CustomExecMethods exec_methods = {"KmeansLabels", begin_labels, next_labels,   end_labels, rescan_labels,
                                               NULL,           NULL,         NULL,          NULL,       NULL,
                                               NULL,           NULL,         explain_labels};

static Node *create_labels(CustomScan *)
{
    LabelsScan *const scan = (LabelsScan *)newNode(sizeof(LabelsScan), T_CustomScanState);

    scan->css.methods = &exec_methods;
    return (Node *)scan;
}

const CustomScanMethods labels_scan_methods = {"KmeansLabels", create_labels};
