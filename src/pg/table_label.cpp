/*
 * table_label.cpp - the label column as an argument, and reading rows to write labels to.
 */
#include "pg/table_update.h"

extern "C" {
#include "parser/scansup.h"
#include "utils/builtins.h"
}

char *table_label_argument(FunctionCallInfo fcinfo, int number)
{
    if (PG_ARGISNULL(number))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("label_column must not be null")));

    char *label = TextDatumGetCString(PG_GETARG_DATUM(number));

    if (label[0] == '\0')
        ereport(ERROR, (errcode(ERRCODE_INVALID_NAME), errmsg("label_column must not be empty")));
    truncate_identifier(label, strlen(label), true);
    return label;
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

TableRows *table_read_for_update(TableCall *call, FunctionCallInfo fcinfo, Oid id, const char *label,
                                 int weight, const char *function)
{
    TableQuery query;

    table_lock_for_update(&call->relation, id);
    table_call_find_columns(call, fcinfo, weight);
    check_label_is_no_input(call, label);
    table_ensure_label(&call->relation, label);
    table_check_label(&call->relation, label);

    memset(&query, 0, sizeof query);
    query.label = label;
    query.need_ctid = true;
    query.new_snapshot = true;
    return table_call_read(call, function, &query);
}
