/*
 * convert.cpp - the closed list: which nodes of the server's grammar become terms, and which.
 */
#include "pg/reduce/parsing.h"

#include <cmath>

extern "C" {
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "nodes/primnodes.h"
#include "nodes/value.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
}

/* A word of the language and the operation it means. */
struct Word {
    const char *word;
    PgkmOperation operation;
};

/* One of a fixed number of arguments. */
struct Function : Word {
    int n_arguments;
};

static const Function functions[] = {{"abs", PGKM_ABS, 1},      {"sqrt", PGKM_SQRT, 1},   {"exp", PGKM_EXP, 1},
                                     {"ln", PGKM_LN, 1},        {"floor", PGKM_FLOOR, 1}, {"ceil", PGKM_CEIL, 1},
                                     {"ceiling", PGKM_CEIL, 1}, {"round", PGKM_ROUND, 1}, {"trunc", PGKM_TRUNC, 1},
                                     {"sign", PGKM_SIGN, 1},    {"sin", PGKM_SIN, 1},     {"cos", PGKM_COS, 1},
                                     {"tan", PGKM_TAN, 1},      {"asin", PGKM_ASIN, 1},   {"acos", PGKM_ACOS, 1},
                                     {"atan", PGKM_ATAN, 1},    {"tanh", PGKM_TANH, 1},   {"atan2", PGKM_ATAN2, 2},
                                     {"power", PGKM_POWER, 2},  {"pow", PGKM_POWER, 2},   {"mod", PGKM_MODULO, 2}};

/* Over the index of a loop, or over the elements of a vector. */
static const Word loops[] = {{"sum", PGKM_SUM},       {"prod", PGKM_PROD},     {"min", PGKM_MIN},    {"max", PGKM_MAX},
                             {"argmin", PGKM_ARGMIN}, {"argmax", PGKM_ARGMAX}, {"count", PGKM_COUNT}};

/* Those with -2 arguments take them the other way round. */
static const Function operators[] = {
    {"+", PGKM_ADD, 2},    {"-", PGKM_SUBTRACT, 2},    {"*", PGKM_MULTIPLY, 2}, {"/", PGKM_DIVIDE, 2},
    {"%", PGKM_MODULO, 2}, {"^", PGKM_POWER, 2},       {"=", PGKM_EQUAL, 2},    {"<>", PGKM_NOT_EQUAL, 2},
    {"<", PGKM_LESS, 2},   {"<=", PGKM_LESS_EQUAL, 2}, {">", PGKM_LESS, -2},    {">=", PGKM_LESS_EQUAL, -2}};

template <typename Entry, size_t count>
static const Entry *find_word(const Entry (&words)[count], const char *word)
{
    for (const Entry &candidate : words)
        if (strcmp(candidate.word, word) == 0)
            return &candidate;
    return NULL;
}

/* --- terms --- */

static ReduceTerm *make_term(Parsing *parsing, ReduceTermKind kind, int32 place, int n_arguments)
{
    ReduceTerm *const term =
        (ReduceTerm *)palloc0(offsetof(ReduceTerm, arguments) + n_arguments * sizeof(ReduceTerm *));

    if (++parsing->n_terms > REDUCE_MAX_TERMS)
        parsing_raise_too_long();
    term->kind = kind;
    term->place = place;
    term->n_arguments = n_arguments;
    return term;
}

static ReduceTerm *make_operation(Parsing *parsing, PgkmOperation operation, int32 place, ReduceTerm *a,
                                  ReduceTerm *b = NULL, ReduceTerm *c = NULL)
{
    ReduceTerm *const term = make_term(parsing, TERM_OPERATION, place, c != NULL ? 3 : b != NULL ? 2 : 1);

    term->operation = operation;
    term->arguments[0] = a;
    if (b != NULL)
        term->arguments[1] = b;
    if (c != NULL)
        term->arguments[2] = c;
    return term;
}

