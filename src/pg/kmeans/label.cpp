/*
 * label.cpp - the label column's arguments, and reading rows to write labels to.
 */
#include "pg/table/update.h"

extern "C" {
#include "parser/scansup.h"
#include "utils/builtins.h"
}

void label_target_arguments(LabelTarget *target, FunctionCallInfo fcinfo, int number, const char *usual)
{
    memset(target, 0, sizeof *target);
    target->named = !PG_ARGISNULL(number);
    target->overwrite = !PG_ARGISNULL(number + 1) && PG_GETARG_BOOL(number + 1);

    char *const name = target->named ? TextDatumGetCString(PG_GETARG_DATUM(number)) : pstrdup(usual);

    if (name[0] == '\0')
        ereport(ERROR, (errcode(ERRCODE_INVALID_NAME), errmsg("label_column must not be empty")));
    truncate_identifier(name, strlen(name), true);
    target->name = name;
}

/* Labels that come from themselves would never settle. */
static void check_label_is_no_input(const TableCall *call, const char *label)
{
    bool used = call->weight != NULL && strcmp(call->weight->name, label) == 0;

    for (int i = 0; i < call->n_features; ++i)
        used = used || strcmp(call->features[i].name, label) == 0;
    if (used)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("label column \"%s\" must not be among the features or be the weight", label)));
}

TableRows *table_read_for_update(TableCall *call, FunctionCallInfo fcinfo, Oid id, LabelTarget *target,
                                 int weight, const char *function)
{
    TableQuery query;

    table_lock_for_update(&call->relation, id);
    table_call_find_columns(call, fcinfo, weight);
    check_label_is_no_input(call, target->name);
    label_target_check(target, &call->relation, call->k);

    memset(&query, 0, sizeof query);
    query.label = target->missing ? NULL : target->name;
    query.need_ctid = true;
    query.new_snapshot = true;
    return table_call_read(call, function, &query);
}
