/*
 * sums_io.cpp - pca_sums as text and in binary form, both without waiting rows.
 *
 * Text, one JSON object:
 *
 *   {"version":1,"n":3,"mass":3,"d":2,"n_components":0,"whiten":0,"standardize":0,
 *    "mean":[2,4],"cross":[2,4,8]}
 *
 * "cross" is the lower triangle, by rows, of the sums of weighted products of deviations from the mean.
 * Binary: int32 version, d, whiten, standardize, int64 n, float8 n_components and mass, then mean
 * and cross as float8, in network order.
 */
#include "pg/pca/sums.h"

#include <algorithm>

#include "pg/values/json_text.h"

extern "C" {
#include "libpq/pqformat.h"

PG_FUNCTION_INFO_V1(pgkm_pca_sums_in);
PG_FUNCTION_INFO_V1(pgkm_pca_sums_out);
PG_FUNCTION_INFO_V1(pgkm_pca_sums_recv);
PG_FUNCTION_INFO_V1(pgkm_pca_sums_send);
}

static const char *const type_name = PcaSums::type_name;
static const int head_bytes = 4 * 4 + 3 * 8;

Datum pgkm_pca_sums_out(PG_FUNCTION_ARGS)
{
    PcaSums *const sums = pca_sums_whole(pgkm_flat_argument<PcaSums>(fcinfo, 0));
    StringInfoData out;

    initStringInfo(&out);
    appendStringInfo(&out, "{\"version\":%d,\"n\":%lld,\"mass\":", sums->version, (long long)sums->n);
    pgkm_append_double(&out, sums->mass);
    appendStringInfo(&out, ",\"d\":%d,\"n_components\":", sums->d);
    pgkm_append_double(&out, sums->n_components);
    appendStringInfo(&out, ",\"whiten\":%d,\"standardize\":%d,\"mean\":", sums->whiten, sums->standardize);
    pgkm_append_list(&out, pca_sums_mean(sums), sums->d);
    appendStringInfoString(&out, ",\"cross\":");
    pgkm_append_list(&out, pca_sums_cross(sums), pca_sums_cross_count(sums->d));
    appendStringInfoChar(&out, '}');
    PG_RETURN_CSTRING(out.data);
}

/* The lists are read before there is room for them: a short text must not claim a large allocation. */
Datum pgkm_pca_sums_in(PG_FUNCTION_ARGS)
{
    const PgkmJson json = pgkm_json_open(type_name, PG_GETARG_CSTRING(0), PcaSums::current_version);
    const int64 n = pgkm_json_integer(&json, "n", 1, PGKM_MAX_ROWS);
    const double mass = pgkm_json_number(&json, "mass");
    const int32 d = (int32)pgkm_json_integer(&json, "d", 1, 65536);
    const PgkmPcaOptions options = {pgkm_json_number(&json, "n_components"),
                                    (int32)pgkm_json_integer(&json, "whiten", 0, 1),
                                    (int32)pgkm_json_integer(&json, "standardize", 0, 1)};
    const int64 count = pca_sums_cross_count(d);
    const double *const mean = pgkm_json_numbers(&json, "mean", {d});
    const double *const cross = pgkm_json_numbers(&json, "cross", {(int32)count});

    if (!pgkm_options_are_valid(&pgkm_pca_options_type, &options))
        pgkm_malformed(type_name, "Key \"n_components\" must be a number of components or a share of the variance.");

    PcaSums *const sums = pca_sums_create(fcinfo, d, &options);

    sums->n = n;
    sums->mass = mass;
    std::copy_n(mean, d, pca_sums_mean(sums));
    std::copy_n(cross, count, pca_sums_cross(sums));

    const char *const complaint = pca_sums_complaint(sums);

    if (complaint != NULL)
        pgkm_malformed(type_name, complaint);
    PG_RETURN_POINTER(sums);
}

Datum pgkm_pca_sums_recv(PG_FUNCTION_ARGS)
{
    StringInfo message = (StringInfo)PG_GETARG_POINTER(0);
    PgkmPcaOptions options;

    if (message->len - message->cursor < head_bytes)
        pgkm_malformed_binary(type_name, "The message is too short.");
    if (pq_getmsgint(message, 4) != PcaSums::current_version)
        pgkm_malformed_binary(type_name, "Unknown version.");
    const int32 d = (int32)pq_getmsgint(message, 4);
    options.whiten = (int32)pq_getmsgint(message, 4);
    options.standardize = (int32)pq_getmsgint(message, 4);
    const int64 n = pq_getmsgint64(message);
    options.n_components = pq_getmsgfloat8(message);
    const double mass = pq_getmsgfloat8(message);
    if (d < 1 || d > 65536 || n < 1 || n > PGKM_MAX_ROWS || !pgkm_options_are_valid(&pgkm_pca_options_type, &options))
        pgkm_malformed_binary(type_name, "A number is out of its range.");

    /* Nothing is allocated that the message does not fill. */
    const int64 count = d + pca_sums_cross_count(d);

    if (message->len - message->cursor != count * 8)
        pgkm_malformed_binary(type_name, "The length of the message does not match d.");

    PcaSums *sums = pca_sums_create(fcinfo, d, &options);

    sums->n = n;
    sums->mass = mass;
    for (int64 i = 0; i < count; ++i)
        sums->values[i] = pq_getmsgfloat8(message);

    const char *complaint = pca_sums_complaint(sums);
    if (complaint != NULL)
        pgkm_malformed_binary(type_name, complaint);
    PG_RETURN_POINTER(sums);
}

Datum pgkm_pca_sums_send(PG_FUNCTION_ARGS)
{
    PcaSums *const sums = pca_sums_whole(pgkm_flat_argument<PcaSums>(fcinfo, 0));
    const int64 count = sums->d + pca_sums_cross_count(sums->d);
    StringInfoData out;

    pq_begintypsend(&out);
    pq_sendint32(&out, sums->version);
    pq_sendint32(&out, (uint32)sums->d);
    pq_sendint32(&out, sums->whiten);
    pq_sendint32(&out, sums->standardize);
    pq_sendint64(&out, sums->n);
    pq_sendfloat8(&out, sums->n_components);
    pq_sendfloat8(&out, sums->mass);
    for (int64 i = 0; i < count; ++i)
        pq_sendfloat8(&out, sums->values[i]);
    PG_RETURN_BYTEA_P(pq_endtypsend(&out));
}
