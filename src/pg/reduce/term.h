/*
 * term.h - the expressions of a reduction as trees, made of the user's text.
 *
 * The server's grammar reads the text. What comes of it is taken over node by node, by a closed list: all else is
 * 0A000, and no node of the grammar goes any further. Names are not looked up here.
 */
#ifndef PGKM_PG_REDUCE_TERM_H
#define PGKM_PG_REDUCE_TERM_H

#include "pg/compat.h"

#include "backend/reduction.h"

extern "C" {
#include "nodes/pg_list.h"
}

/* A text that the user gave. The texts of a reduction have places of their own: `start` is that of its first byte. */
struct ReduceText {
    const char *what; /* static: the argument's name */
    const char *text;
    int32 start;
};

enum ReduceTermKind {
    TERM_NUMBER,
    TERM_TRUTH,     /* number is 0 or 1 */
    TERM_NAME,      /* a column, a parameter, or the index of a loop */
    TERM_OLD,       /* old.name */
    TERM_SUBSCRIPT, /* arguments[0] at the others */
    TERM_OPERATION, /* of one number, or of each element of vectors */
    TERM_LOOP, /* over name = 0 .. arguments[0] - 1 of arguments[1]; without a name over the elements of arguments[0] */
    TERM_VECTOR, /* likewise, with a name: the vector of those values */
    TERM_LENGTH  /* of arguments[0]: number 1 or 2 is the dimension, 0 means all elements */
};

struct ReduceTerm {
    ReduceTermKind kind;
    PgkmOperation operation; /* of an operation and a loop */
    int32 place;             /* for errors: in ReduceText, from its start */
    const char *name;
    double number;
    int n_arguments;
    ReduceTerm *arguments[FLEXIBLE_ARRAY_MEMBER];
};

/* Most bytes of a text, and terms in it. */
#define REDUCE_MAX_TEXT 65536
#define REDUCE_MAX_TERMS 16384

/* While errors about a text are raised: their position is in it, and CONTEXT names it. `text` may change meanwhile. */
struct ReduceErrors {
    ErrorContextCallback callback;
    const ReduceText *text;
};
void reduce_errors_begin(ReduceErrors *errors, const ReduceText *text);
void reduce_errors_end(ReduceErrors *errors);

/* For ereport between the two: the place as a position; none in a text that was not given. */
int reduce_position(const ReduceText *text, int32 place);

/* One expression; or a list of them in braces, or one without. 42601 for what is no SQL, 0A000 for what is no
 * expression of reductions, 54000 for what is too long. */
ReduceTerm *reduce_parse(const ReduceText *text);
List *reduce_parse_list(const ReduceText *text);

#endif
