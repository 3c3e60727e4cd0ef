/*
 * json_text.h - the text forms of the extension's own types: a JSON object of fixed keys in a
 * fixed order. Every number is written as the shortest that reads back as itself.
 */
#ifndef PGKM_PG_JSON_TEXT_H
#define PGKM_PG_JSON_TEXT_H

extern "C" {
#include "postgres.h"
#include "lib/stringinfo.h"
}

void pgkm_append_double(StringInfo out, double value);
void pgkm_append_list(StringInfo out, const double *values, int64 count);

struct PgkmReader {
    const char *type; /* its name, for messages */
    const char *text;
    const char *at;
};

/* 22P02: invalid input syntax, with the place. */
[[noreturn]] void pgkm_malformed(const PgkmReader *reader, const char *detail);

/* Skips blanks, and the token where it comes next. */
bool pgkm_accept(PgkmReader *reader, const char *token);
void pgkm_expect(PgkmReader *reader, const char *token);

/* Expects `before` (may be empty), then "key" and a colon. */
void pgkm_expect_key(PgkmReader *reader, const char *before, const char *key);

/* A finite number; an integer from `least` to `most` (below 2^53). */
double pgkm_read_double(PgkmReader *reader);
int64  pgkm_read_integer(PgkmReader *reader, int64 least, int64 most);
void   pgkm_read_list(PgkmReader *reader, double *values, int64 count);

/* Expects the end of the text. */
void pgkm_expect_end(PgkmReader *reader);

#endif
