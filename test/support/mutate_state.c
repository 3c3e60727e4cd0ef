/*
 * mutate_state.c - for test/pgtap/deep/forged_states.sh: a serialization function of the aggregate kmeans that
 * changes a byte of what the extension's own has written, between the processes of a parallel query.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(mutate_state);

/*
 * mutate_state(internal) -> bytea: of the settings mutate.at and mutate.by, the byte to change, counted
 * from the start or, if negative, back from the end, and what is added to it. With mutate.by = 0 the
 * bytes are told in a NOTICE.
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
    if (at < 0)
        at += size;
    if (at >= 0 && at < size)
        bytes[at] += (char)by;
    PG_RETURN_BYTEA_P(state);
}
