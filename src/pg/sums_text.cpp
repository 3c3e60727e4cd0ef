/*
 * sums_text.cpp - the text form of kmeans_sums: one JSON object, keys in this order:
 *
 *   {"version":1,"k":2,"d":1,"centroids":"0123456789abcdef","inertia":0.5,
 *    "masses":[2,3],"features":[[1.5],[6]],"low":[0,0,0,0,1e-17]}
 *
 * "centroids" is their fingerprint. "low" holds the parts of the sums that float64
 * rounded away (see sums.h), flat; it is left out where all are zero. Every number is the
 * shortest that reads back as itself, so a dump restores the same bits.
 */
#include "pg/sums.h"

#include <cinttypes>
#include <cmath>
#include <cstdlib>

extern "C" {
#include "common/shortest_dec.h"
#include "lib/stringinfo.h"

PG_FUNCTION_INFO_V1(pgkm_sums_in);
PG_FUNCTION_INFO_V1(pgkm_sums_out);
}

/* --- writing --- */

static void append_double(StringInfo out, double value)
{
    char buffer[DOUBLE_SHORTEST_DECIMAL_LEN];

    double_to_shortest_decimal_buf(value, buffer);
    appendStringInfoString(out, buffer);
}

static void append_list(StringInfo out, const double *values, int64 count)
{
    appendStringInfoChar(out, '[');
    for (int64 i = 0; i < count; ++i) {
        if (i > 0)
            appendStringInfoChar(out, ',');
        append_double(out, values[i]);
    }
    appendStringInfoChar(out, ']');
}

Datum pgkm_sums_out(PG_FUNCTION_ARGS)
{
    const KmeansSums *sums = sums_argument(fcinfo, 0, false);
    const int64       count = sums_count(sums->k, sums->d);
    const double     *low = sums->values + count;
    bool              lossless = true;
    StringInfoData    out;

    initStringInfo(&out);
    appendStringInfo(&out, "{\"version\":%d,\"k\":%d,\"d\":%d,\"centroids\":\"%016" PRIx64 "\",\"inertia\":",
                     sums->version, sums->k, sums->d, (uint64_t) sums->fingerprint);
    append_double(&out, sums->values[SUMS_INERTIA_INDEX]);
    appendStringInfoString(&out, ",\"masses\":");
    append_list(&out, sums->values + SUMS_MASS_INDEX(0), sums->k);
    appendStringInfoString(&out, ",\"features\":[");
    for (int32 j = 0; j < sums->k; ++j) {
        if (j > 0)
            appendStringInfoChar(&out, ',');
        append_list(&out, sums->values + SUMS_FEATURE_INDEX(sums->k, sums->d, j), sums->d);
    }
    appendStringInfoChar(&out, ']');
    for (int64 i = 0; i < count && lossless; ++i)
        lossless = low[i] == 0;
    if (!lossless) {
        appendStringInfoString(&out, ",\"low\":");
        append_list(&out, low, count);
    }
    appendStringInfoChar(&out, '}');
    PG_RETURN_CSTRING(out.data);
}

/* --- reading --- */

struct Reader {
    const char *text;
    const char *at;
};

[[noreturn]] static void malformed(const Reader *reader, const char *detail)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                    errmsg("invalid input syntax for type kmeans_sums"),
                    errdetail("At character %d: %s", (int) (reader->at - reader->text) + 1, detail)));
    pg_unreachable();
}

static void skip_space(Reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n' || *reader->at == '\r')
        ++reader->at;
}

static bool accept(Reader *reader, const char *token)
{
    const size_t length = strlen(token);

    skip_space(reader);
    if (strncmp(reader->at, token, length) != 0)
        return false;
    reader->at += length;
    return true;
}

static void expect(Reader *reader, const char *token)
{
    if (!accept(reader, token))
        malformed(reader, psprintf("Expected %s.", token));
}

/* Reads one number; strtod also knows words and hexadecimal digits, JSON does not. */
static double read_double(Reader *reader)
{
    char *end;

    skip_space(reader);
    const size_t span = strspn(reader->at, "+-.0123456789eE");
    const double value = strtod(reader->at, &end);

    if (span == 0 || end != reader->at + span || !std::isfinite(value))
        malformed(reader, "Expected a finite number.");
    reader->at = end;
    return value;
}

static int32 read_count(Reader *reader)
{
    const Reader start = *reader;
    const double value = read_double(reader);

    if (value < 1 || value > PG_INT32_MAX || value != std::floor(value))
        malformed(&start, "Expected an integer from 1 to 2147483647.");
    return (int32) value;
}

static uint64 read_fingerprint(Reader *reader)
{
    char *end;

    expect(reader, "\"");
    if (strspn(reader->at, "0123456789abcdef") != 16)
        malformed(reader, "Expected 16 lower-case hexadecimal digits.");
    const uint64 value = strtoull(reader->at, &end, 16);

    reader->at = end;
    expect(reader, "\"");
    return value;
}

static void read_list(Reader *reader, double *values, int64 count)
{
    expect(reader, "[");
    for (int64 i = 0; i < count; ++i) {
        if (i > 0)
            expect(reader, ",");
        values[i] = read_double(reader);
    }
    expect(reader, "]");
}

/* Reads the head and makes room; a short text must not claim a large allocation. */
static KmeansSums *read_head(Reader *reader)
{
    expect(reader, "{");
    expect(reader, "\"version\"");
    expect(reader, ":");
    if (read_count(reader) != KMEANS_SUMS_VERSION)
        malformed(reader, "Unknown version.");
    expect(reader, ",");
    expect(reader, "\"k\"");
    expect(reader, ":");
    const int32 k = read_count(reader);
    expect(reader, ",");
    expect(reader, "\"d\"");
    expect(reader, ":");
    const int32 d = read_count(reader);
    expect(reader, ",");
    expect(reader, "\"centroids\"");
    expect(reader, ":");
    const uint64 fingerprint = read_fingerprint(reader);

    if (sums_count(k, d) > (int64) strlen(reader->at) / 2)
        malformed(reader, "Fewer sums than k and d call for.");
    return sums_create(k, d, fingerprint);
}

Datum pgkm_sums_in(PG_FUNCTION_ARGS)
{
    Reader      reader = {PG_GETARG_CSTRING(0), PG_GETARG_CSTRING(0)};
    KmeansSums *sums = read_head(&reader);

    expect(&reader, ",");
    expect(&reader, "\"inertia\"");
    expect(&reader, ":");
    sums->values[SUMS_INERTIA_INDEX] = read_double(&reader);
    expect(&reader, ",");
    expect(&reader, "\"masses\"");
    expect(&reader, ":");
    read_list(&reader, sums->values + SUMS_MASS_INDEX(0), sums->k);
    expect(&reader, ",");
    expect(&reader, "\"features\"");
    expect(&reader, ":");
    expect(&reader, "[");
    for (int32 j = 0; j < sums->k; ++j) {
        if (j > 0)
            expect(&reader, ",");
        read_list(&reader, sums->values + SUMS_FEATURE_INDEX(sums->k, sums->d, j), sums->d);
    }
    expect(&reader, "]");
    if (accept(&reader, ",")) {
        const int64 count = sums_count(sums->k, sums->d);

        expect(&reader, "\"low\"");
        expect(&reader, ":");
        read_list(&reader, sums->values + count, count);
    }
    expect(&reader, "}");
    skip_space(&reader);
    if (*reader.at != '\0')
        malformed(&reader, "Text after the end of the value.");

    const char *complaint = sums_complaint(sums);
    if (complaint != NULL)
        malformed(&reader, complaint);
    PG_RETURN_POINTER(sums);
}
