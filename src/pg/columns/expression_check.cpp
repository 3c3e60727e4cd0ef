/*
 * expression_check.cpp - checks what expressions of models name and call.
 */
#include "pg/columns/expression_check.h"

#include "pg/compat.h"

extern "C" {
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/timestamp.h"
}

[[noreturn]] static void refuse(ParseState *state, const Node *node, int sqlstate, const char *what)
{
    ereport(ERROR,
            (errcode(sqlstate), errmsg("an expression of a model cannot use %s", what),
             errdetail("Others apply the model to their rows, so that its expressions are made of what is built in "
                       "and immutable alone."),
             errhint("%s", EXPRESSION_VIEW_HINT), parser_errposition(state, exprLocation(node))));
    pg_unreachable();
}

/* --- names --- */

static List *names_of(const Node *node)
{
    switch (nodeTag(node)) {
    case T_FuncCall:
        return ((const FuncCall *)node)->funcname;
    case T_A_Expr:
        return ((const A_Expr *)node)->name;
    case T_TypeName:
        return ((const TypeName *)node)->names;
    case T_CollateClause:
        return ((const CollateClause *)node)->collname;
    default:
        return NIL;
    }
}

struct NameCheck {
    ParseState *state;
    bool is_feature;
};

static bool check_names(Node *node, void *argument)
{
    const NameCheck *const check = (const NameCheck *)argument;

    if (node == NULL)
        return false;
    if (IsA(node, SubLink))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("an expression cannot have a subquery"),
                        errhint("%s", EXPRESSION_VIEW_HINT),
                        parser_errposition(check->state, ((const SubLink *)node)->location)));

    List *const names = check->is_feature ? names_of(node) : NIL;
    const int count = list_length(names);

    if (count > 1 && strcmp(strVal(list_nth(names, count - 2)), "pg_catalog") != 0)
        refuse(check->state, node, ERRCODE_FEATURE_NOT_SUPPORTED, NameListToString(names));
    return pgkm_raw_expression_tree_walker(node, check_names, argument);
}

void expression_check_names(ParseState *state, Node *raw, bool is_feature)
{
    NameCheck check = {state, is_feature};

    check_names(raw, &check);
}

/* --- types and functions --- */

static bool is_built_in(Oid type)
{
    return type < FirstNormalObjectId || get_typtype(type) == TYPTYPE_ENUM;
}

bool expression_type_serves(Oid type)
{
    const Oid base = getBaseType(type);
    const Oid element = get_element_type(base);

    return is_built_in(base) || (OidIsValid(element) && is_built_in(element));
}

struct Call {
    ParseState *state;
    const Node *node;
};

/* A callback of check_functions_in_node. */
static bool check_function(Oid function, void *argument)
{
    const Call *const call = (const Call *)argument;

    if (function >= FirstNormalObjectId || get_func_namespace(function) != PG_CATALOG_NAMESPACE)
        refuse(call->state, call->node, ERRCODE_FEATURE_NOT_SUPPORTED,
               psprintf("the function %s", format_procedure(function)));
    if (func_volatile(function) != PROVOLATILE_IMMUTABLE)
        refuse(call->state, call->node, ERRCODE_INVALID_OBJECT_DEFINITION,
               psprintf("the function %s", format_procedure(function)));
    return false;
}

/* Whether literals of the type mean the same always, if they do so under two opposite settings. */
static bool has_constant_literals(Oid type, bool is_element)
{
    Oid input;
    Oid parameter;

    switch (type) {
    case DATEOID:
    case TIMEOID:
    case TIMETZOID:
    case TIMESTAMPOID:
    case INTERVALOID:
        return true;
    case TIMESTAMPTZOID:
        return !is_element; /* of an array it is not looked at whether it is the present */
    default:
        getTypeInputInfo(type, &input, &parameter);
        return get_typtype(type) == TYPTYPE_ENUM || func_volatile(input) == PROVOLATILE_IMMUTABLE;
    }
}

/* The text of a literal has been read by now, and the present is the same under all settings. */
static void check_literal(ParseState *state, const Const *literal)
{
    const Oid element = get_element_type(literal->consttype);
    const bool is_element = OidIsValid(element);

    if (literal->constisnull)
        return;
    if (literal->consttype == TIMESTAMPTZOID &&
        DatumGetTimestampTz(literal->constvalue) == GetCurrentTransactionStartTimestamp())
        refuse(state, (const Node *)literal, ERRCODE_INVALID_OBJECT_DEFINITION, "the present time");
    if (!has_constant_literals(is_element ? element : literal->consttype, is_element))
        refuse(state, (const Node *)literal, ERRCODE_INVALID_OBJECT_DEFINITION,
               psprintf("a literal of type %s", format_type_be(literal->consttype)));
}

/* Whether its text is as extra_float_digits or bytea_output says, though the server calls it immutable. */
static bool has_text_by_settings(Oid type)
{
    const Oid element = get_element_type(getBaseType(type));
    const Oid base = getBaseType(OidIsValid(element) ? element : type);

    return base == FLOAT4OID || base == FLOAT8OID || base == BYTEAOID;
}

static bool check_node(Node *node, void *argument)
{
    ParseState *const state = (ParseState *)argument;
    Call call = {state, node};

    if (node == NULL)
        return false;
    switch (nodeTag(node)) {
    case T_List:
    case T_CaseWhen:
        return pgkm_expression_tree_walker(node, check_node, state);
    case T_Const:
        check_literal(state, (const Const *)node);
        break;
    case T_Var:
    case T_OpExpr:
    case T_DistinctExpr:
    case T_NullIfExpr:
    case T_ScalarArrayOpExpr:
    case T_BoolExpr:
    case T_FuncExpr:
    case T_NamedArgExpr:
    case T_RelabelType:
    case T_ArrayCoerceExpr:
    case T_CollateExpr:
    case T_CaseExpr:
    case T_CaseTestExpr:
    case T_ArrayExpr:
    case T_RowExpr:
    case T_RowCompareExpr:
    case T_CoalesceExpr:
    case T_MinMaxExpr:
    case T_NullTest:
    case T_BooleanTest:
    case T_SubscriptingRef:
        break;
    case T_CoerceViaIO:
        if (has_text_by_settings(exprType((Node *)((const CoerceViaIO *)node)->arg)))
            refuse(state, node, ERRCODE_INVALID_OBJECT_DEFINITION,
                   psprintf("the text of type %s, which depends on settings",
                            format_type_be(exprType((Node *)((const CoerceViaIO *)node)->arg))));
        break;
    case T_SQLValueFunction:
        refuse(state, node, ERRCODE_INVALID_OBJECT_DEFINITION, "the present time, user or schema");
    default:
        refuse(state, node, ERRCODE_FEATURE_NOT_SUPPORTED, "syntax of this kind");
    }
    if (!expression_type_serves(exprType(node)))
        refuse(state, node, ERRCODE_FEATURE_NOT_SUPPORTED, psprintf("the type %s", format_type_be(exprType(node))));
    check_functions_in_node(node, check_function, &call);
    return pgkm_expression_tree_walker(node, check_node, state);
}

void expression_check_tree(ParseState *state, Node *tree)
{
    check_node(tree, state);
}