static ReduceTerm *make_number(Parsing *parsing, ReduceTermKind kind, int32 place, double number)
{
    ReduceTerm *const term = make_term(parsing, kind, place, 0);

    term->number = number;
    return term;
}

/* --- nodes --- */

static ReduceTerm *convert_constant(Parsing *parsing, A_Const *node)
{
    const int32 place = parsing_place(parsing, node->location);

    if (node->isnull)
        parsing_refuse(parsing, place, "an expression of a reduction cannot be null");
    switch (nodeTag(&node->val)) {
    case T_Integer:
        return make_number(parsing, TERM_NUMBER, place, intVal(&node->val));
    case T_Float: {
        const Datum exact = DirectFunctionCall3(numeric_in, CStringGetDatum(node->val.fval.fval),
                                                ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
        const double number = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, exact));

        if (!std::isfinite(number))
            ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("number is out of range"),
                            reduce_position(parsing->text, place)));
        return make_number(parsing, TERM_NUMBER, place, number);
    }
    case T_Boolean:
        return make_number(parsing, TERM_TRUTH, place, boolVal(&node->val) ? 1 : 0);
    default:
        parsing_refuse(parsing, place, "an expression of a reduction has no strings");
    }
}

/* The parts of a name, up to two; false for another thing. */
static bool name_parts(List *fields, const char **first, const char **second)
{
    ListCell *cell;

    foreach (cell, fields)
        if (!IsA(lfirst(cell), String))
            return false;
    *first = strVal(linitial(fields));
    *second = list_length(fields) == 2 ? strVal(lsecond(fields)) : NULL;
    return list_length(fields) <= 2;
}

static ReduceTerm *convert_name(Parsing *parsing, ColumnRef *node)
{
    const int32 place = parsing_place(parsing, node->location);
    const char *first;
    const char *second;

    if (!name_parts(node->fields, &first, &second) || (second != NULL && strcmp(first, "old") != 0))
        parsing_refuse(parsing, place, "a name in a reduction is that of a column, a parameter or an index");

    ReduceTerm *const term = make_term(parsing, second == NULL ? TERM_NAME : TERM_OLD, place, 0);

    term->name = second == NULL ? first : second;
    return term;
}

static ReduceTerm *convert_subscripts(Parsing *parsing, A_Indirection *node)
{
    ReduceTerm *const base = parsing_convert(parsing, node->arg);
    ReduceTerm *const term = make_term(parsing, TERM_SUBSCRIPT, base->place, 1 + list_length(node->indirection));
    int i = 1;
    ListCell *cell;

    term->arguments[0] = base;
    foreach (cell, node->indirection) {
        A_Indices *const subscript = (A_Indices *)lfirst(cell);

        if (!IsA(subscript, A_Indices) || subscript->is_slice)
            parsing_refuse(parsing, base->place, "a vector of a reduction has subscripts of one number each");
        term->arguments[i++] = parsing_convert(parsing, subscript->uidx);
    }
    return term;
}

static ReduceTerm *make_between(Parsing *parsing, A_Expr *node, int32 place)
{
    ReduceTerm *const value = parsing_convert(parsing, node->lexpr);
    ReduceTerm *const least = parsing_convert(parsing, (Node *)linitial((List *)node->rexpr));
    ReduceTerm *const most = parsing_convert(parsing, (Node *)lsecond((List *)node->rexpr));
    ReduceTerm *const within =
        make_operation(parsing, PGKM_AND, place, make_operation(parsing, PGKM_LESS_EQUAL, place, least, value),
                       make_operation(parsing, PGKM_LESS_EQUAL, place, value, most));

    return node->kind == AEXPR_BETWEEN ? within : make_operation(parsing, PGKM_NOT, place, within);
}

