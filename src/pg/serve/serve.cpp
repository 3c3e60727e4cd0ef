/*
 * serve.cpp - rows of this server in a fit that another one runs: pgkm_node_load, pgkm_node_call,
 * pgkm_node_unload.
 *
 * The other server has a session here, as the user that its user mapping names, and calls these functions in it. The
 * rows stay in the session until the next load, an unload, or its end. Everybody may call the functions: they show
 * and use no more than kmeans_load does, and only for the role that loaded the rows.
 */
#include "pg/table/call.h"

#include "pg/version.h"
#include "pg/values/composite.h"

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_node_version);
PG_FUNCTION_INFO_V1(pgkm_node_load);
PG_FUNCTION_INFO_V1(pgkm_node_call);
PG_FUNCTION_INFO_V1(pgkm_node_unload);
}

/* What the session keeps. */
struct Served {
    MemoryContextCallback on_reset;
    MemoryContext context; /* holds all of it */
    Oid owner;             /* the role that loaded them */
    PgkmRows *rows;        /* NULL: none takes part */
    PgkmElement element;
    PgkmResident *resident;
    PgkmShare *share;
    PgkmJobHolder *job;
};

static Served *served = NULL;

static void forget(void *argument)
{
    Served *const gone = (Served *)argument;

    if (gone->job != NULL)
        pgkm_release_job(gone->job);
    pgkm_share_free(gone->share);
    if (served == gone)
        served = NULL;
}

static bool unload(void)
{
    if (served == NULL)
        return false;
    MemoryContextDelete(served->context);
    return true;
}

/* pgkm_node_version() -> text: of the library, which both ends must have. */
Datum pgkm_node_version(PG_FUNCTION_ARGS)
{
    PG_RETURN_TEXT_P(cstring_to_text(PGKM_VERSION));
}

static Served *create(void)
{
    MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "kmeans served rows", ALLOCSET_SMALL_SIZES);
    Served *const fresh = (Served *)MemoryContextAllocZero(context, sizeof(Served));

    fresh->context = context;
    fresh->owner = GetUserId();
    return fresh;
}

/* From now on the session's and no more the query's. What is registered last goes first: the job, and what the backends
 * have made of the rows, before these. */
static void keep(Served *fresh)
{
    fresh->resident = pgkm_run_keep_rows(fresh->context);
    fresh->on_reset.func = forget;
    fresh->on_reset.arg = fresh;
    MemoryContextRegisterResetCallback(fresh->context, &fresh->on_reset);
    fresh->share = pgkm_share_create();
    if (fresh->share == NULL)
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
    MemoryContextSetParent(fresh->context, TopMemoryContext);
    served = fresh;
}

/* The rows of one more table behind the others. */
static void add_rows(Served *to, TableRows *rows)
{
    PgkmRows *const more = rows->used;

    if (more == NULL || more->n == 0)
        return;
    if (to->rows == NULL) {
        to->rows = more;
        return;
    }
    if (more->d != to->rows->d || more->element != to->rows->element)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("tables have features of different numbers or types")));
    pgkm_rows_append(to->rows, more->values, (const char *)more->weights, more->n);
    table_rows_clear(rows);
}

static ArrayType *slice_of(Datum *values, int first, int count)
{
    return construct_array(values + first, count, TEXTOID, -1, false, TYPALIGN_INT);
}

static Datum *elements(ArrayType *array, Oid type, int *count)
{
    Datum *values;
    bool *nulls;

    *count = pgkm_array_elements(PointerGetDatum(array), type, &values, &nulls);
    for (int i = 0; i < *count; ++i)
        if (nulls[i])
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("names must not be null")));
    return values;
}

