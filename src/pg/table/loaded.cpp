/*
 * loaded.cpp - rows that a session keeps.
 */
#include "pg/table/loaded.h"

#include "pg/values/composite.h"

extern "C" {
#include "access/relation.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_load);
PG_FUNCTION_INFO_V1(pgkm_kmeans_unload);
PG_FUNCTION_INFO_V1(pgkm_kmeans_loaded);
}

/* Arguments of kmeans_load and kmeans_unload. */
enum LoadArgument { LOAD_RELATION, LOAD_FEATURES, LOAD_WEIGHT, LOAD_NULLS, LOAD_FILTER };

static PgkmLoaded *all_loaded = NULL;
static uint64 uses = 0;

static const char *name_of(const TableColumn *column)
{
    return column == NULL ? NULL : column->name;
}

static bool same_name(const char *a, const TableColumn *b)
{
    return a == NULL || b == NULL ? a == name_of(b) : strcmp(a, b->name) == 0;
}

/* The same columns, of whatever rows. */
static bool has_columns_of(const PgkmLoaded *loaded, const TableCall *call)
{
    return loaded->relation == call->relation.id && same_name(loaded->weight, call->weight) &&
           datumIsEqual(loaded->features, sources_names(call->features, call->n_features), false, -1);
}

static bool is_loaded_as(const PgkmLoaded *loaded, const TableCall *call)
{
    return loaded->nulls == call->nulls && same_name(loaded->filter, call->filter) && has_columns_of(loaded, call);
}

/* What the current role has loaded so. */
static PgkmLoaded *find(const TableCall *call)
{
    for (PgkmLoaded *loaded = all_loaded; loaded != NULL; loaded = loaded->next)
        if (loaded->owner == GetUserId() && is_loaded_as(loaded, call))
            return loaded;
    return NULL;
}

static void unload(PgkmLoaded *loaded)
{
    if (loaded != NULL)
        MemoryContextDelete(loaded->context);
}

/* Servers that an error has left at work are told to end it, and forget the rows. */
static void end_use(void *argument)
{
    PgkmLoaded *const loaded = (PgkmLoaded *)argument;

    --loaded->users;
    if (loaded->nodes != NULL && nodes_are_at_work(loaded->nodes))
        nodes_end(loaded->nodes);
}

/* NULL, too, where other servers have lost theirs. */
static PgkmLoaded *find_whole(const TableCall *call)
{
    PgkmLoaded *const loaded = find(call);

    if (loaded == NULL || loaded->nodes == NULL || nodes_stand(loaded->nodes))
        return loaded;
    unload(loaded);
    return NULL;
}

PgkmLoaded *pgkm_loaded_use(const TableCall *call)
{
    PgkmLoaded *const loaded = find_whole(call);

    if (loaded == NULL)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("these columns of relation \"%s\" are not loaded", call->relation.name),
                        errhint("Call kmeans_load with the same features, weight, nulls and filter first.")));

    MemoryContextCallback *const on_reset =
        (MemoryContextCallback *)MemoryContextAlloc(call->context, sizeof(MemoryContextCallback));

    on_reset->func = end_use;
    on_reset->arg = loaded;
    MemoryContextRegisterResetCallback(call->context, on_reset);
    ++loaded->users;
    loaded->last_use = ++uses;
    return loaded;
}

/* Called when the context goes. */
static void forget(void *argument)
{
    PgkmLoaded *const loaded = (PgkmLoaded *)argument;

    for (PgkmLoaded **place = &all_loaded; *place != NULL; place = &(*place)->next)
        if (*place == loaded) {
            *place = loaded->next;
            break;
        }
}

static uint64 bytes_of(const PgkmLoaded *loaded)
{
    return loaded->rows->reserved + (loaded->rows->used == NULL ? 0 : loaded->rows->used->reserved);
}

/* Of the rows that are not in use. */
static uint64 reclaimable_bytes(void)
{
    uint64 bytes = 0;

    for (const PgkmLoaded *loaded = all_loaded; loaded != NULL; loaded = loaded->next)
        if (loaded->users == 0)
            bytes += bytes_of(loaded);
    return bytes;
}

/* Gives up the rows that were not used for the longest time, unless all are in use. */
static bool give_up_oldest(void)
{
    PgkmLoaded *oldest = NULL;

    for (PgkmLoaded *loaded = all_loaded; loaded != NULL; loaded = loaded->next)
        if (loaded->users == 0 && (oldest == NULL || loaded->last_use < oldest->last_use))
            oldest = loaded;
    if (oldest == NULL)
        return false;
    ereport(NOTICE, (errmsg("loaded rows of relation \"%s\" were given up for memory", oldest->name)));
    unload(oldest);
    return true;
}

static const PgkmReclaimHooks reclaim_hooks = {reclaimable_bytes, give_up_oldest};

static const char *copy_name(const TableColumn *column)
{
    return column == NULL ? NULL : pstrdup(column->name);
}

static PgkmLoaded *create(const TableCall *call, MemoryContext context)
{
    MemoryContext caller = MemoryContextSwitchTo(context);
    PgkmLoaded *const loaded = (PgkmLoaded *)palloc0(sizeof(PgkmLoaded));

    loaded->context = context;
    loaded->relation = call->relation.id;
    loaded->owner = GetUserId();
    loaded->name = pstrdup(call->relation.name);
    loaded->features = sources_names(call->features, call->n_features);
    loaded->weight = copy_name(call->weight);
    loaded->filter = copy_name(call->filter);
    loaded->nulls = call->nulls;
    loaded->loaded_at = GetCurrentTimestamp();
    loaded->last_use = ++uses;
    MemoryContextSwitchTo(caller);
    return loaded;
}

