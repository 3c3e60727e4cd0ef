/*
 * sums_io.cpp - kmeans_sums as text and in binary form.
 *
 * Text, one JSON object:
 *
 *   {"version":1,"n":5,"k":2,"d":1,"centroids":"0123456789abcdef","inertia":0.5,
 *    "masses":[2,3],"features":[[1.5],[6]],"low":[0,0,0,0,1e-17]}
 *
 * "centroids" is their fingerprint. "low" holds the parts of the sums that float64 rounded away
 * (see sums.h), flat; it is left out where all are zero.
 * Binary: int32 version, k, d, int64 n, fingerprint, then the high and the low parts of the sums as
 * float8, in network order.
 */
#include "pg/aggregate/sums.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>

#include "engine/api.h"
#include "pg/values/json_text.h"

extern "C" {
#include "libpq/pqformat.h"

PG_FUNCTION_INFO_V1(pgkm_sums_in);
PG_FUNCTION_INFO_V1(pgkm_sums_out);
PG_FUNCTION_INFO_V1(pgkm_sums_recv);
PG_FUNCTION_INFO_V1(pgkm_sums_send);
}

static const char *const type_name = KmeansSums::type_name;
static const int head_bytes = 3 * 4 + 2 * 8;

Datum pgkm_sums_out(PG_FUNCTION_ARGS)
{
    const KmeansSums *sums = pgkm_flat_argument<KmeansSums>(fcinfo, 0);
    const int64 count = sums_count(sums->k, sums->d);
    const double *low = sums->values + count;
    StringInfoData out;

    initStringInfo(&out);
    appendStringInfo(&out, "{\"version\":%d,\"n\":%lld,\"k\":%d,\"d\":%d,\"centroids\":\"%016" PRIx64 "\",\"inertia\":",
                     sums->version, (long long)sums->n, sums->k, sums->d, (uint64_t)sums->fingerprint);
    pgkm_append_double(&out, sums->values[SUMS_INERTIA_INDEX]);
    appendStringInfoString(&out, ",\"masses\":");
    pgkm_append_list(&out, sums->values + SUMS_MASS_INDEX(0), sums->k);
    for (int32 j = 0; j < sums->k; ++j) {
        appendStringInfoString(&out, j == 0 ? ",\"features\":[" : ",");
        pgkm_append_list(&out, sums->values + SUMS_FEATURE_INDEX(sums->k, sums->d, j), sums->d);
    }
    appendStringInfoChar(&out, ']');
    if (std::any_of(low, low + count, [](double value) { return value != 0; })) {
        appendStringInfoString(&out, ",\"low\":");
        pgkm_append_list(&out, low, count);
    }
    appendStringInfoChar(&out, '}');
    PG_RETURN_CSTRING(out.data);
}

static uint64 read_fingerprint(const PgkmJson *json)
{
    const char *const text = pgkm_json_text(json, "centroids");

    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        pgkm_malformed(type_name, "Key \"centroids\" must be 16 lower-case hexadecimal digits.");
    return strtoull(text, NULL, 16);
}

/* The lists are read before there is room for them: a short text must not claim a large allocation. */
Datum pgkm_sums_in(PG_FUNCTION_ARGS)
{
    const PgkmJson json = pgkm_json_open(type_name, PG_GETARG_CSTRING(0), KmeansSums::current_version);
    const int64 n = pgkm_json_integer(&json, "n", 1, PGKM_MAX_ROWS);
    const int32 k = (int32)pgkm_json_integer(&json, "k", 1, PG_INT32_MAX);
    const int32 d = (int32)pgkm_json_integer(&json, "d", 1, PG_INT32_MAX);
    const double *const masses = pgkm_json_numbers(&json, "masses", {k});
    const double *const features = pgkm_json_numbers(&json, "features", {k, d});
    const int64 count = sums_count(k, d);
    const double *const low = pgkm_json_numbers(&json, "low", {(int32)count}, true);
    KmeansSums *const sums = sums_create(fcinfo, k, d, read_fingerprint(&json));

    sums->n = n;
    sums->values[SUMS_INERTIA_INDEX] = pgkm_json_number(&json, "inertia");
    std::copy_n(masses, k, sums->values + SUMS_MASS_INDEX(0));
    std::copy_n(features, (int64)k * d, sums->values + SUMS_FEATURE_INDEX(k, d, 0));
    if (low != NULL)
        std::copy_n(low, count, sums->values + count);

    const char *const complaint = sums_complaint(sums);

    if (complaint != NULL)
        pgkm_malformed(type_name, complaint);
    PG_RETURN_POINTER(sums);
}

Datum pgkm_sums_recv(PG_FUNCTION_ARGS)
{
    StringInfo message = (StringInfo)PG_GETARG_POINTER(0);

    if (message->len - message->cursor < head_bytes)
        pgkm_malformed_binary(type_name, "The message is too short.");
    if (pq_getmsgint(message, 4) != KmeansSums::current_version)
        pgkm_malformed_binary(type_name, "Unknown version.");

    const int32 k = (int32)pq_getmsgint(message, 4);
    const int32 d = (int32)pq_getmsgint(message, 4);
    const int64 n = pq_getmsgint64(message);
    const uint64 fingerprint = (uint64)pq_getmsgint64(message);

    if (k < 1 || d < 1 || n < 1 || n > PGKM_MAX_ROWS)
        pgkm_malformed_binary(type_name, "A number is out of its range.");

    /* Compared by division: nothing is allocated that the message does not fill. */
    const int64 count = sums_count(k, d);
    const int64 rest = message->len - message->cursor;

    if (rest % 16 != 0 || rest / 16 != count)
        pgkm_malformed_binary(type_name, "The length of the message does not match k and d.");

    KmeansSums *const sums = sums_create(fcinfo, k, d, fingerprint);

    sums->n = n;
    for (int64 i = 0; i < 2 * count; ++i)
        sums->values[i] = pq_getmsgfloat8(message);

    const char *const complaint = sums_complaint(sums);

    if (complaint != NULL)
        pgkm_malformed_binary(type_name, complaint);
    PG_RETURN_POINTER(sums);
}

Datum pgkm_sums_send(PG_FUNCTION_ARGS)
{
    const KmeansSums *sums = pgkm_flat_argument<KmeansSums>(fcinfo, 0);
    const int64 count = sums_count(sums->k, sums->d);
    StringInfoData out;

    pq_begintypsend(&out);
    pq_sendint32(&out, sums->version);
    pq_sendint32(&out, (uint32)sums->k);
    pq_sendint32(&out, (uint32)sums->d);
    pq_sendint64(&out, sums->n);
    pq_sendint64(&out, sums->fingerprint);
    for (int64 i = 0; i < 2 * count; ++i)
        pq_sendfloat8(&out, sums->values[i]);
    PG_RETURN_BYTEA_P(pq_endtypsend(&out));
}