static ReduceTerm *convert_operator(Parsing *parsing, A_Expr *node)
{
    const int32 place = parsing_place(parsing, node->location);

    if (node->kind == AEXPR_BETWEEN || node->kind == AEXPR_NOT_BETWEEN)
        return make_between(parsing, node, place);

    const Function *const word = node->kind == AEXPR_OP && list_length(node->name) == 1
                                     ? find_word(operators, strVal(linitial(node->name)))
                                     : NULL;

    if (word == NULL)
        parsing_refuse(parsing, place,
                       node->kind == AEXPR_OP
                           ? psprintf("operator %s is no operator of reductions", strVal(llast(node->name)))
                           : "this is no expression of reductions");
    if (node->lexpr == NULL) {
        if (strcmp(word->word, "+") == 0)
            return parsing_convert(parsing, node->rexpr);
        if (strcmp(word->word, "-") == 0)
            return make_operation(parsing, PGKM_NEGATE, place, parsing_convert(parsing, node->rexpr));
        parsing_refuse(parsing, place, psprintf("operator %s needs two arguments", word->word));
    }

    ReduceTerm *const left = parsing_convert(parsing, node->lexpr);
    ReduceTerm *const right = parsing_convert(parsing, node->rexpr);

    return make_operation(parsing, word->operation, place, word->n_arguments > 0 ? left : right,
                          word->n_arguments > 0 ? right : left);
}

/* Of two or more arguments, from the left. */
static ReduceTerm *convert_chain(Parsing *parsing, PgkmOperation operation, int32 place, List *arguments)
{
    ReduceTerm *term = NULL;
    ListCell *cell;

    foreach (cell, arguments) {
        ReduceTerm *const next = parsing_convert(parsing, (Node *)lfirst(cell));

        term = term == NULL ? next : make_operation(parsing, operation, place, term, next);
    }
    return term;
}

static ReduceTerm *convert_truths(Parsing *parsing, BoolExpr *node)
{
    const int32 place = parsing_place(parsing, node->location);

    if (node->boolop == NOT_EXPR)
        return make_operation(parsing, PGKM_NOT, place, parsing_convert(parsing, (Node *)linitial(node->args)));
    return convert_chain(parsing, node->boolop == AND_EXPR ? PGKM_AND : PGKM_OR, place, node->args);
}

/* From the last branch to the first. */
static ReduceTerm *convert_case(Parsing *parsing, CaseExpr *node)
{
    const int32 place = parsing_place(parsing, node->location);

    if (node->defresult == NULL)
        parsing_refuse(parsing, place, "CASE of a reduction needs an ELSE");

    ReduceTerm *const subject = node->arg == NULL ? NULL : parsing_convert(parsing, (Node *)node->arg);
    ReduceTerm *term = parsing_convert(parsing, (Node *)node->defresult);

    for (int i = list_length(node->args); i-- > 0;) {
        const CaseWhen *const branch = (const CaseWhen *)list_nth(node->args, i);
        ReduceTerm *condition = parsing_convert(parsing, (Node *)branch->expr);
        const int32 at = parsing_place(parsing, branch->location);

        if (subject != NULL)
            condition = make_operation(parsing, PGKM_EQUAL, at, subject, condition);
        term =
            make_operation(parsing, PGKM_CASE, at, condition, parsing_convert(parsing, (Node *)branch->result), term);
    }
    return term;
}

/* --- functions --- */

/* name(index, count, body), or name(vector) where that is allowed. */
static ReduceTerm *convert_loop(Parsing *parsing, ReduceTermKind kind, const char *function, List *arguments,
                                int32 place)
{
    ColumnRef *const index = (ColumnRef *)linitial(arguments);
    const bool over_elements = list_length(arguments) == 1 && kind == TERM_LOOP;
    const char *name = NULL;
    const char *rest = NULL;

    if (!over_elements && (list_length(arguments) != 3 || !IsA(index, ColumnRef) ||
                           !name_parts(index->fields, &name, &rest) || rest != NULL))
        parsing_refuse(parsing, place,
                       psprintf(kind == TERM_LOOP ? "%s of a reduction is %s(index, count, expression) or %s(vector)"
                                                  : "%s of a reduction is %s(index, count, expression)",
                                function, function, function));

    ReduceTerm *const term = make_term(parsing, kind, place, over_elements ? 1 : 2);

    term->name = name;
    for (int i = 0; i < term->n_arguments; ++i)
        term->arguments[i] = parsing_convert(parsing, (Node *)list_nth(arguments, over_elements ? i : i + 1));
    return term;
}

