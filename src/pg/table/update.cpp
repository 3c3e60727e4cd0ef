/*
 * update.cpp - locks a table, reads its rows and writes labels into it.
 *
 * All of it goes through SPI as the caller, so that privileges, row security, triggers and constraints hold.
 */
#include "pg/table/update.h"

#include "pg/query/citus.h"
#include "pg/table/label_lookup.h"

extern "C" {
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/params.h"
#include "parser/parse_node.h"
#include "parser/parse_relation.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

void table_run_utility(const char *sql)
{
    SPI_connect();

    const int code = SPI_execute(sql, false, 0);

    if (code != SPI_OK_UTILITY)
        elog(ERROR, "\"%s\" failed: %s", sql, SPI_result_code_string(code));
    SPI_finish();
}

/* Takes LOCK TABLE ... IN SHARE ROW EXCLUSIVE MODE as the caller and looks the relation up under it: from
 * then on nobody else changes its rows, nor what tables lie below it. */
static void lock_for_update(TableRelation *relation, Oid id, TableUse use)
{
    const char *locked;

    /* Takes no lock of its own before: two sessions that both hold one and both want the stronger one would wait for
     * each other. The table may get another name before the lock is there. */
    table_relation_find(relation, id, use, false);
    if (pg_class_aclcheck(id, GetUserId(), ACL_UPDATE | ACL_DELETE | ACL_TRUNCATE) != ACLCHECK_OK)
        table_raise_denied(relation, TABLE_LABEL_PRIVILEGES);
    do {
        locked = relation->sql_name;
        table_run_utility(psprintf("LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE", locked));
        table_relation_find(relation, id, use, false);
    } while (strcmp(locked, relation->sql_name) != 0);
}

/* The functions that the UPDATE calls. `table` has all rows; InvalidOid: several tables do. */
struct LabelFunctions {
    Oid new_label;
    Oid label_changes;
    Oid relation; /* that is updated */
    Oid table;
};

/* One of our functions on (tableoid, ctid). */
static Oid find_function(const char *name, Oid schema)
{
    const Oid types[] = {OIDOID, TIDOID};
    oidvector *const arguments = buildoidvector(types, lengthof(types));

    return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name), PointerGetDatum(arguments),
                           ObjectIdGetDatum(schema));
}

/* A ParseParamRefHook: $1 is a row's new label, $2 whether it changes. The functions are not called by name, for the
 * caller may lack USAGE of their schema, and it need not be in the search path. */
static Node *label_call(ParseState *state, ParamRef *reference)
{
    const LabelFunctions *const functions = (const LabelFunctions *)state->p_ref_hook_state;
    const bool is_label = reference->number == 1;

    /* A schema can be renamed at any time, and another one can get its name. */
    if (RelationGetRelid(state->p_target_relation) != functions->relation)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("relation \"%s\" was replaced during the fit",
                               RelationGetRelationName(state->p_target_relation))));

    Node *const table =
        OidIsValid(functions->table)
            ? (Node *)makeConst(OIDOID, -1, InvalidOid, sizeof(Oid), ObjectIdGetDatum(functions->table), false, true)
            : colNameToVar(state, "tableoid", false, reference->location);
    List *const row = list_make2(table, colNameToVar(state, "ctid", false, reference->location));

    return (Node *)makeFuncExpr(is_label ? functions->new_label : functions->label_changes,
                                is_label ? INT4OID : BOOLOID, row, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

static void set_up_parser(ParseState *state, void *functions)
{
    state->p_paramref_hook = label_call;
    state->p_ref_hook_state = functions;
}

static void run_update(const TableRelation *relation, const char *label, LabelFunctions *functions)
{
    const char *const sql = psprintf("UPDATE %s SET %s = $1 WHERE $2", relation->sql_name, quote_identifier(label));
    const int nest_level = NewGUCNestLevel();
    SPIExecuteOptions options;

    /* Rows in their order are found without a search. */
    table_set_for_now("synchronize_seqscans", "off");

    memset(&options, 0, sizeof options);
    options.params = makeParamList(0);
    options.params->parserSetup = set_up_parser;
    options.params->parserSetupArg = functions;

    const int code = SPI_execute_extended(sql, &options);

    if (code == SPI_OK_REWRITTEN)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("cannot write labels into relation \"%s\"", relation->name),
                        errdetail("A rule replaces UPDATE on it.")));
    if (code != SPI_OK_UPDATE)
        elog(ERROR, "\"%s\" failed: %s", sql, SPI_result_code_string(code));
    AtEOXact_GUC(false, nest_level);
}

