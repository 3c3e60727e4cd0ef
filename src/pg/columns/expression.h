/*
 * expression.h - SQL expressions over the columns of a row: features of a model, and filters.
 *
 * The server's own parser reads them, and its own executor evaluates them. The columns come as a list, be they a
 * relation's or those of a row type; an expression names them without a relation.
 */
#ifndef PGKM_PG_COLUMNS_EXPRESSION_H
#define PGKM_PG_COLUMNS_EXPRESSION_H

extern "C" {
#include "postgres.h"
#include "access/attnum.h"
#include "nodes/pg_list.h"
}

/* A column that an expression can name; none, where the type is InvalidOid. */
struct ExpressionColumn {
    const char *name;
    Oid type;
    int32 typmod;
    Oid collation;
};

struct ExpressionColumns {
    const ExpressionColumn *columns;
    int count;
    const char *of; /* whose they are, for errors: relation "name" */
};

enum ExpressionUse {
    /* Of a model, which others apply to their rows: what it calls is built in and immutable, and it means the same
     * under all settings. */
    EXPRESSION_FEATURE,
    /* Of a filter, which the caller runs once: any condition, by the caller's settings. */
    EXPRESSION_CONDITION
};

struct Expression {
    const char *text; /* as given */
    Oid type;         /* of the result */
    int32 typmod;
    Oid collation;
    Node *tree;            /* constants folded; of its Vars varattno is the place in `inputs`, from 1 */
    List *inputs;          /* of integers: the columns it reads, from 0, ascending */
    bool is_parallel_safe; /* other processes may evaluate it */
    bool is_volatile;      /* it may give another value for the same row */
};

/* Whether a text that is no column's name is meant as an expression: it has characters that names have seldom. */
bool text_is_expression(const char *text);

/*
 * In the current memory context. 42601 and whatever else the server says of the text, which CONTEXT names; 42703 for a
 * name that no column has; 42804 for a result that is no value, or no boolean where it is a condition. Of a feature
 * 0A000 for what is not built in and 42P17 for what is not immutable, by name.
 */
Expression *expression_parse(const char *text, const ExpressionColumns *columns, ExpressionUse use);

/* An expression as text for another process of the same server, and back. No check is made: it has to come from here.
 */
char *expression_write(const Expression *expression);
Expression *expression_read(const char *written);

/* Evaluates the expression as often as one likes, for as long as the current memory context lives. `columns`: as they
 * were when it was parsed. 42501 for a function that the current user may not call. */
struct ExpressionState;
ExpressionState *expression_begin(const Expression *expression, const ExpressionColumn *columns);

/* Its value for a row with these values. Input i of the expression is at places[i], by the number that it has among
 * the columns (Expression.inputs); places NULL: at that number. The value lives until the next call. CONTEXT of an
 * error names the expression; the row is the caller's to name. */
NullableDatum expression_value(ExpressionState *state, const Datum *values, const bool *nulls,
                               const AttrNumber *places);

#endif
