/*
 * places.cpp - foreign tables among the leaves of a relation, or its shards.
 */
#include "pg/nodes/places.h"

#include "pg/nodes/options.h"
#include "pg/nodes/shards.h"
#include "pg/query/citus.h"
#include "pg/scan/scan.h"
#include "pg/settings.h"

extern "C" {
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
}

NodePlace *node_add_table(List **places, Oid server, int32 node, const char *name, Oid foreign)
{
    NodeTable *const table = (NodeTable *)palloc(sizeof(NodeTable));
    NodePlace *place = NULL;
    ListCell *cell;

    foreach (cell, *places)
        if (((NodePlace *)lfirst(cell))->server == server && ((NodePlace *)lfirst(cell))->node == node)
            place = (NodePlace *)lfirst(cell);
    if (place == NULL) {
        place = (NodePlace *)palloc0(sizeof(NodePlace));
        place->server = server;
        place->node = node;
        *places = lappend(*places, place);
    }
    *table = {name, foreign};
    place->tables = lappend(place->tables, table);
    return place;
}

static const char *table_there(Oid table)
{
    List *const options = GetForeignTable(table)->options;
    const char *const schema = node_option(options, "schema_name");
    const char *const name = node_option(options, "table_name");

    return quote_qualified_identifier(schema == NULL ? get_namespace_name(get_rel_namespace(table)) : schema,
                                      name == NULL ? get_rel_name(table) : name);
}

List *node_places(const TableQuery *query)
{
    const char relkind = get_rel_relkind(query->relation->id);
    List *places = NIL;
    ListCell *cell;

    if (relkind != RELKIND_RELATION && relkind != RELKIND_PARTITIONED_TABLE && relkind != RELKIND_FOREIGN_TABLE)
        return NIL;
    if (citus_owns_table(query->relation->id))
        return shard_places(query->relation->id);
    foreach (cell, find_all_inheritors(query->relation->id, AccessShareLock, NULL)) {
        const Oid leaf = lfirst_oid(cell);

        if (get_rel_relkind(leaf) != RELKIND_FOREIGN_TABLE)
            continue;

        const Oid server = GetForeignTable(leaf)->serverid;

        if (!node_is_postgres(server))
            return NIL;

        node_add_table(&places, server, 0, table_there(leaf), leaf)->name =
            psprintf("server \"%s\"", GetForeignServer(server)->servername);
    }
    return places;
}

bool node_rows_elsewhere(Oid relation)
{
    const char relkind = get_rel_relkind(relation);
    bool elsewhere = citus_owns_table(relation);
    ListCell *cell;

    if (relkind != RELKIND_RELATION && relkind != RELKIND_PARTITIONED_TABLE && relkind != RELKIND_FOREIGN_TABLE)
        return false;
    foreach (cell, find_all_inheritors(relation, NoLock, NULL)) {
        const Oid part = lfirst_oid(cell);

        if (get_rel_relkind(part) != RELKIND_FOREIGN_TABLE)
            continue;
        if (!node_is_postgres(GetForeignTable(part)->serverid))
            return false;
        elsewhere = true;
    }
    return elsewhere;
}

/* A call of postgres_fdw_get_connections() as the extension has it, the caller's; NULL without the extension. Since
 * version 18 it has an argument with a default. Without that argument the call would find somebody else's function of
 * this name in the same schema. */
static const char *connections_call(void)
{
    if (SPI_execute("SELECT n.nspname::pg_catalog.text, p.pronargs FROM pg_catalog.pg_extension e"
                    " JOIN pg_catalog.pg_depend m ON m.refclassid OPERATOR(pg_catalog.=) e.tableoid"
                    " AND m.refobjid OPERATOR(pg_catalog.=) e.oid AND m.deptype OPERATOR(pg_catalog.=) 'e'"
                    " JOIN pg_catalog.pg_proc p ON p.tableoid OPERATOR(pg_catalog.=) m.classid"
                    " AND p.oid OPERATOR(pg_catalog.=) m.objid"
                    " JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace"
                    " WHERE e.extname OPERATOR(pg_catalog.=) 'postgres_fdw'"
                    " AND p.proname OPERATOR(pg_catalog.=) 'postgres_fdw_get_connections'",
                    true, 1) != SPI_OK_SELECT ||
        SPI_processed != 1)
        return NULL;

    const HeapTuple row = SPI_tuptable->vals[0];
    const char *const schema = SPI_getvalue(row, SPI_tuptable->tupdesc, 1);
    const char *const arguments = SPI_getvalue(row, SPI_tuptable->tupdesc, 2);

    return psprintf("SELECT 1 FROM %s.postgres_fdw_get_connections(%s)", quote_identifier(schema),
                    strcmp(arguments, "0") == 0 ? "" : "false");
}

