/*
 * expression.cpp - parses expressions and evaluates them.
 */
#include "pg/columns/expression.h"

#include "pg/columns/expression_check.h"
#include "pg/compat.h"
#include "pg/values/datum.h"

extern "C" {
#include "catalog/pg_collation.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parser.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
}

struct Parsing {
    const char *text;
    const ExpressionColumns *columns;
    ExpressionUse use;
};

/* --- errors --- */

/* So many bytes of a text as CONTEXT has of an expression. */
#define MOST_OF_TEXT 200

/* A context callback. */
static void tell_expression(void *argument)
{
    const char *const text = (const char *)argument;
    const int length = (int)strlen(text);
    const int shown = pg_mbcliplen(text, length, MOST_OF_TEXT);

    errcontext("expression \"%.*s%s\"", shown, text, shown < length ? "..." : "");
}

/* Where the server's own hint would lead nowhere, or there is none. */
static void advise(ExpressionUse use, int sqlstate)
{
    switch (sqlstate) {
    case ERRCODE_FEATURE_NOT_SUPPORTED: /* subqueries and sets among them */
    case ERRCODE_GROUPING_ERROR:
    case ERRCODE_WINDOWING_ERROR:
        errhint("%s", EXPRESSION_VIEW_HINT);
        break;
    case ERRCODE_UNDEFINED_FUNCTION:
    case ERRCODE_UNDEFINED_OBJECT:
        if (use == EXPRESSION_FEATURE)
            errhint("An expression of a model finds built-in functions, operators and types alone. Cast what they are "
                    "given, or, for those of others, put the expression into a view and name the view's column.");
        break;
    case ERRCODE_DATETIME_FIELD_OVERFLOW:
        if (use == EXPRESSION_FEATURE)
            errhint("An expression of a model has dates as '2024-12-31', whatever \"DateStyle\" is.");
        break;
    default:
        break;
    }
}

/* A context callback: the place is in the text, which CONTEXT names. */
static void tell_parsing(void *argument)
{
    const Parsing *const parsing = (const Parsing *)argument;

    pgkm_error_lies_in(parsing->text);
    advise(parsing->use, geterrcode());
    tell_expression((void *)parsing->text);
}

[[noreturn]] static void raise_no_column(const Parsing *parsing, ParseState *state, const ColumnRef *name)
{
    ereport(ERROR,
            (errcode(ERRCODE_UNDEFINED_COLUMN),
             errmsg("column \"%s\" of %s does not exist", NameListToString(name->fields), parsing->columns->of),
             list_length(name->fields) > 1
                 ? errhint("Name a column without its relation; a field of it as (column).field.")
                 : errhint("Expressions name columns of %s. Constants of text stand in quotes.", parsing->columns->of),
             parser_errposition(state, name->location)));
    pg_unreachable();
}

/* --- names --- */

/* A hook of the parser: no names but those of columns. A domain is taken for its type, as which it is stored. */
static Node *find_column(ParseState *state, ColumnRef *name)
{
    const Parsing *const parsing = (const Parsing *)state->p_ref_hook_state;
    const Node *const field = (const Node *)linitial(name->fields);
    int found = -1;

    if (list_length(name->fields) > 1 || !IsA(field, String))
        raise_no_column(parsing, state, name);
    for (int i = 0; i < parsing->columns->count; ++i) {
        const ExpressionColumn *const column = &parsing->columns->columns[i];

        if (!OidIsValid(column->type) || strcmp(column->name, strVal(field)) != 0)
            continue;
        if (found >= 0)
            ereport(ERROR, (errcode(ERRCODE_AMBIGUOUS_COLUMN),
                            errmsg("%s has several columns \"%s\"", parsing->columns->of, column->name),
                            parser_errposition(state, name->location)));
        found = i;
    }
    if (found < 0)
        raise_no_column(parsing, state, name);

    const ExpressionColumn *const column = &parsing->columns->columns[found];
    int32 typmod = column->typmod;
    const Oid type = getBaseTypeAndTypmod(column->type, &typmod);

    if (get_typtype(type) == TYPTYPE_PSEUDO ||
        (parsing->use == EXPRESSION_FEATURE && !expression_type_serves(column->type)))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("an expression cannot use column \"%s\" of type %s", column->name, format_type_be(type)),
                        errhint("%s", EXPRESSION_VIEW_HINT), parser_errposition(state, name->location)));

    /* A model means the same of all columns, whatever their collation. */
    const bool is_plain = parsing->use == EXPRESSION_FEATURE && OidIsValid(column->collation);
    Var *const var = makeVar(1, (AttrNumber)(found + 1), type, parsing->use == EXPRESSION_FEATURE ? -1 : typmod,
                             is_plain ? DEFAULT_COLLATION_OID : column->collation, 0);

    var->location = name->location;
    return (Node *)var;
}

