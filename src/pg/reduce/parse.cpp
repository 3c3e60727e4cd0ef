/*
 * parse.cpp - reads texts by the server's grammar.
 */
#include "pg/reduce/parse.h"

#include <cmath>
#include <initializer_list>

#include "pg/values/datum.h"

extern "C" {
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "nodes/primnodes.h"
#include "nodes/value.h"
#include "parser/parser.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
}

struct ReduceText {
    const char *what;
    const char *text;
    int32 start;
};

struct Parsing {
    ReduceTexts *texts;
    int32 start;
    int n_terms;
};

/* --- errors --- */

int32 reduce_add_text(ReduceTexts *texts, const char *what, const char *text)
{
    ReduceText *const added = (ReduceText *)palloc(sizeof(ReduceText));

    *added = {what, text, texts->end};
    texts->texts = lappend(texts->texts, added);
    texts->end += (int32)Min(strlen(text), (size_t)REDUCE_MAX_TEXT) + 1;
    return added->start;
}

/* NULL for no place. */
static const ReduceText *find_text(const ReduceTexts *texts, int32 place)
{
    const ReduceText *found = NULL;
    ListCell *cell;

    foreach (cell, texts->texts)
        if (((const ReduceText *)lfirst(cell))->start <= place)
            found = (const ReduceText *)lfirst(cell);
    return found;
}

/* A context callback: the place is in the text, and CONTEXT names that. */
static void tell_text(void *argument)
{
    const ReduceText *const text = (const ReduceText *)argument;

    pgkm_error_lies_in(text->text);
    errcontext("\"%s\" of a reduction", text->what);
}

static ErrorContextCallback begin_errors(const ReduceText *text)
{
    return {error_context_stack, tell_text, (void *)text};
}

void reduce_raise_at(const ReduceTexts *texts, int sqlstate, int32 place, const char *message, ReduceRow row)
{
    const ReduceText *const text = find_text(texts, place);
    ErrorContextCallback callback = begin_errors(text);

    if (text != NULL)
        error_context_stack = &callback;
    ereport(ERROR, (errcode(sqlstate), errmsg("%s", message),
                    row.number > 0 ? errdetail("It is row %lld of those that take part.", (long long)row.number)
                                   : pgkm_detail_of_row(row.ctid),
                    text == NULL ? 0 : errposition(pg_mbstrlen_with_len(text->text, place - text->start) + 1)));
    pg_unreachable();
}

void reduce_raise(const ReduceTexts *texts, const PgkmTextError *error, ReduceRow row)
{
    const char *const state = error->sqlstate;

    CHECK_FOR_INTERRUPTS();
    reduce_raise_at(texts, MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4]), error->place, error->text,
                    row);
}

[[noreturn]] static void raise_too_long(void)
{
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("expression is too long"),
                    errdetail("An expression has at most %d bytes and %d terms.", REDUCE_MAX_TEXT, REDUCE_MAX_TERMS)));
    pg_unreachable();
}

[[noreturn]] static void refuse(const Parsing *parsing, int location, const char *message)
{
    reduce_raise_at(parsing->texts, ERRCODE_FEATURE_NOT_SUPPORTED, parsing->start + Max(location, 0), message);
}

/* --- terms --- */

static const PgkmTerm *convert(Parsing *parsing, Node *node);

static PgkmTerm *make_term(Parsing *parsing, PgkmTermKind kind, int location, const char *name, int n_arguments)
{
    PgkmTerm *const term = (PgkmTerm *)palloc0(sizeof(PgkmTerm));

    if (++parsing->n_terms > REDUCE_MAX_TERMS)
        raise_too_long();
    *term = {kind, parsing->start + Max(location, 0), name, 0, n_arguments, NULL};
    term->arguments = (const PgkmTerm **)palloc(Max(n_arguments, 1) * sizeof(PgkmTerm *));
    return term;
}

/* An index that the term binds is no name, nor are those of the same in its last argument: they are the names from
 * `last` on. 0A000 where the language does not have the term. */
static void hide_index(Parsing *parsing, const PgkmTerm *term, int last)
{
    List **const names = &parsing->texts->names;
    PgkmTextError error;
    const int binds = pgkm_term_binds(term, &error);

    if (binds < 0)
        reduce_raise(parsing->texts, &error);
    for (int i = list_length(*names), first = binds > 0 ? 0 : i; i-- > first;) {
        const PgkmTerm *const index = term->arguments[0];
        const PgkmTerm *const name = (const PgkmTerm *)list_nth(*names, i);

        if (name == index)
            first = i;
        if (name == index || (i >= last && strcmp(name->name, index->name) == 0))
            *names = list_delete_nth_cell(*names, i);
    }
}

static const PgkmTerm *make_operator(Parsing *parsing, int location, const char *name,
                                     std::initializer_list<const PgkmTerm *> arguments)
{
    PgkmTerm *const term = make_term(parsing, PGKM_TERM_OPERATOR, location, name, (int)arguments.size());
    int i = 0;

    for (const PgkmTerm *const argument : arguments)
        term->arguments[i++] = argument;
    hide_index(parsing, term, 0);
    return term;
}

