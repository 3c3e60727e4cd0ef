/*
 * tree.h - a user's reduction as trees of plain data: what src/pg reads from SQL texts by the server's grammar.
 *
 * A tree says what stands in the text, word by word. Which words the language has, what they mean, and what names stand
 * for is found out here (lower.h).
 */
#ifndef PGKM_REDUCTION_TREE_H
#define PGKM_REDUCTION_TREE_H

#include "backend/reduction.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum PgkmTermKind {
    PGKM_TERM_NUMBER,
    PGKM_TERM_TRUTH,     /* number is 0 or 1 */
    PGKM_TERM_NAME,      /* a column, a parameter, a name of let, or the index of a loop */
    PGKM_TERM_OLD,       /* old.name */
    PGKM_TERM_SUBSCRIPT, /* arguments[0] at the others */
    PGKM_TERM_FUNCTION,  /* name(arguments) */
    PGKM_TERM_OPERATOR   /* a symbol; or and, or, not, least, greatest, case (condition, then, else) */
} PgkmTermKind;

typedef struct PgkmTerm {
    PgkmTermKind kind;
    int32_t place; /* for errors: all texts of a reduction have places of their own */
    const char *name;
    double number;
    int32_t n_arguments;
    const struct PgkmTerm **arguments;
} PgkmTerm;

/* A column, or a parameter. */
typedef struct PgkmNamed {
    const char *name;
    int32_t dimensions;   /* 0 to 2 */
    int64_t extent[2];    /* 1 where there is no such dimension; at most 2^31 - 1 */
    int64_t first;        /* of a column: which value of a row is its first */
    int32_t truth;        /* 1: a boolean column, which is a condition as well */
    const double *values; /* of a parameter */
} PgkmNamed;

/* An expression that has a name: where the name stands, the expression is meant. */
typedef struct PgkmLet {
    const char *name;
    const PgkmTerm *term;
} PgkmLet;

/* One reduction object. A term that was not given is NULL. */
typedef struct PgkmObjectTree {
    const PgkmTerm *index;
    const PgkmTerm *cells;
    const PgkmTerm *filter;
    const PgkmTerm *key;
    const PgkmTerm **values;
    const PgkmCombine *combines; /* one for each value */
    int32_t n_values;
} PgkmObjectTree;

/* What the names of a reduction stand for. */
typedef struct PgkmNames {
    const PgkmNamed *columns;
    int32_t n_columns;
    const PgkmNamed *parameters; /* "old.x" is what a text calls old.x */
    int32_t n_parameters;
    const PgkmLet *lets;
    int32_t n_lets;
} PgkmNames;

#ifdef __cplusplus
}
#endif
#endif
