/*
 * places.cpp - foreign tables among the leaves of a relation, or its shards.
 */
#include "pg/nodes/places.h"

#include "pg/nodes/options.h"
#include "pg/nodes/shards.h"
#include "pg/scan/scan.h"
#include "pg/settings.h"

extern "C" {
#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/syscache.h"
}

NodeServer *node_add_table(List **servers, Oid server, int32 node, const char *name, Oid foreign)
{
    NodeTable *const table = (NodeTable *)palloc(sizeof(NodeTable));
    NodeServer *found = NULL;

    foreach_ptr (NodeServer, known, *servers)
        if (known->server == server && known->node == node)
            found = known;
    if (found == NULL) {
        found = (NodeServer *)palloc0(sizeof(NodeServer));
        found->server = server;
        found->node = node;
        *servers = lappend(*servers, found);
    }
    *table = {name, foreign};
    found->tables = lappend(found->tables, table);
    return found;
}

static const char *table_there(Oid table)
{
    List *const options = GetForeignTable(table)->options;
    const char *const schema = node_option(options, "schema_name");
    const char *const name = node_option(options, "table_name");

    return quote_qualified_identifier(schema == NULL ? get_namespace_name(get_rel_namespace(table)) : schema,
                                      name == NULL ? get_rel_name(table) : name);
}

/* The foreign tables that hold rows of the relation. False where not all are of postgres_fdw. */
static bool find_foreign(Oid relation, LOCKMODE lock, List **foreign)
{
    const char relkind = get_rel_relkind(relation);

    *foreign = NIL;
    if (relkind != RELKIND_RELATION && relkind != RELKIND_PARTITIONED_TABLE && relkind != RELKIND_FOREIGN_TABLE)
        return false;
    foreach_oid (part, find_all_inheritors(relation, lock, NULL)) {
        if (get_rel_relkind(part) != RELKIND_FOREIGN_TABLE)
            continue;
        if (!node_is_postgres(GetForeignTable(part)->serverid))
            return false;
        *foreign = lappend_oid(*foreign, part);
    }
    return true;
}

List *node_servers(const TableQuery *query)
{
    List *servers = NIL;
    List *foreign;

    if (citus_owns_table(query->relation->id))
        return shard_servers(query->relation->id);
    if (!find_foreign(query->relation->id, AccessShareLock, &foreign))
        return NIL;
    foreach_oid (table, foreign) {
        const ForeignServer *const server = GetForeignServer(GetForeignTable(table)->serverid);

        node_add_table(&servers, server->serverid, 0, table_there(table), table)->name =
            psprintf("server \"%s\"", server->servername);
    }
    return servers;
}

bool node_rows_elsewhere(Oid relation)
{
    List *foreign;

    return find_foreign(relation, NoLock, &foreign) && (foreign != NIL || citus_owns_table(relation));
}

/* A call of postgres_fdw_get_connections() as the extension has it; NULL without the extension. Since version 18 it has
 * an argument with a default. Without that argument the call would find somebody else's function of this name in the
 * same schema. */
static const char *connections_call(void)
{
    const Oid extension = get_extension_oid("postgres_fdw", true);
    CatCList *const functions = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum("postgres_fdw_get_connections"));
    const char *call = NULL;

    for (int i = 0; i < functions->n_members; ++i) {
        const Form_pg_proc function = (Form_pg_proc)GETSTRUCT(&functions->members[i]->tuple);

        if (OidIsValid(extension) && getExtensionOfObject(ProcedureRelationId, function->oid) == extension)
            call = psprintf("SELECT 1 FROM %s.postgres_fdw_get_connections(%s)",
                            quote_identifier(get_namespace_name(function->pronamespace)),
                            function->pronargs == 0 ? "" : "false");
    }
    ReleaseCatCacheList(functions);
    return call;
}

/* Rows that this transaction has changed over there are seen by the connection of postgres_fdw alone. It has one to
 * change them, and then commands have been counted. */
bool node_may_have_changed(Oid relation)
{
    if (citus_owns_table(relation))
        return shard_transaction();

    const char *const call = GetCurrentCommandId(false) == FirstCommandId ? NULL : connections_call();

    if (call == NULL)
        return false;
    SPI_connect();

    const bool connected = SPI_execute(call, true, 1) == SPI_OK_SELECT && SPI_processed > 0;

    SPI_finish();
    return connected;
}

const char *node_obstacle(const TableQuery *query, List *servers, List **local)
{
    const bool sharded = citus_owns_table(query->relation->id);

    if (!pgkm_distributed)
        return "Setting \"pg_kmeans.distributed\" is off.";
    if (!query->unchanged && node_may_have_changed(query->relation->id))
        return "This transaction may have changed rows on other servers.";
    if (IsolationIsSerializable())
        return "Serializable transactions need predicate locks.";
    if (check_enable_rls(query->relation->id, InvalidOid, true) == RLS_ENABLED)
        return "Row security applies to it.";
    /* postgres_fdw may still find a way to connect without a password. */
    foreach_ptr (NodeServer, server, servers)
        if (node_lacks_password(server))
            return psprintf("The user mapping for %s has no password.", server->name);

    const char *const obstacle = scan_find_tables(query, true, local);

    if (!sharded)
        return obstacle;
    /* Citus plans the reading of its shards in its own way; none of them is this server's. */
    *local = NIL;
    return NULL;
}

/* The name of a table's column over there. Shards have those of here. */
static const char *column_there(Oid table, const char *name)
{
    const char *const given =
        !OidIsValid(table) ? NULL : node_option(GetForeignColumnOptions(table, get_attnum(table, name)), "column_name");

    return given == NULL ? name : given;
}

static void append_literal(StringInfo list, const char *text)
{
    appendStringInfo(list, "%s%s", list->len == 0 ? "" : ", ", quote_literal_cstr(text));
}

const char *node_load_statement(const TableQuery *query, const NodeServer *server)
{
    StringInfoData names, features, weights;

    initStringInfo(&names);
    initStringInfo(&features);
    initStringInfo(&weights);
    foreach_ptr (const NodeTable, table, server->tables) {
        append_literal(&names, table->name);
        for (int f = 0; f < query->n_features; ++f)
            append_literal(&features, column_there(table->foreign, query->features[f].name));
        if (query->weight != NULL)
            append_literal(&weights, column_there(table->foreign, query->weight->name));
    }
    return psprintf("SELECT n, d, element FROM %s.pgkm_node_load(ARRAY[%s]::pg_catalog.regclass[],"
                    " ARRAY[%s]::pg_catalog.text[], %s%s%s, %s)",
                    server->schema, names.data, features.data, query->weight == NULL ? "NULL" : "ARRAY[", weights.data,
                    query->weight == NULL ? "" : "]::pg_catalog.text[]", query->need_direction ? "true" : "false");
}