static const PgkmTerm *convert_all(Parsing *parsing, PgkmTermKind kind, int location, const char *name, List *nodes)
{
    PgkmTerm *const term = make_term(parsing, kind, location, name, list_length(nodes));
    int last = 0;

    for (int i = 0; i < term->n_arguments; ++i) {
        last = list_length(parsing->texts->names);
        term->arguments[i] = convert(parsing, (Node *)list_nth(nodes, i));
    }
    hide_index(parsing, term, last);
    return term;
}

static const PgkmTerm *convert_constant(Parsing *parsing, A_Const *node)
{
    PgkmTerm *const term = make_term(parsing, PGKM_TERM_NUMBER, node->location, NULL, 0);

    if (node->isnull)
        refuse(parsing, node->location, "an expression of a reduction cannot be null");
    if (IsA(&node->val, Integer)) {
        term->number = intVal(&node->val);
    } else if (IsA(&node->val, Float)) {
        const Datum exact = DirectFunctionCall3(numeric_in, CStringGetDatum(node->val.fval.fval),
                                                ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));

        term->number = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, exact));
        if (!std::isfinite(term->number))
            reduce_raise_at(parsing->texts, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, term->place, "number is out of range");
    } else if (IsA(&node->val, Boolean)) {
        term->kind = PGKM_TERM_TRUTH;
        term->number = boolVal(&node->val) ? 1 : 0;
    } else {
        refuse(parsing, node->location, "an expression of a reduction has no strings");
    }
    return term;
}

/* name, or old.name */
static const PgkmTerm *convert_name(Parsing *parsing, ColumnRef *node)
{
    const int count = list_length(node->fields);
    const bool is_name = IsA(linitial(node->fields), String) && IsA(llast(node->fields), String);

    if (!is_name || count > 2 || (count == 2 && strcmp(strVal(linitial(node->fields)), "old") != 0))
        refuse(parsing, node->location, "a name in a reduction is that of a column, a parameter or an index");

    PgkmTerm *const term =
        make_term(parsing, count == 1 ? PGKM_TERM_NAME : PGKM_TERM_OLD, node->location, strVal(llast(node->fields)), 0);

    if (count == 1)
        parsing->texts->names = lappend(parsing->texts->names, term);
    return term;
}

static const PgkmTerm *convert_subscripts(Parsing *parsing, A_Indirection *node)
{
    const PgkmTerm *const base = convert(parsing, node->arg);
    const int location = base->place - parsing->start;
    PgkmTerm *const term = make_term(parsing, PGKM_TERM_SUBSCRIPT, location, NULL, 1 + list_length(node->indirection));

    term->arguments[0] = base;
    for (int i = 1; i < term->n_arguments; ++i) {
        A_Indices *const subscript = (A_Indices *)list_nth(node->indirection, i - 1);

        if (!IsA(subscript, A_Indices) || subscript->is_slice)
            refuse(parsing, location, "a vector of a reduction has subscripts of one number each");
        term->arguments[i] = convert(parsing, subscript->uidx);
    }
    return term;
}

static const PgkmTerm *convert_operator(Parsing *parsing, A_Expr *node)
{
    const int location = node->location;

    if (node->kind == AEXPR_BETWEEN || node->kind == AEXPR_NOT_BETWEEN) {
        const PgkmTerm *const value = convert(parsing, node->lexpr);
        const PgkmTerm *const least = convert(parsing, (Node *)linitial((List *)node->rexpr));
        const PgkmTerm *const most = convert(parsing, (Node *)lsecond((List *)node->rexpr));
        const PgkmTerm *const within = make_operator(parsing, location, "and",
                                                     {make_operator(parsing, location, "<=", {least, value}),
                                                      make_operator(parsing, location, "<=", {value, most})});

        return node->kind == AEXPR_BETWEEN ? within : make_operator(parsing, location, "not", {within});
    }
    if (node->kind != AEXPR_OP)
        refuse(parsing, location, "this is no expression of reductions");
    if (list_length(node->name) != 1)
        refuse(parsing, location, psprintf("operator %s is no operator of reductions", strVal(llast(node->name))));

    const PgkmTerm *const left = node->lexpr == NULL ? NULL : convert(parsing, node->lexpr);
    const PgkmTerm *const right = convert(parsing, node->rexpr);

    return left == NULL ? make_operator(parsing, location, strVal(linitial(node->name)), {right})
                        : make_operator(parsing, location, strVal(linitial(node->name)), {left, right});
}

