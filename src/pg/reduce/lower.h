/*
 * lower.h - makes a program of the terms of a reduction, once the widths of its columns are known.
 */
#ifndef PGKM_PG_REDUCE_LOWER_H
#define PGKM_PG_REDUCE_LOWER_H

#include "pg/reduce/program.h"
#include "pg/reduce/term.h"

/* What a reduction reads of each row. */
struct ReduceColumns {
    ReduceName *names;
    int n_names;
};

/* An expression that has a name: where the name stands, the expression is meant. */
struct ReduceLet {
    ReduceText text; /* what: the name */
    ReduceTerm *term;
};

struct ReduceLets {
    ReduceLet *lets;
    int n_lets;
};

/* One reduction object as the user gave it, and its terms. A text that was not given is NULL. */
struct ReduceObject {
    const char *name; /* NULL: it is the only one */
    ReduceText index, value, cells, op, filter, key;
    ReduceTerm *index_term, *cells_term, *filter_term, *key_term; /* or NULL */
    List *values;                                                 /* of ReduceTerm */
    PgkmCombine *combines;                                        /* one for each of `values` */
};

/*
 * The program of these objects, which may use the names of `lets`. Errors, each at its place in the text: 42703 for a
 * name that is none, 42804 for a wrong type, 22023 for a count that is none, 42P19 for a name that means itself, 54000.
 */
ReduceProgram *reduce_lower(const ReduceObject *objects, int n_objects, const ReduceLets *lets,
                            const ReduceColumns *columns, const ReduceParameters *parameters);

/* The shape of an expression: a number, a vector, a matrix. */
struct ReduceShape {
    int dimensions;
    int64 extent[2];
    bool truth; /* its elements are true or false */
};

/* An expression of parameters alone: its text and term, and what the program says of it. */
struct ReduceFormula {
    ReduceText text;
    ReduceTerm *term;
    ReduceShape shape;
};

/*
 * The program of such expressions, an object each. Its rows have one column: the row's number, up to the most rows of
 * a matrix, *n_rows; each row makes a cell. A vector or a number has one. What a text calls old.x is the parameter of
 * that very name.
 */
ReduceProgram *reduce_lower_formulas(ReduceFormula *formulas, int n, const ReduceParameters *parameters, int64 *n_rows);

#endif
