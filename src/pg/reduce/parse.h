/*
 * parse.h - the texts of a reduction as trees (reduction/tree.h), and errors about a place in one of them.
 *
 * The server's grammar reads a text. Its nodes become terms, or are 0A000; no node of the grammar goes any further.
 */
#ifndef PGKM_PG_REDUCE_PARSE_H
#define PGKM_PG_REDUCE_PARSE_H

#include "pg/compat.h"

#include "reduction/lower.h"

extern "C" {
#include "nodes/pg_list.h"
}

/* The texts of a call. Their places follow one another, so that a place tells the text. */
struct ReduceTexts {
    List *texts; /* of ReduceText */
    int32 end;   /* of their places */
    List *names; /* of PgkmTerm: what is no index of a loop around it */
};

/* Most bytes of a text, and terms in it. */
#define REDUCE_MAX_TEXT 65536
#define REDUCE_MAX_TERMS 16384

/* One expression, or NULL for NULL; and a list of PgkmTerm, in braces or without. `what` is the argument, or a name.
 * 42601 for what is no SQL, 0A000 for what is no expression of reductions, 42804 for a list, 54000 for what is too
 * long. */
const PgkmTerm *reduce_parse(ReduceTexts *texts, const char *what, const char *text);
List *reduce_parse_list(ReduceTexts *texts, const char *what, const char *text);

/* Another text, which is parsed elsewhere. Returns its first place. */
int32 reduce_add_text(ReduceTexts *texts, const char *what, const char *text);

/* The row that an error is about, by its ctid or, where it has none that the caller may see, by its number. */
struct ReduceRow {
    const char *ctid;
    int64 number; /* from 1; 0: not known either */
};

/* Raises the error at its place, whose text CONTEXT names. */
[[noreturn]] void reduce_raise(const ReduceTexts *texts, const PgkmTextError *error, ReduceRow row = {NULL, 0});
[[noreturn]] void reduce_raise_at(const ReduceTexts *texts, int sqlstate, int32 place, const char *message,
                                  ReduceRow row = {NULL, 0});

#endif
