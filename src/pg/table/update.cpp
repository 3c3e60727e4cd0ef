/*
 * update.cpp - locks a table, reads its rows and writes labels into it.
 *
 * All of it goes through SPI as the caller, so that privileges, row security, triggers and constraints hold.
 */
#include "pg/table/update.h"

#include "pg/query/citus.h"
#include "pg/table/label_lookup.h"

extern "C" {
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/params.h"
#include "nodes/value.h"
#include "parser/parse_expr.h"
#include "parser/parse_node.h"
#include "parser/parse_oper.h"
#include "parser/parse_relation.h"
#include "parser/parser.h"
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

/* What the parameters of the UPDATE stand for: $1 is a row's new label, $2 whether it changes, $3 its label by value.
 * Functions and operators are not looked up by name: the caller may lack USAGE of the functions' schema, and the search
 * path may be anything. Triggers see the caller's, so it is not changed. */
struct LabelUpdate {
    Oid relation;               /* that is updated */
    Oid new_label = InvalidOid; /* the functions; InvalidOid: expressions alone, which other servers can take */
    Oid label_changes = InvalidOid;
    List *(*arguments)(const LabelUpdate *update, ParseState *state, bool of_new_label) = NULL;
    Oid table = InvalidOid;                 /* by place: has all rows; InvalidOid: several tables do */
    const char *column = NULL;              /* by value: the label's */
    const LabelExpression *by_value = NULL; /* likewise */
};

/* One of our functions on these types. */
static Oid find_function(const char *name, Oid schema, const Oid *types, int count)
{
    oidvector *const arguments = buildoidvector(types, count);

    return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name), PointerGetDatum(arguments),
                           ObjectIdGetDatum(schema));
}

static Node *call_of(Oid function, Oid result, List *arguments)
{
    return (Node *)makeFuncExpr(function, result, arguments, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

static Node *parse_expression(ParseState *state, const char *text)
{
    const RawStmt *const statement = linitial_node(RawStmt, raw_parser(text, RAW_PARSE_PLPGSQL_EXPR));
    const ResTarget *const target = linitial_node(ResTarget, ((SelectStmt *)statement->stmt)->targetList);

    return transformExpr(state, target->val, state->p_expr_kind);
}

/* The place of a row. */
static List *place_arguments(const LabelUpdate *update, ParseState *state, bool)
{
    Node *const table = OidIsValid(update->table) ? (Node *)makeConst(OIDOID, -1, InvalidOid, sizeof(Oid),
                                                                      ObjectIdGetDatum(update->table), false, true)
                                                  : colNameToVar(state, "tableoid", false, -1);

    return list_make2(table, colNameToVar(state, "ctid", false, -1));
}

/* SQL whose $3 is value_call(). */
static const char *value_text(const LabelExpression *by_value)
{
    return by_value == NULL ? "NULL::pg_catalog.int4" : psprintf("CASE WHEN %s THEN $3 END", by_value->condition);
}

/* A row's label by value, and the one that it has. */
static List *value_arguments(const LabelUpdate *update, ParseState *state, bool of_new_label)
{
    if (of_new_label)
        return NIL;
    return list_make2(parse_expression(state, value_text(update->by_value)),
                      parse_expression(state, psprintf("%s::pg_catalog.int8", quote_identifier(update->column))));
}

static Node *value_call(const LabelExpression *by_value, ParseState *state)
{
    Const *const model = makeConst(by_value->model_type, -1, InvalidOid, -1, by_value->model, false, false);

    return call_of(by_value->predict, INT4OID, list_make2(model, parse_expression(state, by_value->features)));
}

/* Whether the column differs from the label by value: IS DISTINCT FROM, which as text takes the = of the search path.
 */
static Node *distinct_from_value(const LabelUpdate *update, ParseState *state)
{
    List *const equal = list_make2(makeString(pstrdup("pg_catalog")), makeString(pstrdup("=")));
    Node *const column = colNameToVar(state, update->column, false, -1);
    Expr *const distinct =
        make_op(state, equal, column, parse_expression(state, value_text(update->by_value)), state->p_last_srf, -1);

    NodeSetTag(distinct, T_DistinctExpr); /* the same struct as of the operator, as transformExpr() makes it */
    return (Node *)distinct;
}

/* A ParseParamRefHook. */
static Node *label_call(ParseState *state, ParamRef *reference)
{
    const LabelUpdate *const update = (const LabelUpdate *)state->p_ref_hook_state;

    /* A schema can be renamed at any time, and another one can get its name. */
    if (RelationGetRelid(state->p_target_relation) != update->relation)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("relation \"%s\" was replaced during the fit",
                               RelationGetRelationName(state->p_target_relation))));
    if (reference->number == 1 && !OidIsValid(update->new_label))
        return parse_expression(state, value_text(update->by_value));
    if (reference->number == 2 && !OidIsValid(update->label_changes))
        return distinct_from_value(update, state);
    if (reference->number == 1)
        return call_of(update->new_label, INT4OID, update->arguments(update, state, true));
    if (reference->number == 2)
        return call_of(update->label_changes, BOOLOID, update->arguments(update, state, false));
    return value_call(update->by_value, state);
}

static void set_up_parser(ParseState *state, void *update)
{
    state->p_paramref_hook = label_call;
    state->p_ref_hook_state = update;
}

