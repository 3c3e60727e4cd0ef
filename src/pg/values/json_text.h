/*
 * json_text.h - the text forms of the extension's own types: JSON objects, which the server's JSON
 * functions read. Numbers are written as the shortest that read back as themselves.
 */
#ifndef PGKM_PG_JSON_TEXT_H
#define PGKM_PG_JSON_TEXT_H

#include "pg/values/datum.h"

extern "C" {
#include "lib/stringinfo.h"
}

void pgkm_append_double(StringInfo out, double value);
void pgkm_append_list(StringInfo out, const double *values, int64 count);

/* A JSON object that is to be a value of the type. */
struct PgkmJson {
    const char *type;
    Datum object;
};

/* 22P02: invalid input syntax for the type; 22P03: invalid binary format of it. */
[[noreturn]] void pgkm_malformed(const char *type, const char *detail);
[[noreturn]] void pgkm_malformed_binary(const char *type, const char *detail);

/* Functions below raise 22P02 for text that is no JSON, for keys that are missing and for values of
 * another kind, 22003 for numbers out of the range of float64. */

/* The object, whose key "version" has to be `version`. */
PgkmJson pgkm_json_open(const char *type, const char *text, int32 version);

/* A key's value: a text, a finite number, an integer from `least` to `most` (below 2^53). */
char *pgkm_json_text(const PgkmJson *json, const char *key);
double pgkm_json_number(const PgkmJson *json, const char *key);
int64 pgkm_json_integer(const PgkmJson *json, const char *key, int64 least, int64 most);

/* A list of finite numbers, or a list of such lists. NULL where the key is missing and may be. */
const double *pgkm_json_numbers(const PgkmJson *json, const char *key, const PgkmShape &shape,
                                bool may_be_missing = false);

#endif
