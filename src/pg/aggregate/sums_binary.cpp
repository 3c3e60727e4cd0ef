/*
 * sums_binary.cpp - the binary form of kmeans_sums: int32 version, k, d, int64 n,
 * fingerprint, then the high and the low parts of the sums as float8, in network order.
 */
#include "pg/aggregate/sums.h"

#include "engine/api.h"

extern "C" {
#include "lib/stringinfo.h"
#include "libpq/pqformat.h"

PG_FUNCTION_INFO_V1(pgkm_sums_recv);
PG_FUNCTION_INFO_V1(pgkm_sums_send);
}

static const int head_bytes = 3 * 4 + 2 * 8;

[[noreturn]] static void malformed(const char *detail)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                    errmsg("invalid binary format of type kmeans_sums"), errdetail("%s", detail)));
    pg_unreachable();
}

Datum pgkm_sums_recv(PG_FUNCTION_ARGS)
{
    StringInfo message = (StringInfo) PG_GETARG_POINTER(0);

    if (message->len - message->cursor < head_bytes)
        malformed("The message is too short.");
    if (pq_getmsgint(message, 4) != KMEANS_SUMS_VERSION)
        malformed("Unknown version.");
    const int32  k = (int32) pq_getmsgint(message, 4);
    const int32  d = (int32) pq_getmsgint(message, 4);
    const int64  n = pq_getmsgint64(message);
    const uint64 fingerprint = (uint64) pq_getmsgint64(message);

    if (k < 1 || d < 1 || n < 1 || n > PGKM_MAX_ROWS)
        malformed("A number is out of its range.");

    /* Compared by division: nothing is allocated that the message does not fill. */
    const int64 count = sums_count(k, d);
    const int64 rest = message->len - message->cursor;

    if (rest % 16 != 0 || rest / 16 != count)
        malformed("The length of the message does not match k and d.");

    KmeansSums *sums = sums_create(k, d, fingerprint);
    sums->n = n;
    for (int64 i = 0; i < 2 * count; ++i)
        sums->values[i] = pq_getmsgfloat8(message);

    const char *complaint = sums_complaint(sums);
    if (complaint != NULL)
        malformed(complaint);
    PG_RETURN_POINTER(sums);
}

Datum pgkm_sums_send(PG_FUNCTION_ARGS)
{
    const KmeansSums *sums = sums_argument(fcinfo, 0, false);
    const int64       count = sums_count(sums->k, sums->d);
    StringInfoData    out;

    pq_begintypsend(&out);
    pq_sendint32(&out, sums->version);
    pq_sendint32(&out, (uint32) sums->k);
    pq_sendint32(&out, (uint32) sums->d);
    pq_sendint64(&out, sums->n);
    pq_sendint64(&out, sums->fingerprint);
    for (int64 i = 0; i < 2 * count; ++i)
        pq_sendfloat8(&out, sums->values[i]);
    PG_RETURN_BYTEA_P(pq_endtypsend(&out));
}