/* How many rows it has updated. */
static uint64 run_update(const char *sql, const TableRelation *relation, LabelUpdate *update)
{
    const int nest_level = NewGUCNestLevel();
    SPIExecuteOptions options;

    /* Rows in their order are found without a search. */
    table_set_for_now("synchronize_seqscans", "off");

    memset(&options, 0, sizeof options);
    options.params = makeParamList(0);
    options.params->parserSetup = set_up_parser;
    options.params->parserSetupArg = update;

    const int code = SPI_execute_extended(sql, &options);

    if (code == SPI_OK_REWRITTEN)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("cannot write labels into relation \"%s\"", relation->name),
                        errdetail("A rule replaces UPDATE on it.")));
    if (code != SPI_OK_UPDATE)
        elog(ERROR, "\"%s\" failed: %s", sql, SPI_result_code_string(code));
    AtEOXact_GUC(false, nest_level);
    return SPI_processed;
}

/* A BEFORE trigger may keep rows from being updated, without an error. */
static void warn_of_skipped(const TableRelation *relation, int64 changed, uint64 updated)
{
    if (updated < (uint64)changed)
        ereport(WARNING, (errmsg("labels of %lld rows of \"%s\" were not written",
                                 (long long)changed - (long long)updated, relation->name),
                          errdetail("A trigger skipped the UPDATE of these rows. Labels of %lld rows were written.",
                                    (long long)updated)));
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

/* 25006, in the function's own words and before the lock, which a standby does not give. */
static void check_may_write(Oid id, const char *function)
{
    const char *const command = psprintf("%s()", function);

    PreventCommandDuringRecovery(command);
    if (!isTempNamespace(get_rel_namespace(id)))
        PreventCommandIfReadOnly(command);
}

static void begin_update(TableCall *call, FunctionCallInfo fcinfo, Oid id, LabelTarget *target, int weight, int nulls,
                         TableUse use, const char *function)
{
    check_may_write(id, function);
    lock_for_update(&call->relation, id, use);
    table_call_find_columns(call, fcinfo, weight, nulls);
    check_label_is_no_input(call, target->name);
    label_target_check(target, &call->relation, call->request.k);
}

void table_lock_elsewhere(TableCall *call, FunctionCallInfo fcinfo, Oid id, LabelTarget *target, int weight, int nulls,
                          const char *function)
{
    begin_update(call, fcinfo, id, target, weight, nulls, TABLE_WRITE, function);
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

static void add_column(TableRelation *relation, const TableCall *call, const LabelTarget *target,
                       const PgkmResult *result, TableUse use)
{
    table_relation_find(relation, call->relation.id, use, false); /* by its name of now */
    label_target_prepare(target, relation, result == NULL ? 0 : result->k);
}

static const char *update_text(const TableRelation *relation, const LabelTarget *target)
{
    return psprintf("UPDATE %s SET %s = $1 WHERE $2", relation->sql_name, quote_identifier(target->name));
}

void table_write_elsewhere(const TableCall *call, const PgkmResult *result, const LabelExpression *by_value,
                           const LabelTarget *target)
{
    LabelUpdate update = {.relation = call->relation.id, .column = target->name, .by_value = by_value};
    TableRelation relation;

    add_column(&relation, call, target, result, TABLE_WRITE);
    SPI_connect();
    (void)run_update(update_text(&relation, target), &relation, &update);
    SPI_finish();
}

void table_write_by_value(const TableCall *call, const PgkmResult *result, const LabelExpression *by_value,
                          const LabelTarget *target, Oid function)
{
    static const Oid types[] = {INT4OID, INT8OID}; /* an old label may be any integer */
    const Oid schema = get_func_namespace(function);
    LabelUpdate update = {.relation = call->relation.id,
                          .new_label = find_function("pgkm_new_label", schema, types, 0),
                          .label_changes = find_function("pgkm_label_changes", schema, types, lengthof(types)),
                          .arguments = value_arguments,
                          .column = target->name,
                          .by_value = by_value};
    TableRelation relation;
    LabelOfRow row;
    volatile uint64 updated = 0;

    add_column(&relation, call, target, result, TABLE_UPDATE);
    label_of_row_start(&row);
    PG_TRY();
    {
        SPI_connect();
        updated = run_update(update_text(&relation, target), &relation, &update);
        SPI_finish();
    }
    PG_FINALLY();
    {
        label_of_row_end(&row);
    }
    PG_END_TRY();
    warn_of_skipped(&relation, row.changed, updated);
}

TableRows *table_read_for_update(TableCall *call, FunctionCallInfo fcinfo, Oid id, LabelTarget *target, int weight,
                                 int nulls, bool may_stream, const char *function)
{
    TableQuery query;

    begin_update(call, fcinfo, id, target, weight, nulls, TABLE_UPDATE, function);

    memset(&query, 0, sizeof query);
    query.label = target->missing ? NULL : target->name;
    query.need_ctid = true;
    query.new_snapshot = true;
    query.may_stream = may_stream;
    return table_call_read(call, function, &query);
}

void table_write_labels(const TableCall *call, const TableRows *rows, const PgkmResult *result,
                        const LabelTarget *target, Oid function)
{
    static const Oid types[] = {OIDOID, TIDOID};
    const Oid schema = get_func_namespace(function);
    LabelUpdate update = {.relation = call->relation.id,
                          .new_label = find_function("pgkm_new_label", schema, types, lengthof(types)),
                          .label_changes = find_function("pgkm_label_changes", schema, types, lengthof(types)),
                          .arguments = place_arguments,
                          .table = rows->wants.table ? InvalidOid : call->relation.id};
    TableRelation relation;
    LabelLookup lookup;
    volatile uint64 updated = 0;

    add_column(&relation, call, target, result, TABLE_UPDATE);
    if (!label_lookup_start(&lookup, rows, result == NULL ? NULL : result->labels))
        return;
    PG_TRY();
    {
        SPI_connect();
        updated = run_update(update_text(&relation, target), &relation, &update);
        SPI_finish();
    }
    PG_FINALLY();
    {
        label_lookup_end(&lookup);
    }
    PG_END_TRY();
    warn_of_skipped(&relation, lookup.changed, updated);
}
