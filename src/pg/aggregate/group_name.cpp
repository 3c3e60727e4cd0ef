/*
 * group_name.cpp - names the group, and the row of it or of a partition, that an error is about.
 *
 * While a function of an aggregate runs, the executor's node has a row of the group at hand, in which the columns of
 * its key are filled in. EXPLAIN's functions know what these are called.
 */
#include "pg/aggregate/group_name.h"

#include "pg/compat.h"

extern "C" {
#include "executor/nodeAgg.h"
#include "mb/pg_wchar.h"
#include "nodes/execnodes.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
}

/* A longer value is cut. */
#define MOST_BYTES 64

/* Columns of the rows that a node reads. */
struct GroupKey {
    int count;
    const AttrNumber *columns;
};

/* Those by which it groups at the moment. */
static GroupKey key_of(const AggState *node)
{
    if (node->hashcontext != NULL && node->curaggcontext == node->hashcontext) {
        const Agg *const hashed = node->perhash[node->current_set].aggnode;

        return {hashed->numCols, hashed->grpColIdx};
    }

    const AggStatePerPhase phase = node->phase;

    return {phase->numsets > 0 ? phase->gset_lengths[node->current_set] : phase->aggnode->numCols,
            phase->aggnode->grpColIdx};
}

static List *naming_context(const AggState *node, Plan *child)
{
    PlannedStmt *const statement = node->ss.ps.state->es_plannedstmt;
    List *const names =
        select_rtable_names_for_explain(statement->rtable, bms_add_range(NULL, 1, list_length(statement->rtable)));

    return set_deparse_context_plan(deparse_context_for_plan_tree(statement, names), child, NIL);
}

static void append_value(StringInfo text, TupleTableSlot *slot, AttrNumber column)
{
    bool is_null;
    const Datum value = slot_getattr(slot, column, &is_null);
    Oid output;
    bool is_varlena;

    if (is_null) {
        appendStringInfoString(text, "NULL");
        return;
    }
    getTypeOutputInfo(TupleDescAttr(slot->tts_tupleDescriptor, column - 1)->atttypid, &output, &is_varlena);

    const char *const shown = OidOutputFunctionCall(output, value);
    const int length = (int)strlen(shown);
    const int kept = pg_mbcliplen(shown, length, MOST_BYTES);

    appendBinaryStringInfo(text, shown, kept);
    appendStringInfoString(text, kept < length ? "..." : "");
}

/* The values of the key in the slot; NULL where there are none. */
static char *name_of(const AggState *node, TupleTableSlot *slot)
{
    const GroupKey key = key_of(node);

    if (key.count == 0 || TupIsNull(slot))
        return NULL;

    Plan *const child = outerPlanState(node)->plan;
    List *const context = naming_context(node, child);
    StringInfoData text;

    initStringInfo(&text);
    for (int i = 0; i < key.count; ++i) {
        const TargetEntry *const entry = get_tle_by_resno(child->targetlist, key.columns[i]);

        appendStringInfo(&text, "%s%s = ", i > 0 ? ", " : "",
                         deparse_expression((Node *)entry->expr, context, false, true));
        append_value(&text, slot, key.columns[i]);
    }
    return text.data;
}

/* The executor's node; NULL where the caller is no aggregate. */
static const AggState *node_of(FunctionCallInfo fcinfo)
{
    return fcinfo->context != NULL && IsA(fcinfo->context, AggState) ? (const AggState *)fcinfo->context : NULL;
}

char *pgkm_group_name(FunctionCallInfo fcinfo)
{
    const AggState *const node = node_of(fcinfo);

    return node == NULL ? NULL : name_of(node, node->ss.ps.ps_ExprContext->ecxt_outertuple);
}

/* The same in a transition function. Rows that the node sorts come at the end of their group, when the next one's first
 * row may have been read. */
static char *name_in_transition(FunctionCallInfo fcinfo, const AggState *node)
{
    const Aggref *const call = AggGetAggref(fcinfo);
    const bool sorted =
        call != NULL && (call->aggorder != NIL || call->aggdistinct != NIL) && !pgkm_aggregate_is_presorted(call);

    return sorted ? pgkm_group_name(fcinfo) : name_of(node, node->tmpcontext->ecxt_outertuple);
}

/* Called while an error is being reported. Only one about values is sure to come where functions can be called. */
static void tell_row(void *argument)
{
    const PgkmRowContext *const context = (const PgkmRowContext *)argument;
    const AggState *const node = context->fcinfo == NULL ? NULL : node_of(context->fcinfo);
    const bool is_part = node != NULL && DO_AGGSPLIT_SKIPFINAL(node->aggsplit); /* as in a parallel plan */
    const char *name = NULL;

    if (node != NULL && ERRCODE_TO_CATEGORY(geterrcode()) == ERRCODE_DATA_EXCEPTION)
        name = name_in_transition(context->fcinfo, node);
    if (context->fcinfo == NULL)
        errcontext("row %lld of the partition", (long long)context->row);
    else
        errcontext("row %lld of %sthe group%s%s, skipped rows not counted", (long long)context->row,
                   is_part ? "this process's part of " : "", name == NULL ? "" : " with ", name == NULL ? "" : name);
}

void pgkm_row_context_begin(PgkmRowContext *context, FunctionCallInfo fcinfo, int64 row)
{
    context->row = row;
    context->fcinfo = fcinfo;
    context->callback.callback = tell_row;
    context->callback.arg = context;
    context->callback.previous = error_context_stack;
    error_context_stack = &context->callback;
}
