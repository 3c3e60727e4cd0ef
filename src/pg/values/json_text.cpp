/*
 * json_text.cpp - writing and reading the text forms of the extension's own types.
 */
#include "pg/values/json_text.h"

#include <cmath>
#include <cstdlib>

extern "C" {
#include "common/shortest_dec.h"
}

/* --- writing --- */

void pgkm_append_double(StringInfo out, double value)
{
    char buffer[DOUBLE_SHORTEST_DECIMAL_LEN];

    double_to_shortest_decimal_buf(value, buffer);
    appendStringInfoString(out, buffer);
}

void pgkm_append_list(StringInfo out, const double *values, int64 count)
{
    appendStringInfoChar(out, '[');
    for (int64 i = 0; i < count; ++i) {
        if (i > 0)
            appendStringInfoChar(out, ',');
        pgkm_append_double(out, values[i]);
    }
    appendStringInfoChar(out, ']');
}

/* --- reading --- */

void pgkm_malformed(const PgkmReader *reader, const char *detail)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                    errmsg("invalid input syntax for type %s", reader->type),
                    errdetail("At character %d: %s", (int) (reader->at - reader->text) + 1, detail)));
    pg_unreachable();
}

static void skip_space(PgkmReader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n' || *reader->at == '\r')
        ++reader->at;
}

bool pgkm_accept(PgkmReader *reader, const char *token)
{
    const size_t length = strlen(token);

    skip_space(reader);
    if (strncmp(reader->at, token, length) != 0)
        return false;
    reader->at += length;
    return true;
}

void pgkm_expect(PgkmReader *reader, const char *token)
{
    if (!pgkm_accept(reader, token))
        pgkm_malformed(reader, psprintf("Expected %s.", token));
}

void pgkm_expect_key(PgkmReader *reader, const char *before, const char *key)
{
    pgkm_expect(reader, before);
    pgkm_expect(reader, psprintf("\"%s\"", key));
    pgkm_expect(reader, ":");
}

/* strtod also knows words and hexadecimal digits, JSON does not. */
double pgkm_read_double(PgkmReader *reader)
{
    char *end;

    skip_space(reader);
    const size_t span = strspn(reader->at, "+-.0123456789eE");
    const double value = strtod(reader->at, &end);

    if (span == 0 || end != reader->at + span || !std::isfinite(value))
        pgkm_malformed(reader, "Expected a finite number.");
    reader->at = end;
    return value;
}

int64 pgkm_read_integer(PgkmReader *reader, int64 least, int64 most)
{
    const PgkmReader start = *reader;
    const double     value = pgkm_read_double(reader);

    if (value < (double) least || value > (double) most || value != std::floor(value))
        pgkm_malformed(&start, psprintf("Expected an integer from %lld to %lld.", (long long) least, (long long) most));
    return (int64) value;
}

void pgkm_read_list(PgkmReader *reader, double *values, int64 count)
{
    pgkm_expect(reader, "[");
    for (int64 i = 0; i < count; ++i) {
        if (i > 0)
            pgkm_expect(reader, ",");
        values[i] = pgkm_read_double(reader);
    }
    pgkm_expect(reader, "]");
}

void pgkm_expect_end(PgkmReader *reader)
{
    skip_space(reader);
    if (*reader->at != '\0')
        pgkm_malformed(reader, "Text after the end of the value.");
}
