/*
 * update.cpp - locks a table, reads its rows and writes labels into it.
 *
 * All of it goes through SPI as the caller, so that privileges, row security, triggers and constraints hold.
 */
#include "pg/table/update.h"

#include "pg/nodes/places.h"
#include "pg/nodes/shards.h"
#include "pg/table/label_lookup.h"

extern "C" {
#include "access/xact.h"
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
#include "utils/snapmgr.h"
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

/* Functions and operators of the statement are not looked up by name: the caller may lack USAGE of the functions'
 * schema, and the search path may be anything. Triggers see the caller's, so it is not changed. */

Oid table_find_function(Oid schema, const char *name, const Oid *types, int count)
{
    return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
                           PointerGetDatum(buildoidvector(types, count)), ObjectIdGetDatum(schema));
}

/* A call of one of our functions on these arguments. */
static Node *call_of(const LabelUpdate *update, const char *name, List *arguments)
{
    static const Oid types[] = {INTERNALOID, OIDOID, TIDOID, INT4OID};
    const Oid function = table_find_function(update->schema, name, types, list_length(arguments));

    return (Node *)makeFuncExpr(function, INT4OID, arguments, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

static Node *parse_expression(ParseState *state, const char *text)
{
    const RawStmt *const statement = linitial_node(RawStmt, raw_parser(text, RAW_PARSE_PLPGSQL_EXPR));
    const ResTarget *const target = linitial_node(ResTarget, ((SelectStmt *)statement->stmt)->targetList);

    return transformExpr(state, target->val, state->p_expr_kind);
}

/* A row's label by value: SQL whose $3 is predict(). */
static Node *value_of(const LabelUpdate *update, ParseState *state)
{
    return parse_expression(state, update->by_which == NULL
                                       ? "NULL::pg_catalog.int4"
                                       : psprintf("CASE WHEN %s THEN $3 END", update->by_which->condition));
}

/* Between batches others may drop a column, or give it another name. */
static Node *column_of(const LabelUpdate *update, ParseState *state, const char *name)
{
    Node *const column = colNameToVar(state, name, false, -1);

    if (column == NULL)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                        errmsg("column \"%s\" of relation \"%s\" does not exist", name, update->relation->name)));
    return column;
}

static Node *predict_call(const LabelUpdate *update, ParseState *state)
{
    const LabelExpression *const by_value = update->by_which;
    Const *const model = makeConst(by_value->model_type, -1, InvalidOid, -1, by_value->model, false, false);
    Const *const names = makeConst(TEXTARRAYOID, -1, InvalidOid, -1, by_value->names, false, false);
    RowExpr *const row = makeNode(RowExpr);
    Datum *texts;
    int count;

    deconstruct_array(DatumGetArrayTypeP(by_value->names), TEXTOID, -1, false, TYPALIGN_INT, &texts, NULL, &count);
    for (int i = 0; i < count; ++i) {
        char *const name = TextDatumGetCString(texts[i]);

        row->args = lappend(row->args, column_of(update, state, name));
        row->colnames = lappend(row->colnames, makeString(name));
    }
    row->row_typeid = RECORDOID;
    row->row_format = COERCE_EXPLICIT_CALL;
    row->location = -1;

    const bool takes_columns = count + 2 <= FUNC_MAX_ARGS;
    List *const arguments = takes_columns ? lcons(model, lcons(names, row->args)) : list_make2(model, row);

    return (Node *)makeFuncExpr(takes_columns ? by_value->predict : by_value->predict_row, INT4OID, arguments,
                                InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

/* A row's new label. In WHERE a label by value is found and kept, for SET of the same row. */
static Node *new_label(const LabelUpdate *update, ParseState *state, bool in_where)
{
    Param *const lookup = makeNode(Param);

    if (!OidIsValid(update->schema))
        return value_of(update, state);
    lookup->paramkind = PARAM_EXTERN;
    lookup->paramid = 1;
    lookup->paramtype = INTERNALOID;
    lookup->paramtypmod = -1;
    lookup->location = -1;

    List *const place =
        list_make3(lookup, colNameToVar(state, "tableoid", false, -1), colNameToVar(state, "ctid", false, -1));

    if (update->by_value && in_where)
        return call_of(update, "pgkm_keep_label", lappend(place, value_of(update, state)));
    return call_of(update, "pgkm_new_label", place);
}

/* Whether the column differs from that: IS DISTINCT FROM, which as text takes the = of the search path. */
static Node *label_changes(const LabelUpdate *update, ParseState *state)
{
    List *const equal = list_make2(makeString(pstrdup("pg_catalog")), makeString(pstrdup("=")));
    Expr *const distinct = make_op(state, equal, column_of(update, state, update->column),
                                   new_label(update, state, true), state->p_last_srf, -1);

    NodeSetTag(distinct, T_DistinctExpr); /* the same struct as of the operator, as transformExpr() makes it */
    return (Node *)distinct;
}

/* A ParseParamRefHook: $1 is a row's new label, $2 whether it changes, $3 its label by value, $4 and $5 are lists of
 * rows. */
static Node *label_call(ParseState *state, ParamRef *reference)
{
    const LabelUpdate *const update = (const LabelUpdate *)state->p_ref_hook_state;

    if (reference->number == 4)
        return (Node *)makeConst(TIDARRAYOID, -1, InvalidOid, -1, update->ctids, false, false);
    if (reference->number == 5)
        return (Node *)makeConst(OIDARRAYOID, -1, InvalidOid, -1, update->tables, false, false);
    /* A schema can be renamed at any time, and another one can get its name. */
    if (linitial_node(RangeTblEntry, state->p_rtable)->relid != update->relation->id)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("relation \"%s\" was replaced during the fit", update->relation->name)));
    if (reference->number == 3)
        return predict_call(update, state);
    return reference->number == 1 ? new_label(update, state, false) : label_changes(update, state);
}