/* Labels that come from themselves would never settle. */
static void check_label_is_no_input(const TableCall *call, const char *label)
{
    bool used = (call->weight != NULL && strcmp(call->weight->name, label) == 0) ||
                (call->filter != NULL && strcmp(call->filter->name, label) == 0);

    for (int i = 0; i < call->n_features; ++i)
        used = used || strcmp(call->features[i].name, label) == 0;
    if (used)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("label column \"%s\" must not be among the features, the weight or the filter", label)));
}

static void begin_update(TableCall *call, FunctionCallInfo fcinfo, Oid id, LabelTarget *target, int weight, int nulls,
                         TableUse use)
{
    lock_for_update(&call->relation, id, use);
    table_call_find_columns(call, fcinfo, weight, nulls);
    check_label_is_no_input(call, target->name);
    label_target_check(target, &call->relation, call->request.k);
}

void table_lock_elsewhere(TableCall *call, FunctionCallInfo fcinfo, Oid id, LabelTarget *target, int weight, int nulls)
{
    begin_update(call, fcinfo, id, target, weight, nulls, TABLE_WRITE);
    if (call->nulls != TABLE_NULLS_ERROR || call->filter != NULL)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("nulls and filter do not go with rows on other servers, which \"%s\" has",
                               call->relation.name)));
    /* Citus adds columns on all of its servers. */
    if (target->missing && !citus_owns_table(id))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("column \"%s\" is missing, and \"%s\" has rows on other servers", target->name,
                               call->relation.name),
                        errhint("Add an integer column there and here, and name it: label_column => %s, overwrite => "
                                "true.",
                                quote_literal_cstr(target->name))));
}

void table_write_expression(const TableCall *call, const char *label, const LabelTarget *target)
{
    const char *const column = quote_identifier(target->name);
    TableRelation relation;

    table_relation_find(&relation, call->relation.id, TABLE_WRITE, false); /* by its name of now */
    label_target_prepare(target, &relation);
    SPI_connect();

    const char *const sql =
        psprintf("UPDATE %s SET %s = %s WHERE %s IS DISTINCT FROM %s", relation.sql_name, column, label, column, label);
    const int code = SPI_execute(sql, false, 0);

    if (code != SPI_OK_UPDATE)
        elog(ERROR, "an UPDATE of labels failed: %s", SPI_result_code_string(code));
    SPI_finish();
}

TableRows *table_read_for_update(TableCall *call, FunctionCallInfo fcinfo, Oid id, LabelTarget *target, int weight,
                                 int nulls, bool may_stream, const char *function)
{
    TableQuery query;

    begin_update(call, fcinfo, id, target, weight, nulls, TABLE_UPDATE);

    memset(&query, 0, sizeof query);
    query.label = target->missing ? NULL : target->name;
    query.need_ctid = true;
    query.new_snapshot = true;
    query.may_stream = may_stream;
    return table_call_read(call, function, &query);
}

void table_write_labels(const TableCall *call, const TableRows *rows, const int32 *labels, const LabelTarget *target,
                        Oid function)
{
    const Oid schema = get_func_namespace(function);
    LabelFunctions functions = {find_function("pgkm_new_label", schema), find_function("pgkm_label_changes", schema),
                                call->relation.id, rows->wants.table ? InvalidOid : call->relation.id};
    TableRelation relation;
    LabelLookup lookup;

    table_relation_find(&relation, call->relation.id, TABLE_UPDATE, false); /* by its name of now */
    label_target_prepare(target, &relation);
    if (!label_lookup_start(&lookup, rows, labels))
        return;
    PG_TRY();
    {
        SPI_connect();
        run_update(&relation, target->name, &functions);
        SPI_finish();
    }
    PG_FINALLY();
    {
        label_lookup_end(&lookup);
    }
    PG_END_TRY();
}
