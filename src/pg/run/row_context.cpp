/*
 * row_context.cpp - names the row that an error is about.
 */
#include "pg/run/row_context.h"

extern "C" {
#include "nodes/execnodes.h"
}

/* Whether this process has a part of the group alone, as in a parallel plan. */
static bool is_part(const Node *node)
{
    return node != NULL && IsA(node, AggState) && DO_AGGSPLIT_SKIPFINAL(((const AggState *)node)->aggsplit);
}

/* Called while an error is being reported. */
static void tell_row(void *argument)
{
    const PgkmRowContext *const context = (const PgkmRowContext *)argument;

    if (context->of_partition)
        errcontext("row %lld of the partition", (long long)context->row);
    else if (is_part(context->node))
        errcontext("row %lld of this process's part of the group, skipped rows not counted", (long long)context->row);
    else
        errcontext("row %lld of the group, skipped rows not counted", (long long)context->row);
}

static void begin(PgkmRowContext *context, int64 row, bool of_partition, Node *node)
{
    context->row = row;
    context->of_partition = of_partition;
    context->node = node;
    context->callback.callback = tell_row;
    context->callback.arg = context;
    context->callback.previous = error_context_stack;
    error_context_stack = &context->callback;
}

void pgkm_row_of_group(PgkmRowContext *context, FunctionCallInfo fcinfo, int64 row)
{
    begin(context, row, false, fcinfo->context);
}

void pgkm_row_of_partition(PgkmRowContext *context, int64 row)
{
    begin(context, row, true, NULL);
}