/* --- parsing --- */

/* SELECT of one expression, and nothing else. */
static Node *parse_text(const char *text)
{
    const SelectStmt *const statement =
        (const SelectStmt *)linitial_node(RawStmt, raw_parser(text, RAW_PARSE_PLPGSQL_EXPR))->stmt;
    SelectStmt *const alone = makeNode(SelectStmt);

    if (IsA(statement, SelectStmt))
        alone->targetList = statement->targetList;
    if (list_length(alone->targetList) != 1 || !equal(alone, statement))
        ereport(ERROR, (errcode(ERRCODE_SYNTAX_ERROR), errmsg("one expression is expected"),
                        errhint("A feature is one expression and a filter one condition, without any clause of a "
                                "SELECT. A list of features is an array, as '{x,y}'.")));

    const ResTarget *const target = linitial_node(ResTarget, alone->targetList);

    if (target->name != NULL)
        ereport(ERROR, (errcode(ERRCODE_SYNTAX_ERROR), errmsg("an expression has no name"),
                        errhint("Leave \"%s\" out.", target->name)));
    return target->val;
}

static Node *analyse(Parsing *parsing, const Node *raw)
{
    ParseState *const state = make_parsestate(NULL);
    Node *const copy = (Node *)copyObjectImpl(raw);

    state->p_sourcetext = parsing->text;
    state->p_pre_columnref_hook = find_column;
    state->p_ref_hook_state = parsing;
    expression_check_names(state, copy, parsing->use == EXPRESSION_FEATURE);

    Node *tree = transformExpr(state, copy, EXPR_KIND_STATS_EXPRESSION);

    if (parsing->use == EXPRESSION_CONDITION)
        tree = coerce_to_boolean(state, tree, "filter");
    else if (exprType(tree) == UNKNOWNOID)
        tree = coerce_type(state, tree, UNKNOWNOID, TEXTOID, -1, COERCION_IMPLICIT, COERCE_IMPLICIT_CAST, -1);
    assign_expr_collations(state, tree);
    if (parsing->use == EXPRESSION_FEATURE)
        expression_check_tree(state, tree);
    if (get_typtype(exprType(tree)) == TYPTYPE_PSEUDO)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("an expression cannot have the type %s", format_type_be(exprType(tree)))));
    free_parsestate(state);
    return tree;
}

/* What a model's expression means must not depend on the caller's settings. They are fixed therefore, and those that
 * literals of dates and times depend on are so twice, as different as can be: no day is the same in both time zones. */
static void fix_settings(bool otherwise)
{
    static const char *const settings[][3] = {{"search_path", "pg_catalog, pg_temp", "pg_catalog, pg_temp"},
                                              {"standard_conforming_strings", "on", "on"},
                                              {"transform_null_equals", "off", "off"},
                                              {"array_nulls", "on", "on"},
                                              {"DateStyle", "ISO, MDY", "ISO, DMY"},
                                              {"IntervalStyle", "postgres", "sql_standard"},
                                              {"TimeZone", "-12", "14"}};

    for (const char *const *setting : settings)
        (void)set_config_option(setting[0], setting[otherwise ? 2 : 1], PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
                                true, 0, false);
}

static Node *analyse_feature(Parsing *parsing)
{
    const int nest_level = NewGUCNestLevel();

    fix_settings(false);

    const Node *const raw = parse_text(parsing->text);
    Node *const tree = analyse(parsing, raw);

    fix_settings(true);
    if (!equal(tree, analyse(parsing, raw)))
        ereport(ERROR, (errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
                        errmsg("an expression of a model cannot have dates and times that depend on settings or on the "
                               "present day"),
                        errhint("Write days as '2024-12-31', and the time zone behind a time that has one.")));

    Node *const planned = (Node *)expression_planner((Expr *)tree);

    AtEOXact_GUC(false, nest_level);
    return planned;
}

/* --- results --- */

/* A walker: the columns of Vars, as bits. */
static bool collect_columns(Node *node, void *columns)
{
    Bitmapset **const found = (Bitmapset **)columns;

    if (node == NULL)
        return false;
    if (IsA(node, Var))
        *found = bms_add_member(*found, ((const Var *)node)->varattno - 1);
    return pgkm_expression_tree_walker(node, collect_columns, columns);
}

/* Likewise: Vars of columns become those of inputs. A tree that the planner has made has each Var in one place alone.
 */