/* cardinality(x), array_length(x, 1) or array_length(x, 2). */
static ReduceTerm *convert_length(Parsing *parsing, bool all, List *arguments, int32 place)
{
    A_Const *const dimension = all ? NULL : (A_Const *)llast(arguments);
    const bool good = all ? list_length(arguments) == 1
                          : list_length(arguments) == 2 && IsA(dimension, A_Const) && !dimension->isnull &&
                                IsA(&dimension->val, Integer) &&
                                (intVal(&dimension->val) == 1 || intVal(&dimension->val) == 2);

    if (!good)
        parsing_refuse(parsing, place,
                       "lengths in a reduction are cardinality(name), array_length(name, 1) and array_length(name, 2)");

    ReduceTerm *const term = make_term(parsing, TERM_LENGTH, place, 1);

    term->number = all ? 0 : intVal(&dimension->val);
    term->arguments[0] = parsing_convert(parsing, (Node *)linitial(arguments));
    return term;
}

static ReduceTerm *convert_function(Parsing *parsing, FuncCall *node)
{
    const int32 place = parsing_place(parsing, node->location);
    const char *const name = strVal(llast(node->funcname));
    const int count = list_length(node->args);

    if (node->agg_order != NIL || node->agg_filter != NULL || node->over != NULL || node->agg_within_group ||
        node->agg_star || node->agg_distinct || node->func_variadic || list_length(node->funcname) != 1)
        parsing_refuse(parsing, place, "a function of a reduction is a plain name with arguments in parentheses");

    const Word *const loop = find_word(loops, name);

    if (count > 0 && loop != NULL) {
        ReduceTerm *const term = convert_loop(parsing, TERM_LOOP, name, node->args, place);

        term->operation = loop->operation;
        return term;
    }
    if (count > 0 && strcmp(name, "vector") == 0)
        return convert_loop(parsing, TERM_VECTOR, name, node->args, place);
    if (count > 0 && (strcmp(name, "cardinality") == 0 || strcmp(name, "array_length") == 0))
        return convert_length(parsing, *name == 'c', node->args, place);
    if (count == 0 && strcmp(name, "pi") == 0)
        return make_number(parsing, TERM_NUMBER, place, M_PI);

    const Function *const word = find_word(functions, name);

    if (word == NULL || word->n_arguments != count)
        parsing_refuse(parsing, place, psprintf("%s with %d arguments is no function of reductions", name, count));

    ReduceTerm *const first = parsing_convert(parsing, (Node *)linitial(node->args));

    return make_operation(parsing, word->operation, place, first,
                          count == 1 ? NULL : parsing_convert(parsing, (Node *)lsecond(node->args)));
}

ReduceTerm *parsing_convert(Parsing *parsing, Node *node)
{
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
    case T_BoolExpr:
        return convert_truths(parsing, (BoolExpr *)node);
    case T_CaseExpr:
        return convert_case(parsing, (CaseExpr *)node);
    case T_MinMaxExpr: {
        MinMaxExpr *const extreme = (MinMaxExpr *)node;

        return convert_chain(parsing, extreme->op == IS_LEAST ? PGKM_LEAST : PGKM_GREATEST,
                             parsing_place(parsing, extreme->location), extreme->args);
    }
    case T_FuncCall:
        return convert_function(parsing, (FuncCall *)node);
    case T_TypeCast:
        parsing_refuse(parsing, parsing_place(parsing, ((TypeCast *)node)->location),
                       "a reduction has no casts: its numbers are double precision");
    default:
        parsing_refuse(parsing, parsing_place(parsing, exprLocation(node)), "this is no expression of reductions");
    }
}
