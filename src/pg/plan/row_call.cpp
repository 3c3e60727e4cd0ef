/*
 * row_call.cpp - calls with a whole row become calls with its columns.
 *
 * kmeans_predict(m, t) would have the server make a composite value of each row of t, with what lies out of line
 * fetched and decompressed, whatever the model reads of it. So while a query is planned, the call becomes
 *
 *   pgkm_row_kmeans_predict(m, '{a,b,c}', t.a, t.b, t.c)
 *
 * the same C function, which finds the model's columns by those names. A column costs next to nothing until it is read.
 * Where an outer join can leave the row out, its tableoid stands behind them under no name: NULL says that it is none.
 */
#include "pg/plan/plan.h"

#include "pg/compat.h"
#include "pg/values/composite.h"

extern "C" {
#include "access/htup_details.h"
#include "access/sysattr.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_coerce.h"
#include "parser/parse_relation.h"
#include "miscadmin.h"
#include "parser/parsetree.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
}

/* The function that takes columns in the place of a row; InvalidOid where an older script lacks it. */
static Oid columns_function(Oid function, Oid model)
{
    const char *const name = get_func_name(function);
    const Oid types[] = {model, TEXTARRAYOID, ANYOID};

    if (name == NULL)
        return InvalidOid;
    return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(psprintf("pgkm_row_%s", name)),
                           PointerGetDatum(buildoidvector(types, lengthof(types))),
                           ObjectIdGetDatum(get_func_namespace(function)));
}

/* Whether there may be no row: an outer join has NULL in its place. */
static bool may_be_missing(const Query *query, const Var *whole)
{
    ListCell *cell;

    if (pgkm_is_never_nulled(whole))
        return false;
    foreach (cell, query->rtable) {
        const RangeTblEntry *const entry = lfirst_node(RangeTblEntry, cell);

        if (entry->rtekind == RTE_JOIN && IS_OUTER_JOIN(entry->jointype))
            return true;
    }
    return false;
}

/* The columns of a whole row of an entry of the query's range table. */
static bool columns_of_var(PlannerInfo *root, const Var *whole, List **names, List **columns)
{
    ListCell *cell;

    /* A query above that plans its joins has told them by now which columns a subquery beside them (LATERAL) reads. */
    for (Index up = 0; up < whole->varlevelsup; ++up)
        if ((root = root->parent_root) == NULL || root->simple_rel_array != NULL)
            return false;
    if (whole->varno < 1 || whole->varno > (int)list_length(root->parse->rtable))
        return false;
    if (pgkm_is_old_or_new(whole)) /* of RETURNING: there may be none */
        return false;

    RangeTblEntry *const entry = rt_fetch(whole->varno, root->parse->rtable);

    pgkm_expand_entry(entry, whole, names, columns);
    if (may_be_missing(root->parse, whole)) {
        if (entry->rtekind != RTE_RELATION)
            return false;
        *names = lappend(*names, makeString(pstrdup("")));
        *columns = lappend(*columns,
                           makeVar(whole->varno, TableOidAttributeNumber, OIDOID, -1, InvalidOid, whole->varlevelsup));
    }
    foreach (cell, *columns) {
        Var *const column = (Var *)lfirst(cell);

        if (!IsA(column, Var))
            return false;
        pgkm_copy_nulling(column, whole);
    }
    return true;
}

/* Those of ROW(...), which a subquery becomes. */
static bool columns_of_row(const RowExpr *row, List **names, List **columns)
{
    *columns = row->args;
    *names = row->colnames;
    if (row->row_typeid == RECORDOID)
        return list_length(*names) == list_length(*columns);

    const TupleDesc desc = lookup_rowtype_tupdesc(row->row_typeid, -1);

    *columns = *names = NIL;
    for (int i = 0; i < Min(desc->natts, list_length(row->args)); ++i)
        if (!TupleDescAttr(desc, i)->attisdropped) {
            *names = lappend(*names, makeString(pstrdup(NameStr(TupleDescAttr(desc, i)->attname))));
            *columns = lappend(*columns, list_nth(row->args, i));
        }
    ReleaseTupleDesc(desc);
    return true;
}

static Const *array_of(const List *names)
{
    const Datum texts = pgkm_text_array(list_length(names), [names](int i) { return strVal(list_nth(names, i)); });

    return makeConst(TEXTARRAYOID, -1, InvalidOid, -1, texts, false, false);
}

/* A composite type may be a vector, by a cast. */
static bool is_vector(Oid type)
{
    Oid function;

    return type != RECORDOID &&
           (find_coercion_pathway(FLOAT4ARRAYOID, type, COERCION_ASSIGNMENT, &function) != COERCION_PATH_NONE ||
            find_coercion_pathway(FLOAT8ARRAYOID, type, COERCION_ASSIGNMENT, &function) != COERCION_PATH_NONE);
}

Node *pgkm_plan_row_call(SupportRequestSimplify *request)
{
    const FuncExpr *const call = request->fcall;
    List *names = NIL;
    List *columns = NIL;

    if (request->root == NULL || list_length(call->args) != 2 ||
        request->root->parse->groupingSets != NIL || /* which have NULL in the place of a whole row */
        pgkm_function_aclcheck(call->funcid, GetUserId()) != ACLCHECK_OK)
        return NULL;

    Node *const model = (Node *)linitial(call->args);
    Node *const row = (Node *)lsecond(call->args);
    const bool known = IsA(row, Var) && ((const Var *)row)->varattno == InvalidAttrNumber
                           ? columns_of_var(request->root, (const Var *)row, &names, &columns)
                           : IsA(row, RowExpr) && columns_of_row((const RowExpr *)row, &names, &columns);

    /* The server's limit of arguments. */
    if (!known || columns == NIL || list_length(columns) + 2 > FUNC_MAX_ARGS || is_vector(exprType(row)))
        return NULL;

    const Oid function = columns_function(call->funcid, exprType(model));

    if (!OidIsValid(function))
        return NULL;
    return (Node *)makeFuncExpr(function, call->funcresulttype, lcons(model, lcons(array_of(names), columns)),
                                call->funccollid, call->inputcollid, COERCE_EXPLICIT_CALL);
}
