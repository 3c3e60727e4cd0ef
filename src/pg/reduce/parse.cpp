/*
 * parse.cpp - makes terms of the user's text.
 */
#include "pg/reduce/parsing.h"

extern "C" {
#include "mb/pg_wchar.h"
#include "nodes/parsenodes.h"
#include "parser/parser.h"
}

/* --- errors --- */

static void tell_text(void *argument)
{
    const ReduceText *const text = ((const ReduceErrors *)argument)->text;
    const int position = geterrposition();

    if (position > 0) {
        errposition(0);
        internalerrposition(position);
        internalerrquery(text->text);
    }
    errcontext("\"%s\" of a reduction", text->what);
}

void reduce_errors_begin(ReduceErrors *errors, const ReduceText *text)
{
    errors->text = text;
    errors->callback.callback = tell_text;
    errors->callback.arg = errors;
    errors->callback.previous = error_context_stack;
    error_context_stack = &errors->callback;
}

void reduce_errors_end(ReduceErrors *errors)
{
    error_context_stack = errors->callback.previous;
}

int reduce_position(const ReduceText *text, int32 place)
{
    if (text->text == NULL)
        return 0;
    return errposition(pg_mbstrlen_with_len(text->text, place - text->start) + 1);
}

[[noreturn]] void parsing_refuse(const Parsing *parsing, int32 place, const char *message)
{
    ereport(ERROR,
            (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("%s", message), reduce_position(parsing->text, place)));
    pg_unreachable();
}

[[noreturn]] void parsing_raise_too_long(void)
{
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("expression is too long"),
                    errdetail("An expression has at most %d bytes and %d terms.", REDUCE_MAX_TEXT, REDUCE_MAX_TERMS)));
    pg_unreachable();
}

int32 parsing_place(const Parsing *parsing, int location)
{
    return parsing->text->start + Max(location, 0);
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

static bool is_list_alone(const SelectStmt *statement)
{
    return statement->distinctClause == NIL && statement->intoClause == NULL && statement->fromClause == NIL &&
           statement->whereClause == NULL && statement->groupClause == NIL && statement->havingClause == NULL &&
           statement->windowClause == NIL && statement->valuesLists == NIL && statement->sortClause == NIL &&
           statement->limitOffset == NULL && statement->limitCount == NULL && statement->lockingClause == NIL &&
           statement->withClause == NULL && statement->op == SETOP_NONE && statement->targetList != NIL;
}

List *reduce_parse_list(const ReduceText *text)
{
    Parsing parsing = {text, 0};
    ReduceErrors errors;
    List *terms = NIL;
    ListCell *cell;

    reduce_errors_begin(&errors, text);
    if (strlen(text->text) > REDUCE_MAX_TEXT)
        parsing_raise_too_long();

    RawStmt *const statement = linitial_node(RawStmt, raw_parser(without_braces(text->text), RAW_PARSE_PLPGSQL_EXPR));

    if (!IsA(statement->stmt, SelectStmt) || !is_list_alone((SelectStmt *)statement->stmt))
        parsing_refuse(&parsing, text->start, "this is no list of expressions");
    foreach (cell, ((SelectStmt *)statement->stmt)->targetList) {
        ResTarget *const target = lfirst_node(ResTarget, cell);

        if (target->name != NULL || target->indirection != NIL)
            parsing_refuse(&parsing, parsing_place(&parsing, target->location),
                           "expressions of reductions have no names");
        terms = lappend(terms, parsing_convert(&parsing, target->val));
    }
    reduce_errors_end(&errors);
    return terms;
}

ReduceTerm *reduce_parse(const ReduceText *text)
{
    List *const terms = reduce_parse_list(text);
    const ReduceTerm *const second = list_length(terms) < 2 ? NULL : (ReduceTerm *)lsecond(terms);
    ReduceErrors errors;

    reduce_errors_begin(&errors, text);
    if (second != NULL)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("one expression is expected, not a list"),
                        reduce_position(text, second->place)));
    reduce_errors_end(&errors);
    return (ReduceTerm *)linitial(terms);
}
