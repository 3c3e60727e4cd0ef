/*
 * lower.h - from the trees of a reduction to the program that backends run (backend/reduction.h).
 *
 * No function throws. What is wrong with the user's text is an SQLSTATE, a sentence and a place.
 */
#ifndef PGKM_REDUCTION_LOWER_H
#define PGKM_REDUCTION_LOWER_H

#include "reduction/tree.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Terms within one another, at most. */
#define PGKM_MOST_NESTED 2000

typedef struct PgkmTextError {
    char sqlstate[6]; /* "00000": there is none */
    char text[256];
    int32_t place; /* -1: in no text */
} PgkmTextError;

/* Whether a function or an operator binds an index: arguments[0] is its name then, which arguments[2] may use. -1 where
 * the language does not have it: 0A000. */
int32_t pgkm_term_binds(const PgkmTerm *term, PgkmTextError *error);

/* A program, which the caller frees. */
typedef struct PgkmProgram PgkmProgram;
void pgkm_program_free(PgkmProgram *program);
PgkmReduction pgkm_program_reduction(const PgkmProgram *program, int32_t exact);

/* The shape of a value: a number, a vector, a matrix. */
typedef struct PgkmValueShape {
    int32_t dimensions;
    int64_t extent[2]; /* 1 where there is no such dimension */
    int32_t truth;     /* 1: it is a condition, or several */
} PgkmValueShape;

/* 1: give up, with 57014. */
typedef int (*PgkmGiveUp)(void);

/*
 * The program of these objects. With `shapes` each has one value, which may be a condition and whose lines are as long
 * as each other, and its shape is told. NULL after an error: 42703 for a name that is none, 42804 for a wrong type,
 * 22023 for a count that is none, 42P19 for a name that means itself, 22003 for a subscript outside, 0A000, 54000,
 * 53200.
 */
PgkmProgram *pgkm_program_lower(const PgkmObjectTree *objects, int32_t n_objects, const PgkmNames *names,
                                PgkmGiveUp give_up, PgkmValueShape *shapes, PgkmTextError *error);

/* Values of a cell of the object. */
int64_t pgkm_object_width(const PgkmReduction *program, int32_t object);

/* What a row, or a total, has failed of: 22012 or 22003, a sentence, and the place in the text. */
void pgkm_reduction_fault(const PgkmReduction *program, const PgkmReduced *reduced, PgkmTextError *error);

#ifdef __cplusplus
}
#endif
#endif
