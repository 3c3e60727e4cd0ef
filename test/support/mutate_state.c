/*
 * mutate_state.c - for test/pgtap/deep/forged_states.sh: a serialization function of the aggregate kmeans that
 * changes a byte of what the extension's own has written, between the processes of a parallel query.
 */
#include "postgres.h"

#include "fmgr.h"
#include "postmaster/bgworker.h"
#include "utils/guc.h"

/* Where a state says where its rows are (SerialHead in src/pg/aggregate/parallel.cpp). */
#define NAMED_QUERY 56
#define NAMED_BLOCK 64
#define NAMED_ROWS 72

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(mutate_state);

/*
 * mutate_state(internal) -> bytea: of the settings mutate.at and mutate.by, the byte to change, and what is added to
 * it. With mutate.by = 0 the bytes are told in a NOTICE. With mutate.by = 1000 the state names memory of the query that
 * the worker belongs to.
 */
Datum mutate_state(PG_FUNCTION_ARGS)
{
    PGFunction serialize = load_external_function("$libdir/pg_kmeans", "pgkm_aggregate_serialize", true, NULL);
    bytea *state = DatumGetByteaPP(serialize(fcinfo));
    char *bytes = VARDATA_ANY(state);
    int size = VARSIZE_ANY_EXHDR(state);
    int at = atoi(GetConfigOption("mutate.at", false, false));
    int by = atoi(GetConfigOption("mutate.by", false, false));

    if (by == 0) {
        char *text = palloc(2 * size + 1);

        for (int i = 0; i < size; ++i)
            sprintf(text + 2 * i, "%02x", (unsigned char)bytes[i]);
        ereport(NOTICE, (errmsg("state %s", text)));
    }
    if (by == 1000) {
        const uint32 query = DatumGetUInt32(MyBgworkerEntry->bgw_main_arg);
        const uint64 block = 1 << 20;
        const int64 rows = 1;

        memcpy(bytes + NAMED_QUERY, &query, sizeof query);
        memcpy(bytes + NAMED_BLOCK, &block, sizeof block);
        memcpy(bytes + NAMED_ROWS, &rows, sizeof rows);
        ereport(NOTICE, (errmsg("state names memory")));
    } else if (at >= 0 && at < size) {
        bytes[at] += (char)by;
    }
    PG_RETURN_BYTEA_P(state);
}