/* The file of a table, which is locked from now on. */
static Oid current_file(Oid table)
{
    const Relation relation = try_relation_open(table, AccessShareLock);

    if (relation == NULL)
        return InvalidOid;

    const Oid number = pgkm_file_number(relation);

    relation_close(relation, NoLock);
    return number;
}

/* The tables have been locked since their rows were read, so these are the files that were read. */
static void note_files(PgkmLoaded *loaded)
{
    const TableRows *const rows = loaded->rows;

    loaded->n_files = rows->n_ranges;
    loaded->files = (Oid *)MemoryContextAlloc(loaded->context, (rows->n_ranges + 1) * sizeof(Oid));
    for (int i = 0; i < rows->n_ranges; ++i)
        loaded->files[i] = current_file(rows->ranges[i].table);
}

void pgkm_loaded_check_places(const PgkmLoaded *loaded)
{
    for (int i = 0; i < loaded->n_files; ++i)
        if (current_file(loaded->rows->ranges[i].table) != loaded->files[i])
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("relation \"%s\" has been rewritten since its rows were loaded", loaded->name),
                            errdetail("The rows lie at other places (ctid) now."), errhint("Call kmeans_load again.")));
}

/* From now on the session's and no more the query's. */
static void keep(PgkmLoaded *loaded)
{
    loaded->resident = pgkm_run_keep_rows(loaded->context);
    loaded->on_reset.func = forget;
    loaded->on_reset.arg = loaded;
    MemoryContextRegisterResetCallback(loaded->context, &loaded->on_reset);
    MemoryContextSetParent(loaded->context, TopMemoryContext);
    loaded->next = all_loaded;
    all_loaded = loaded;
    pgkm_memory_register_reclaim(&reclaim_hooks);
}

/*
 * kmeans_load(relation, features, weight, nulls, filter) -> bigint: reads the rows and keeps them for the session,
 * instead of those that were loaded under the same names; returns how many take part in a fit.
 */
Datum pgkm_kmeans_load(PG_FUNCTION_ARGS)
{
    MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "kmeans loaded rows", ALLOCSET_SMALL_SIZES);
    TableCall *call = table_call_create();

    call->arguments = {.relation = table_call_relation(fcinfo),
                       .features = fcinfo->args[LOAD_FEATURES],
                       .weight = fcinfo->args[LOAD_WEIGHT],
                       .nulls = fcinfo->args[LOAD_NULLS],
                       .filter = fcinfo->args[LOAD_FILTER]};
    call->takes_bits = true;
    table_call_find(call, TABLE_READ);

    unload(find(call));

    PgkmLoaded *const loaded = create(call, context);

    loaded->rows = table_call_read(call, "kmeans_load",
                                   {.need_ctid = table_may_read_ctid(&call->relation), .on_nodes = true}, context);
    loaded->nodes = call->nodes;
    if (loaded->rows->wants.ctid)
        note_files(loaded);
    /* Reading a view may have loaded it, too. */
    unload(find(call));
    keep(loaded);

    const int64 used = call->n;

    call->nodes = NULL; /* they stay */
    table_call_destroy(call);
    PG_RETURN_INT64(used);
}

/*
 * kmeans_unload(relation, features, weight) -> bigint: gives loaded rows back, those of one load; with
 * features NULL of all loads of the relation, with relation NULL of all; returns how many loads. Those of
 * the roles that the current one is a member of, as itself.
 */
Datum pgkm_kmeans_unload(PG_FUNCTION_ARGS)
{
    TableCall *const call = table_call_create();
    const bool everything = PG_ARGISNULL(LOAD_RELATION);
    const bool one = !everything && !PG_ARGISNULL(LOAD_FEATURES);
    int64 count = 0;

    call->takes_bits = true;
    if (!everything)
        call->relation.id = table_call_relation(fcinfo);
    if (one) {
        call->arguments = {.relation = call->relation.id,
                           .features = fcinfo->args[LOAD_FEATURES],
                           .weight = fcinfo->args[LOAD_WEIGHT]};
        table_relation_find(&call->relation, call->relation.id, TABLE_READ, false);
        table_call_find_columns(call);
    }
    for (PgkmLoaded *loaded = all_loaded, *next; loaded != NULL; loaded = next) {
        next = loaded->next;
        if (!is_member_of_role(GetUserId(), loaded->owner))
            continue;
        if (everything || (one ? has_columns_of(loaded, call) : loaded->relation == call->relation.id)) {
            unload(loaded);
            ++count;
        }
    }
    MemoryContextDelete(call->context);
    PG_RETURN_INT64(count);
}

/* kmeans_loaded() -> one row per load of this session by the current role or one it is a member of. */
Datum pgkm_kmeans_loaded(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = pgkm_result_begin(fcinfo);

    for (const PgkmLoaded *loaded = all_loaded; loaded != NULL; loaded = loaded->next) {
        const PgkmRows *const used = loaded->rows->used;
        const int64 n = table_rows_used(loaded->rows) + (loaded->nodes == NULL ? 0 : nodes_rows(loaded->nodes));
        const int32 d = used != NULL ? used->d : loaded->nodes == NULL ? 0 : nodes_features(loaded->nodes);

        if (is_member_of_role(GetUserId(), loaded->owner))
            pgkm_result_put(result, {loaded->relation, loaded->name, loaded->features, loaded->weight, n,
                                     pgkm_value_if(n > 0, d), (int64)bytes_of(loaded), loaded->loaded_at,
                                     table_nulls_name(loaded->nulls), loaded->filter});
    }
    return (Datum)0;
}