static void set_up_parser(ParseState *state, void *update)
{
    state->p_paramref_hook = label_call;
    state->p_ref_hook_state = update;
}

/* A ParamFetchHook. Values that are fetched are not shown where parameters are logged: this one cannot be. */
static ParamExternData *fetch_lookup(ParamListInfo params, int, bool, ParamExternData *value)
{
    *value = {PointerGetDatum(params->paramFetchArg), false, 0, INTERNALOID};
    return value;
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

int table_execute_labels(LabelUpdate *update, const char *sql)
{
    SPIExecuteOptions options;

    memset(&options, 0, sizeof options);
    options.params = makeParamList(1);
    options.params->parserSetup = set_up_parser;
    options.params->parserSetupArg = update;
    options.params->params[0] = {(Datum)0, true, 0, INT4OID};
    if (OidIsValid(update->schema)) /* else nobody uses it, and it could not be sent to other servers */
    {
        options.params->paramFetch = fetch_lookup;
        options.params->paramFetchArg = update->lookup;
    }
    return SPI_execute_extended(sql, &options);
}

void table_check_written(const TableRelation *relation, const char *sql, int code)
{
    if (code == SPI_OK_REWRITTEN)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("cannot write labels into relation \"%s\"", relation->name),
                        errdetail("A rule replaces UPDATE on it.")));
    if (code != SPI_OK_UPDATE)
        elog(ERROR, "\"%s\" failed: %s", sql, SPI_result_code_string(code));
}

static void run_update(LabelUpdate *update)
{
    const TableRelation *const relation = update->relation;
    const char *const sql =
        psprintf("UPDATE %s SET %s = $1 WHERE $2", relation->sql_name, quote_identifier(update->column));
    const int nest_level = NewGUCNestLevel();

    /* Rows in their order are found without a search. */
    table_set_for_now("synchronize_seqscans", "off");
    SPI_connect();

    const int code = table_execute_labels(update, sql);

    table_check_written(relation, sql, code);
    AtEOXact_GUC(false, nest_level);
    warn_of_skipped(relation, update->lookup->changed, SPI_processed);
    SPI_finish();
}

