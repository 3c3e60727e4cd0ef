/*
 * fit_scan.cpp - reads its child once and returns the rows as often as it is asked.
 */
#include "pg/plan/plan.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/tuplestore.h"
}

struct FitScan {
    CustomScanState css;   /* first: the executor knows only this */
    Tuplestorestate *rows; /* NULL: not read yet */
    TupleTableSlot *kept;  /* a row of them */
};

static PlanState *child_of(const FitScan *scan)
{
    return (PlanState *)linitial(scan->css.custom_ps);
}

static void begin_fit(CustomScanState *node, EState *estate, int eflags)
{
    FitScan *const scan = (FitScan *)node;
    const CustomScan *plan = (const CustomScan *)node->ss.ps.plan;
    const int once = eflags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);

    node->custom_ps = list_make1(ExecInitNode((Plan *)linitial(plan->custom_plans), estate, once));
    scan->kept = ExecInitExtraTupleSlot(estate, node->ss.ss_ScanTupleSlot->tts_tupleDescriptor, &TTSOpsMinimalTuple);
}

static void read_child(FitScan *scan)
{
    const MemoryContext caller = MemoryContextSwitchTo(scan->css.ss.ps.state->es_query_cxt);

    scan->rows = tuplestore_begin_heap(false, false, work_mem);
    MemoryContextSwitchTo(caller);
    for (;;) {
        TupleTableSlot *const slot = ExecProcNode(child_of(scan));

        if (TupIsNull(slot))
            return;
        tuplestore_puttupleslot(scan->rows, slot);
    }
}

static TupleTableSlot *next_row(CustomScanState *node)
{
    FitScan *const scan = (FitScan *)node;
    PlanState *const ps = &node->ss.ps;
    TupleTableSlot *const slot = node->ss.ss_ScanTupleSlot;

    CHECK_FOR_INTERRUPTS();
    if (scan->rows == NULL)
        read_child(scan);
    ResetExprContext(ps->ps_ExprContext);
    ExecClearTuple(slot);
    if (!tuplestore_gettupleslot(scan->rows, true, false, scan->kept))
        return ps->ps_ProjInfo == NULL ? slot : ExecClearTuple(ps->ps_ProjInfo->pi_state.resultslot);
    /* The values stay with the kept tuple: a model may be large. */
    slot_getallattrs(scan->kept);
    memcpy(slot->tts_values, scan->kept->tts_values, slot->tts_tupleDescriptor->natts * sizeof(Datum));
    memcpy(slot->tts_isnull, scan->kept->tts_isnull, slot->tts_tupleDescriptor->natts * sizeof(bool));
    ExecStoreVirtualTuple(slot);
    ps->ps_ExprContext->ecxt_scantuple = slot;
    return ps->ps_ProjInfo == NULL ? slot : ExecProject(ps->ps_ProjInfo);
}

static void forget_rows(FitScan *scan)
{
    ExecClearTuple(scan->css.ss.ss_ScanTupleSlot);
    ExecClearTuple(scan->kept);
    if (scan->rows != NULL)
        tuplestore_end(scan->rows);
    scan->rows = NULL;
}

/* The rows change only where the child depends on a parameter that has changed. */
static void rescan_fit(CustomScanState *node)
{
    FitScan *const scan = (FitScan *)node;

    if (node->ss.ps.chgParam != NULL)
        UpdateChangedParamSet(child_of(scan), node->ss.ps.chgParam);
    if (child_of(scan)->chgParam != NULL)
        forget_rows(scan);
    else if (scan->rows != NULL)
        tuplestore_rescan(scan->rows);
}

static void end_fit(CustomScanState *node)
{
    FitScan *const scan = (FitScan *)node;

    forget_rows(scan);
    ExecEndNode(child_of(scan));
}

static const CustomExecMethods exec_methods = {
    "KmeansFitOnce", begin_fit, next_row, end_fit, rescan_fit, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};

static Node *create_fit(CustomScan *)
{
    FitScan *const scan = (FitScan *)newNode(sizeof(FitScan), T_CustomScanState);

    scan->css.methods = &exec_methods;
    return (Node *)scan;
}

const CustomScanMethods fit_scan_methods = {"KmeansFitOnce", create_fit};