static bool number_inputs(Node *node, void *columns)
{
    if (node == NULL)
        return false;
    if (IsA(node, Var)) {
        Var *const var = (Var *)node;

        var->varattno = (AttrNumber)(bms_member_index((Bitmapset *)columns, var->varattno - 1) + 1);
    }
    return pgkm_expression_tree_walker(node, number_inputs, columns);
}

static Expression *make_expression(const char *text, Node *tree, List *inputs)
{
    Expression *const expression = (Expression *)palloc(sizeof(Expression));

    *expression = {text, exprType(tree), exprTypmod(tree), exprCollation(tree), tree, inputs, false, false};
    return expression;
}

static bool is_parallel_safe(Node *tree)
{
    Query *const query = makeNode(Query);

    query->targetList = list_make1(tree);
    return max_parallel_hazard(query) == PROPARALLEL_SAFE;
}

Expression *expression_parse(const char *text, const ExpressionColumns *columns, ExpressionUse use)
{
    Parsing parsing = {pstrdup(text), columns, use};
    ErrorContextCallback callback = {error_context_stack, tell_parsing, &parsing};
    Bitmapset *found = NULL;
    List *inputs = NIL;

    error_context_stack = &callback;

    Node *const tree = use == EXPRESSION_FEATURE
                           ? analyse_feature(&parsing)
                           : (Node *)expression_planner((Expr *)analyse(&parsing, parse_text(text)));

    collect_columns(tree, &found);
    number_inputs(tree, found);
    for (int i = -1; (i = bms_next_member(found, i)) >= 0;)
        inputs = lappend_int(inputs, i);

    Expression *const expression = make_expression(parsing.text, tree, inputs);

    expression->is_parallel_safe = is_parallel_safe(tree);
    expression->is_volatile = contain_volatile_functions(tree);
    error_context_stack = callback.previous;
    return expression;
}

bool text_is_expression(const char *text)
{
    return strpbrk(text, " ,()[]+-*/%<>=|:'^~@#&!?") != NULL;
}

char *expression_write(const Expression *expression)
{
    return nodeToString(list_make3(makeString(pstrdup(expression->text)), expression->tree, expression->inputs));
}

Expression *expression_read(const char *written)
{
    const List *const parts = (const List *)stringToNode(written);
    Expression *const expression =
        make_expression(strVal(linitial(parts)), (Node *)lsecond(parts), (List *)lthird(parts));

    expression->is_parallel_safe = true;
    return expression;
}

/* --- evaluation --- */

struct ExpressionState {
    const char *text;
    int n_inputs;
    int *inputs; /* their numbers */
    TupleTableSlot *slot;
    ExprContext *context;
    ExprState *state;
};

ExpressionState *expression_begin(const Expression *expression, const ExpressionColumn *columns)
{
    ExpressionState *const state = (ExpressionState *)palloc(sizeof(ExpressionState));
    const int n_inputs = list_length(expression->inputs);
    const TupleDesc row = CreateTemplateTupleDesc(n_inputs);
    int *const inputs = (int *)palloc((n_inputs + 1) * sizeof(int));

    for (int i = 0; i < n_inputs; ++i) {
        inputs[i] = list_nth_int(expression->inputs, i);

        const ExpressionColumn *const column = &columns[inputs[i]];
        int32 typmod = column->typmod;
        const Oid type = getBaseTypeAndTypmod(column->type, &typmod);

        TupleDescInitEntry(row, (AttrNumber)(i + 1), NULL, type, typmod, 0);
    }
    *state = {expression->text,
              n_inputs,
              inputs,
              MakeSingleTupleTableSlot(row, &TTSOpsVirtual),
              CreateStandaloneExprContext(),
              ExecInitExpr((Expr *)expression->tree, NULL)};
    state->context->ecxt_scantuple = state->slot;
    return state;
}

NullableDatum expression_value(ExpressionState *state, const Datum *values, const bool *nulls, const AttrNumber *places)
{
    TupleTableSlot *const slot = state->slot;
    ErrorContextCallback callback = {error_context_stack, tell_expression, (void *)state->text};

    error_context_stack = &callback;
    CHECK_FOR_INTERRUPTS();
    ResetExprContext(state->context);
    ExecClearTuple(slot);
    for (int i = 0; i < state->n_inputs; ++i) {
        const int at = places == NULL ? state->inputs[i] : places[state->inputs[i]];

        slot->tts_values[i] =
            MakeExpandedObjectReadOnly(values[at], nulls[at], TupleDescAttr(slot->tts_tupleDescriptor, i)->attlen);
        slot->tts_isnull[i] = nulls[at];
    }
    ExecStoreVirtualTuple(slot);

    NullableDatum value;

    value.value = ExecEvalExprSwitchContext(state->state, state->context, &value.isnull);
    error_context_stack = callback.previous;
    return value;
}
