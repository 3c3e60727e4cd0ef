/*
 * sums_io.cpp - pca_sums as text and in binary form, both without waiting rows.
 *
 * Text, one JSON object, keys in this order:
 *
 *   {"version":1,"n":3,"d":2,"n_components":0,"whiten":0,"standardize":0,
 *    "mean":[2,4],"cross":[2,4,8]}
 *
 * "cross" is the lower triangle, by rows, of the sums of products of deviations from the mean.
 * Binary: int32 version, d, whiten, standardize, int64 n, float8 n_components, then mean and
 * cross as float8, in network order.
 */
#include "pg/pca/sums.h"

#include "pg/values/json_text.h"

extern "C" {
#include "libpq/pqformat.h"

PG_FUNCTION_INFO_V1(pgkm_pca_sums_in);
PG_FUNCTION_INFO_V1(pgkm_pca_sums_out);
PG_FUNCTION_INFO_V1(pgkm_pca_sums_recv);
PG_FUNCTION_INFO_V1(pgkm_pca_sums_send);
}

static const int   head_bytes = 4 * 4 + 2 * 8;

static bool is_n_components(double value)
{
    return value >= 0 && value <= PG_INT32_MAX && (value < 1 || value == (int32) value);
}

Datum pgkm_pca_sums_out(PG_FUNCTION_ARGS)
{
    PcaSums *const sums = pca_sums_argument_whole(fcinfo, 0);
    StringInfoData out;

    initStringInfo(&out);
    appendStringInfo(&out, "{\"version\":%d,\"n\":%lld,\"d\":%d,\"n_components\":", sums->version,
                     (long long) sums->n, sums->d);
    pgkm_append_double(&out, sums->n_components);
    appendStringInfo(&out, ",\"whiten\":%d,\"standardize\":%d,\"mean\":", sums->whiten, sums->standardize);
    pgkm_append_list(&out, pca_sums_mean(sums), sums->d);
    appendStringInfoString(&out, ",\"cross\":");
    pgkm_append_list(&out, pca_sums_cross(sums), pca_sums_cross_count(sums->d));
    appendStringInfoChar(&out, '}');
    PG_RETURN_CSTRING(out.data);
}

/* Reads the head and makes room; a short text must not claim a large allocation. */
static PcaSums *read_head(PgkmReader *reader)
{
    PgkmPcaOptions options;

    pgkm_expect_key(reader, "{", "version");
    if (pgkm_read_integer(reader, 1, PG_INT32_MAX) != PCA_SUMS_VERSION)
        pgkm_malformed(reader, "Unknown version.");
    pgkm_expect_key(reader, ",", "n");
    const int64 n = pgkm_read_integer(reader, 1, PGKM_MAX_ROWS);
    pgkm_expect_key(reader, ",", "d");
    const int32 d = (int32) pgkm_read_integer(reader, 1, 65536);
    pgkm_expect_key(reader, ",", "n_components");
    options.n_components = pgkm_read_double(reader);
    if (!is_n_components(options.n_components))
        pgkm_malformed(reader, "Expected a number of components or a share of the variance.");
    pgkm_expect_key(reader, ",", "whiten");
    options.whiten = (int32) pgkm_read_integer(reader, 0, 1);
    pgkm_expect_key(reader, ",", "standardize");
    options.standardize = (int32) pgkm_read_integer(reader, 0, 1);
    if (pca_sums_cross_count(d) > (int64) strlen(reader->at) / 2)
        pgkm_malformed(reader, "Fewer sums than d calls for.");

    PcaSums *sums = pca_sums_create(d, &options);

    sums->n = n;
    return sums;
}

Datum pgkm_pca_sums_in(PG_FUNCTION_ARGS)
{
    PgkmReader reader = {"pca_sums", PG_GETARG_CSTRING(0), PG_GETARG_CSTRING(0)};
    PcaSums   *sums = read_head(&reader);

    pgkm_expect_key(&reader, ",", "mean");
    pgkm_read_list(&reader, pca_sums_mean(sums), sums->d);
    pgkm_expect_key(&reader, ",", "cross");
    pgkm_read_list(&reader, pca_sums_cross(sums), pca_sums_cross_count(sums->d));
    pgkm_expect(&reader, "}");
    pgkm_expect_end(&reader);

    const char *complaint = pca_sums_complaint(sums);
    if (complaint != NULL)
        pgkm_malformed(&reader, complaint);
    PG_RETURN_POINTER(sums);
}

[[noreturn]] static void malformed(const char *detail)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                    errmsg("invalid binary format of type pca_sums"), errdetail("%s", detail)));
    pg_unreachable();
}

Datum pgkm_pca_sums_recv(PG_FUNCTION_ARGS)
{
    StringInfo     message = (StringInfo) PG_GETARG_POINTER(0);
    PgkmPcaOptions options;

    if (message->len - message->cursor < head_bytes)
        malformed("The message is too short.");
    if (pq_getmsgint(message, 4) != PCA_SUMS_VERSION)
        malformed("Unknown version.");
    const int32 d = (int32) pq_getmsgint(message, 4);
    options.whiten = (int32) pq_getmsgint(message, 4);
    options.standardize = (int32) pq_getmsgint(message, 4);
    const int64 n = pq_getmsgint64(message);
    options.n_components = pq_getmsgfloat8(message);
    if (d < 1 || d > 65536 || n < 1 || n > PGKM_MAX_ROWS || !is_n_components(options.n_components) ||
        (options.whiten != 0 && options.whiten != 1) || (options.standardize != 0 && options.standardize != 1))
        malformed("A number is out of its range.");

    /* Nothing is allocated that the message does not fill. */
    const int64 count = d + pca_sums_cross_count(d);

    if (message->len - message->cursor != count * 8)
        malformed("The length of the message does not match d.");

    PcaSums *sums = pca_sums_create(d, &options);

    sums->n = n;
    for (int64 i = 0; i < count; ++i)
        sums->values[i] = pq_getmsgfloat8(message);

    const char *complaint = pca_sums_complaint(sums);
    if (complaint != NULL)
        malformed(complaint);
    PG_RETURN_POINTER(sums);
}

Datum pgkm_pca_sums_send(PG_FUNCTION_ARGS)
{
    PcaSums *const sums = pca_sums_argument_whole(fcinfo, 0);
    const int64    count = sums->d + pca_sums_cross_count(sums->d);
    StringInfoData out;

    pq_begintypsend(&out);
    pq_sendint32(&out, sums->version);
    pq_sendint32(&out, (uint32) sums->d);
    pq_sendint32(&out, sums->whiten);
    pq_sendint32(&out, sums->standardize);
    pq_sendint64(&out, sums->n);
    pq_sendfloat8(&out, sums->n_components);
    for (int64 i = 0; i < count; ++i)
        pq_sendfloat8(&out, sums->values[i]);
    PG_RETURN_BYTEA_P(pq_endtypsend(&out));
}