/* Labels that come from themselves would never settle. */
static void check_label_is_no_input(const TableCall *call, const char *label)
{
    bool used = (call->weight != NULL && strcmp(call->weight->name, label) == 0) ||
                (call->filter != NULL && strcmp(call->filter->name, label) == 0);

    for (int i = 0; i < call->n_features; ++i)
        used = used || strcmp(call->features[i].name, label) == 0;
    for (int i = 0; i < call->n_inputs; ++i)
        used = used || strcmp(call->inputs[i].name, label) == 0;
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

static void begin_update(TableCall *call, LabelTarget *target, TableUse use, const char *function)
{
    const Oid id = call->arguments.relation;

    check_may_write(id, function);
    lock_for_update(&call->relation, id, use);
    table_call_find(call, use);
    check_label_is_no_input(call, target->name);
    label_target_check(target, &call->relation, call->request.k);
    /* What was committed until the lock was there is read, too, whatever the query sees. */
    CommandCounterIncrement();
    PushActiveSnapshot(GetTransactionSnapshot());
    call->own_snapshot = true;
}

void table_read_elsewhere(TableCall *call, LabelTarget *target, const TableWish &wish, const char *function)
{
    begin_update(call, target, TABLE_WRITE, function);
    if (call->nulls != TABLE_NULLS_ERROR || call->filter != NULL)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("nulls and filter do not go with rows on other servers, which \"%s\" has",
                               call->relation.name)));
    /* Citus adds columns on all of its servers. */
    if (target->missing && !citus_owns_table(call->relation.id))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("column \"%s\" is missing, and \"%s\" has rows on other servers", target->name,
                               call->relation.name),
                        errhint("Add an integer column there and here, and name it: label_column => %s, overwrite => "
                                "true.",
                                quote_literal_cstr(target->name))));
    table_call_read(call, function, wish);
}

/* Adds the column where it is missing, of the relation by its name of now. */
static void add_column(TableRelation *relation, const TableCall *call, const LabelTarget *target,
                       const PgkmResult *result, TableUse use)
{
    table_relation_find(relation, call->relation.id, use, false);
    label_target_prepare(target, relation, result == NULL ? 0 : result->k);
}

void table_write_by_value(const TableCall *call, const PgkmResult *result, const LabelExpression *by_value,
                          const LabelTarget *target, Oid function)
{
    TableRelation relation;
    LabelLookup lookup = {};
    LabelUpdate update = {&relation, target->name, InvalidOid, true, by_value, &lookup, 0, 0};

    if (OidIsValid(function))
        update.schema = get_func_namespace(function);
    add_column(&relation, call, target, result, OidIsValid(function) ? TABLE_UPDATE : TABLE_WRITE);
    run_update(&update);
}

void table_write_labels(const TableCall *call, const PgkmResult *result, const LabelTarget *target, Oid function)
{
    TableRelation relation;
    LabelLookup lookup = {};
    LabelUpdate update = {&relation, target->name, get_func_namespace(function), false, NULL, &lookup, 0, 0};

    add_column(&relation, call, target, result, TABLE_UPDATE);
    label_lookup_start(&lookup, call->rows, result == NULL ? NULL : result->labels);
    if (lookup.changed > 0)
        run_update(&update);
}

void table_read_for_update(TableCall *call, LabelTarget *target, TableWish wish, const char *function)
{
    begin_update(call, target, TABLE_UPDATE, function);

    const TableColumn label = {target->name, COLUMN_NUMBER, table_column_type(&call->relation, target->name)};

    wish.label = target->missing ? NULL : &label;
    wish.need_ctid = true;
    table_call_read(call, function, wish);
}

void table_begin_batches(TableCall *call, LabelTarget *target, const char *function)
{
    check_may_write(call->arguments.relation, function);
    if (node_rows_elsewhere(call->arguments.relation))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("%s cannot label rows of other servers", function), errhint("Use kmeans_cluster.")));
    PushActiveSnapshot(GetTransactionSnapshot());
    call->own_snapshot = true;
    table_call_find(call, TABLE_UPDATE);
    if (!table_may_read_ctid(&call->relation))
        table_raise_denied(&call->relation, TABLE_LABEL_PRIVILEGES);
    check_label_is_no_input(call, target->name);
    label_target_check(target, &call->relation, call->request.k);
}

void table_prepare_batches(LabelTarget *target, Oid id, int64 k)
{
    TableRelation relation;

    PushActiveSnapshot(GetTransactionSnapshot());
    if (target->missing)
        lock_for_update(&relation, id, TABLE_UPDATE);
    else
        table_relation_find(&relation, id, TABLE_UPDATE, true);
    label_target_check(target, &relation, k);
    label_target_prepare(target, &relation, k);
    PopActiveSnapshot();
}
