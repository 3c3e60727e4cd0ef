/*
 * group_name.cpp - the group whose result an aggregate is asked for, for errors.
 *
 * While a final function runs, the executor's node has a row of the group at hand, in which the columns of its key are
 * filled in. EXPLAIN's functions know what these are called.
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

char *pgkm_group_name(FunctionCallInfo fcinfo)
{
    if (fcinfo->context == NULL || !IsA(fcinfo->context, AggState))
        return NULL;

    AggState *const node = (AggState *)fcinfo->context;
    TupleTableSlot *const slot = node->ss.ps.ps_ExprContext->ecxt_outertuple;
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