/* Rows that this transaction has changed over there are seen by the connection of postgres_fdw alone. It has one to
 * change them, and then commands have been counted. */
bool node_may_have_changed(Oid relation)
{
    bool connected = false;

    if (citus_owns_table(relation))
        return shard_transaction();
    if (GetCurrentCommandId(false) == FirstCommandId)
        return false;
    SPI_connect();

    const char *const call = connections_call();

    if (call != NULL)
        connected = SPI_execute(call, true, 1) == SPI_OK_SELECT && SPI_processed > 0;
    SPI_finish();
    return connected;
}

/* postgres_fdw may still find a way to connect without a password. */
static const char *password_obstacle(List *places)
{
    ListCell *cell;

    foreach (cell, places) {
        const Oid server = ((NodePlace *)lfirst(cell))->server;

        if (node_lacks_password(GetUserMapping(GetUserId(), server)))
            return psprintf("The user mapping for server \"%s\" has no password.",
                            GetForeignServer(server)->servername);
    }
    return NULL;
}

const char *node_obstacle(const TableQuery *query, List *places, List **local)
{
    const bool sharded = citus_owns_table(query->relation->id);
    const char *obstacle = NULL;

    if (!pgkm_distributed)
        return "Setting \"pg_kmeans.distributed\" is off.";
    if (!query->unchanged && node_may_have_changed(query->relation->id))
        return "This transaction may have changed rows on other servers.";
    if (IsolationIsSerializable())
        return "Serializable transactions need predicate locks.";
    if (check_enable_rls(query->relation->id, InvalidOid, true) == RLS_ENABLED)
        return "Row security applies to it.";
    if (!sharded)
        obstacle = password_obstacle(places);
    if (obstacle == NULL)
        obstacle = scan_find_tables(query, true, local);
    if (!sharded)
        return obstacle;
    /* Citus plans the reading of its shards in its own way; none of them is this server's. */
    *local = NIL;
    return NULL;
}

static Datum text_datum(const char *text)
{
    return CStringGetTextDatum(text);
}

static const char *array_text(Datum *values, int count)
{
    ArrayType *const array = construct_array(values, count, TEXTOID, -1, false, TYPALIGN_INT);

    return OidOutputFunctionCall(F_ARRAY_OUT, PointerGetDatum(array));
}

/* The name of a table's column over there. Shards have those of here. */
static const char *column_there(Oid table, const char *name)
{
    const char *const given =
        !OidIsValid(table) ? NULL : node_option(GetForeignColumnOptions(table, get_attnum(table, name)), "column_name");

    return given == NULL ? name : given;
}

void node_load_arguments(const TableQuery *query, const NodePlace *place, const char **tables, const char **features,
                         const char **weights)
{
    const int n = list_length(place->tables);
    Datum *const names = (Datum *)palloc(n * sizeof(Datum));
    Datum *const columns = (Datum *)palloc((Size)n * query->n_features * sizeof(Datum));
    Datum *const weighing = (Datum *)palloc(n * sizeof(Datum));

    for (int i = 0; i < n; ++i) {
        const NodeTable *const table = (const NodeTable *)list_nth(place->tables, i);

        names[i] = text_datum(table->name);
        for (int f = 0; f < query->n_features; ++f)
            columns[i * query->n_features + f] = text_datum(column_there(table->foreign, query->features[f].name));
        if (query->weight != NULL)
            weighing[i] = text_datum(column_there(table->foreign, query->weight->name));
    }
    *tables = array_text(names, n);
    *features = array_text(columns, n * query->n_features);
    *weights = query->weight == NULL ? NULL : array_text(weighing, n);
}