/* The rows of one table, in the context of those that are kept. */
static void load_table(Served *to, Oid table, ArrayType *features, const char *weight, bool need_direction)
{
    TableCall *const call = table_call_create();

    call->need_direction = need_direction;
    table_relation_find(&call->relation, table, TABLE_READ, true);
    table_features_find(call, &call->relation, features, NIL);
    if (weight != NULL)
        call->weight = table_column_find(&call->relation, TABLE_WEIGHT, weight);
    to->element = table_columns_element(call->features, call->n_features);
    add_rows(to, table_call_read(call, "pgkm_node_load", {}, to->context));
    table_call_destroy(call);
}

/*
 * pgkm_node_load(relations regclass[], features text[], weights text[], need_direction boolean) -> (n, d, element)
 *
 * Reads the rows of all relations, instead of those that are kept. `features` has the columns of the first relation,
 * then those of the second, and so on; `weights` a column for each, or it is NULL.
 */
Datum pgkm_node_load(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = pgkm_result_begin(fcinfo);
    int n_tables, n_features, n_weights = 0;

    for (int i : {0, 1, 3})
        pgkm_required(&fcinfo->args[i], "argument");

    Datum *const tables = elements(PG_GETARG_ARRAYTYPE_P(0), REGCLASSOID, &n_tables);
    Datum *const features = elements(PG_GETARG_ARRAYTYPE_P(1), TEXTOID, &n_features);
    Datum *const weights = PG_ARGISNULL(2) ? NULL : elements(PG_GETARG_ARRAYTYPE_P(2), TEXTOID, &n_weights);

    if (n_tables == 0 || n_features == 0 || n_features % n_tables != 0 || (weights != NULL && n_weights != n_tables))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("features and relations do not go together")));
    unload();

    Served *const fresh = create();
    const int each = n_features / n_tables;

    pgkm_heartbeat_begin();
    for (int i = 0; i < n_tables; ++i)
        load_table(fresh, DatumGetObjectId(tables[i]), slice_of(features, i * each, each),
                   weights == NULL ? NULL : TextDatumGetCString(weights[i]), PG_GETARG_BOOL(3));
    unload(); /* what a view has loaded meanwhile */
    keep(fresh);

    const PgkmRows *const rows = fresh->rows;

    pgkm_result_put(result, {rows == NULL ? (int64)0 : rows->n, rows == NULL ? 0 : rows->d,
                             fresh->element == PGKM_FLOAT32 ? "real" : "double precision"});
    return (Datum)0;
}

/* pgkm_node_call(request bytea) -> bytea: answers a request about the rows that are kept. */
Datum pgkm_node_call(PG_FUNCTION_ARGS)
{
    bytea *const message = PG_GETARG_BYTEA_PP(0);
    PgkmRequest request;

    if (served == NULL || served->rows == NULL || served->owner != GetUserId())
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("no rows are loaded")));
    memset(&request, 0, sizeof request);
    request.algorithm = PGKM_SHARE;
    request.points = pgkm_rows_points(served->rows);
    request.segment = served->rows->segment;
    request.resident = served->resident;
    request.share.request = VARDATA_ANY(message);
    request.share.bytes = VARSIZE_ANY_EXHDR(message);
    request.share.share = served->share;
    pgkm_heartbeat_begin();

    const PgkmResult *const result = pgkm_run_job(&request, served->context, &served->job, NULL);

    if (result->reply_bytes > MaxAllocSize - VARHDRSZ)
        ereport(ERROR,
                (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("an answer exceeds the maximum size of a value")));

    bytea *const reply = (bytea *)palloc(VARHDRSZ + result->reply_bytes);

    SET_VARSIZE(reply, VARHDRSZ + result->reply_bytes);
    memcpy(VARDATA(reply), result->reply, result->reply_bytes);
    pgkm_release_job(served->job);
    PG_RETURN_BYTEA_P(reply);
}

/* pgkm_node_unload() -> boolean: gives the rows back; whether there were any, loaded by a role that the current one
 * is a member of. */
Datum pgkm_node_unload(PG_FUNCTION_ARGS)
{
    PG_RETURN_BOOL(served != NULL && is_member_of_role(GetUserId(), served->owner) && unload());
}
