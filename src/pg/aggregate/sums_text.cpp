/*
 * sums_text.cpp - the text form of kmeans_sums: one JSON object, keys in this order:
 *
 *   {"version":1,"n":5,"k":2,"d":1,"centroids":"0123456789abcdef","inertia":0.5,
 *    "masses":[2,3],"features":[[1.5],[6]],"low":[0,0,0,0,1e-17]}
 *
 * "centroids" is their fingerprint. "low" holds the parts of the sums that float64
 * rounded away (see sums.h), flat; it is left out where all are zero. Every number is the
 * shortest that reads back as itself, so a dump restores the same bits.
 */
#include "pg/values/json_text.h"
#include "pg/aggregate/sums.h"

#include <cinttypes>
#include <cstdlib>

#include "engine/api.h"

extern "C" {
PG_FUNCTION_INFO_V1(pgkm_sums_in);
PG_FUNCTION_INFO_V1(pgkm_sums_out);
}

Datum pgkm_sums_out(PG_FUNCTION_ARGS)
{
    const KmeansSums *sums = sums_argument(fcinfo, 0, false);
    const int64       count = sums_count(sums->k, sums->d);
    const double     *low = sums->values + count;
    bool              lossless = true;
    StringInfoData    out;

    initStringInfo(&out);
    appendStringInfo(&out, "{\"version\":%d,\"n\":%lld,\"k\":%d,\"d\":%d,\"centroids\":\"%016" PRIx64 "\",\"inertia\":",
                     sums->version, (long long) sums->n, sums->k, sums->d, (uint64_t) sums->fingerprint);
    pgkm_append_double(&out, sums->values[SUMS_INERTIA_INDEX]);
    appendStringInfoString(&out, ",\"masses\":");
    pgkm_append_list(&out, sums->values + SUMS_MASS_INDEX(0), sums->k);
    appendStringInfoString(&out, ",\"features\":[");
    for (int32 j = 0; j < sums->k; ++j) {
        if (j > 0)
            appendStringInfoChar(&out, ',');
        pgkm_append_list(&out, sums->values + SUMS_FEATURE_INDEX(sums->k, sums->d, j), sums->d);
    }
    appendStringInfoChar(&out, ']');
    for (int64 i = 0; i < count && lossless; ++i)
        lossless = low[i] == 0;
    if (!lossless) {
        appendStringInfoString(&out, ",\"low\":");
        pgkm_append_list(&out, low, count);
    }
    appendStringInfoChar(&out, '}');
    PG_RETURN_CSTRING(out.data);
}

static uint64 read_fingerprint(PgkmReader *reader)
{
    char *end;

    pgkm_expect(reader, "\"");
    if (strspn(reader->at, "0123456789abcdef") != 16)
        pgkm_malformed(reader, "Expected 16 lower-case hexadecimal digits.");
    const uint64 value = strtoull(reader->at, &end, 16);

    reader->at = end;
    pgkm_expect(reader, "\"");
    return value;
}

/* Reads the head and makes room; a short text must not claim a large allocation. */
static KmeansSums *read_head(PgkmReader *reader)
{
    pgkm_expect_key(reader, "{", "version");
    if (pgkm_read_integer(reader, 1, PG_INT32_MAX) != KMEANS_SUMS_VERSION)
        pgkm_malformed(reader, "Unknown version.");
    pgkm_expect_key(reader, ",", "n");
    const int64 n = pgkm_read_integer(reader, 1, PGKM_MAX_ROWS);
    pgkm_expect_key(reader, ",", "k");
    const int32 k = (int32) pgkm_read_integer(reader, 1, PG_INT32_MAX);
    pgkm_expect_key(reader, ",", "d");
    const int32 d = (int32) pgkm_read_integer(reader, 1, PG_INT32_MAX);
    pgkm_expect_key(reader, ",", "centroids");
    const uint64 fingerprint = read_fingerprint(reader);

    if (sums_count(k, d) > (int64) strlen(reader->at) / 2)
        pgkm_malformed(reader, "Fewer sums than k and d call for.");

    KmeansSums *const sums = sums_create(k, d, fingerprint);

    sums->n = n;
    return sums;
}

Datum pgkm_sums_in(PG_FUNCTION_ARGS)
{
    PgkmReader  reader = {"kmeans_sums", PG_GETARG_CSTRING(0), PG_GETARG_CSTRING(0)};
    KmeansSums *sums = read_head(&reader);

    pgkm_expect_key(&reader, ",", "inertia");
    sums->values[SUMS_INERTIA_INDEX] = pgkm_read_double(&reader);
    pgkm_expect_key(&reader, ",", "masses");
    pgkm_read_list(&reader, sums->values + SUMS_MASS_INDEX(0), sums->k);
    pgkm_expect_key(&reader, ",", "features");
    pgkm_expect(&reader, "[");
    for (int32 j = 0; j < sums->k; ++j) {
        if (j > 0)
            pgkm_expect(&reader, ",");
        pgkm_read_list(&reader, sums->values + SUMS_FEATURE_INDEX(sums->k, sums->d, j), sums->d);
    }
    pgkm_expect(&reader, "]");
    if (pgkm_accept(&reader, ",")) {
        const int64 count = sums_count(sums->k, sums->d);

        pgkm_expect_key(&reader, "", "low");
        pgkm_read_list(&reader, sums->values + count, count);
    }
    pgkm_expect(&reader, "}");
    pgkm_expect_end(&reader);

    const char *complaint = sums_complaint(sums);
    if (complaint != NULL)
        pgkm_malformed(&reader, complaint);
    PG_RETURN_POINTER(sums);
}