/* From the last branch to the first. */
static const PgkmTerm *convert_case(Parsing *parsing, CaseExpr *node)
{
    if (node->defresult == NULL)
        refuse(parsing, node->location, "CASE of a reduction needs an ELSE");

    const PgkmTerm *const subject = node->arg == NULL ? NULL : convert(parsing, (Node *)node->arg);
    const PgkmTerm *term = convert(parsing, (Node *)node->defresult);

    for (int i = list_length(node->args); i-- > 0;) {
        const CaseWhen *const branch = (const CaseWhen *)list_nth(node->args, i);
        const PgkmTerm *condition = convert(parsing, (Node *)branch->expr);

        if (subject != NULL)
            condition = make_operator(parsing, branch->location, "=", {subject, condition});
        term = make_operator(parsing, branch->location, "case",
                             {condition, convert(parsing, (Node *)branch->result), term});
    }
    return term;
}

static const PgkmTerm *convert_function(Parsing *parsing, FuncCall *node)
{
    if (node->agg_order != NIL || node->agg_filter != NULL || node->over != NULL || node->agg_within_group ||
        node->agg_star || node->agg_distinct || node->func_variadic || list_length(node->funcname) != 1)
        refuse(parsing, node->location, "a function of a reduction is a plain name with arguments in parentheses");
    return convert_all(parsing, PGKM_TERM_FUNCTION, node->location, strVal(linitial(node->funcname)), node->args);
}

static const PgkmTerm *convert(Parsing *parsing, Node *node)
{
    static const char *const truths[] = {"and", "or", "not"};

    check_stack_depth();
    switch (nodeTag(node)) {
    case T_A_Const:
        return convert_constant(parsing, (A_Const *)node);
    case T_ColumnRef:
        return convert_name(parsing, (ColumnRef *)node);
    case T_A_Indirection:
        return convert_subscripts(parsing, (A_Indirection *)node);
    case T_A_Expr:
        return convert_operator(parsing, (A_Expr *)node);
    case T_BoolExpr: {
        BoolExpr *const truth = (BoolExpr *)node;

        return convert_all(parsing, PGKM_TERM_OPERATOR, truth->location, truths[truth->boolop], truth->args);
    }
    case T_CaseExpr:
        return convert_case(parsing, (CaseExpr *)node);
    case T_MinMaxExpr: {
        MinMaxExpr *const extreme = (MinMaxExpr *)node;

        return convert_all(parsing, PGKM_TERM_OPERATOR, extreme->location,
                           extreme->op == IS_LEAST ? "least" : "greatest", extreme->args);
    }
    case T_FuncCall:
        return convert_function(parsing, (FuncCall *)node);
    case T_TypeCast:
        refuse(parsing, ((TypeCast *)node)->location, "a reduction has no casts: its numbers are double precision");
    default:
        refuse(parsing, exprLocation(node), "this is no expression of reductions");
    }
}

/* --- texts --- */

/* The text with blanks for the braces around it, so that places stay; or the text. */
static char *without_braces(const char *text)
{
    char *const bare = pstrdup(text);
    char *first = bare;
    char *last = bare + strlen(bare);

    while (isspace((unsigned char)*first))
        ++first;
    while (last > first && isspace((unsigned char)last[-1]))
        --last;
    if (last - first >= 2 && *first == '{' && last[-1] == '}')
        *first = last[-1] = ' ';
    return bare;
}

/* SELECT of expressions, and nothing else. */
static bool is_list_alone(const SelectStmt *statement)
{
    SelectStmt *const list = makeNode(SelectStmt);

    list->targetList = statement->targetList;
    return list->targetList != NIL && equal(list, statement);
}

static RawStmt *parse_sql(const ReduceText *text)
{
    ErrorContextCallback callback = begin_errors(text);

    error_context_stack = &callback;
    if (strlen(text->text) > REDUCE_MAX_TEXT)
        raise_too_long();
    RawStmt *const statement = linitial_node(RawStmt, raw_parser(without_braces(text->text), RAW_PARSE_PLPGSQL_EXPR));
    error_context_stack = callback.previous;
    return statement;
}

List *reduce_parse_list(ReduceTexts *texts, const char *what, const char *text)
{
    Parsing parsing = {texts, reduce_add_text(texts, what, text), 0};
    const Node *const node = parse_sql((const ReduceText *)llast(texts->texts))->stmt;
    List *terms = NIL;
    ListCell *cell;

    if (!IsA(node, SelectStmt) || !is_list_alone((const SelectStmt *)node))
        refuse(&parsing, 0, "this is no list of expressions");
    foreach (cell, ((const SelectStmt *)node)->targetList) {
        const ResTarget *const target = lfirst_node(ResTarget, cell);

        if (target->name != NULL || target->indirection != NIL)
            refuse(&parsing, target->location, "expressions of reductions have no names");

        terms = lappend(terms, (void *)convert(&parsing, target->val));
    }
    return terms;
}

const PgkmTerm *reduce_parse(ReduceTexts *texts, const char *what, const char *text)
{
    if (text == NULL)
        return NULL;

    List *const terms = reduce_parse_list(texts, what, text);

    if (list_length(terms) > 1)
        reduce_raise_at(texts, ERRCODE_DATATYPE_MISMATCH, ((const PgkmTerm *)lsecond(terms))->place,
                        "one expression is expected, not a list");
    return (const PgkmTerm *)linitial(terms);
}
