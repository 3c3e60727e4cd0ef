/*
 * fit_scan.cpp - has the Material below it keep its rows, and returns them as often as it is asked.
 */
#include "pg/plan/plan.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
}

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

const CustomScanMethods fit_scan_methods = {"KmeansFitOnce", create_fit};
