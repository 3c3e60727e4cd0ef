/*
 * shards.cpp - shards of Citus and the servers that hold them.
 *
 * The catalogues are asked by SQL, as everybody may. What Citus keeps for connections, passwords among it, is no user's
 * to see: it is read as Citus reads it, and goes to libpq alone.
 */
#include "pg/nodes/shards.h"

#include "pg/nodes/options.h"
#include "pg/nodes/places.h"

extern "C" {
#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "postmaster/postmaster.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

/* Citus lists them in pg_catalog.pg_dist_partition. */
bool citus_owns_table(Oid relation)
{
    /* There is none where the extension is not created in this database. */
    const Oid list = get_relname_relid("pg_dist_partition", PG_CATALOG_NAMESPACE);
    const AttrNumber column = OidIsValid(list) ? get_attnum(list, "logicalrelid") : InvalidAttrNumber;
    ScanKeyData key;

    if (column == InvalidAttrNumber)
        return false;
    ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));

    const Relation partitions = table_open(list, AccessShareLock);
    const SysScanDesc scan = systable_beginscan(partitions, InvalidOid, false, NULL, 1, &key);
    const bool found = HeapTupleIsValid(systable_getnext(scan));

    systable_endscan(scan);
    table_close(partitions, AccessShareLock);
    return found;
}

/* Of each shard the copy here, else the first, of those whose server is in use: its server, its name. Citus does not
 * qualify names in schema public. */
static const char find_shards[] =
    "SELECT DISTINCT ON (s.shardid) p.groupid = l.groupid, n.nodeid, n.nodename, n.nodeport,"
    " CASE WHEN m.nspname = 'public' THEN 'public.' ELSE '' END || shard_name(c.oid, s.shardid)"
    " FROM pg_dist_local_group l, pg_class c JOIN pg_namespace m ON m.oid = c.relnamespace"
    " JOIN pg_dist_shard s ON s.logicalrelid = c.oid"
    " LEFT JOIN pg_dist_placement p ON p.shardid = s.shardid AND p.shardstate = 1"
    " LEFT JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary' AND n.isactive"
    " WHERE c.oid = $1 ORDER BY s.shardid, n.nodeid IS NULL, p.groupid = l.groupid DESC NULLS LAST, p.placementid";

enum { SHARD_IS_HERE = 1, SHARD_NODE, SHARD_HOST, SHARD_PORT, SHARD_NAME };

/* Runs a query whose names are those of the catalog, whatever the caller's search path. */
static void select_from_catalog(const char *sql, int count, Oid *types, Datum *values)
{
    const int nest_level = NewGUCNestLevel();
    int code;

    table_set_for_now("search_path", "pg_catalog, pg_temp");
    code = SPI_execute_with_args(sql, count, types, values, NULL, true, 0);
    if (code != SPI_OK_SELECT)
        elog(ERROR, "\"%s\" failed: %s", sql, SPI_result_code_string(code));
    AtEOXact_GUC(false, nest_level);
}

/* The shards of the SPI's result. NIL where one has no server, or all are here. */
static List *servers_of_result(void)
{
    const TupleDesc types = SPI_tuptable->tupdesc;
    List *servers = NIL;
    bool elsewhere = false;

    for (uint64 i = 0; i < SPI_processed; ++i) {
        const HeapTuple row = SPI_tuptable->vals[i];
        const char *const here = SPI_getvalue(row, types, SHARD_IS_HERE);
        const char *const node = SPI_getvalue(row, types, SHARD_NODE);

        if (node == NULL)
            return NIL;
        elsewhere = elsewhere || strcmp(here, "t") != 0;

        NodeServer *const server =
            node_add_table(&servers, InvalidOid, atoi(node), SPI_getvalue(row, types, SHARD_NAME), InvalidOid);

        server->host = SPI_getvalue(row, types, SHARD_HOST);
        server->port = SPI_getvalue(row, types, SHARD_PORT);
        server->name = psprintf("server \"%s:%s\"", server->host, server->port);
    }
    return elsewhere ? servers : NIL;
}

List *shard_servers(Oid relation)
{
    const MemoryContext caller = CurrentMemoryContext;
    Oid type = REGCLASSOID;
    Datum id = ObjectIdGetDatum(relation);

    SPI_connect();
    select_from_catalog(find_shards, 1, &type, &id);
    MemoryContextSwitchTo(caller); /* SPI_finish() goes back to it, too */

    List *const servers = servers_of_result();

    SPI_finish();
    return servers;
}

bool shard_transaction(void)
{
    SPI_connect();
    select_from_catalog("SELECT 1 FROM get_current_transaction_id() WHERE transaction_number > 0", 0, NULL, NULL);

    const bool begun = SPI_processed > 0;

    SPI_finish();
    return begun;
}

/* --- connecting --- */

/* By which number Citus keeps options for a server: -1 for this one by its own name. */
static int32 options_number(const NodeServer *server)
{
    const char *const own = GetConfigOption("citus.local_hostname", true, false);

    return strcmp(server->host, own == NULL ? "localhost" : own) == 0 && atoi(server->port) == PostPortNumber
               ? -1
               : server->node;
}

/* What Citus keeps of a role for a server, or of a role for all; as libpq takes it. */
static const char *role_options(int32 node)
{
    const Relation all = table_open(get_relname_relid("pg_dist_authinfo", PG_CATALOG_NAMESPACE), AccessShareLock);
    const Oid id = RelationGetRelid(all);
    const AttrNumber of_node = get_attnum(id, "nodeid"), value = get_attnum(id, "authinfo");
    const char *found = NULL;
    ScanKeyData key;
    HeapTuple row;

    ScanKeyInit(&key, get_attnum(id, "rolename"), BTEqualStrategyNumber, F_NAMEEQ,
                CStringGetDatum(GetUserNameFromId(GetUserId(), false)));

    const SysScanDesc scan = systable_beginscan(all, InvalidOid, false, NULL, 1, &key);

    while (HeapTupleIsValid(row = systable_getnext(scan))) {
        bool null;
        const int32 which = DatumGetInt32(heap_getattr(row, of_node, RelationGetDescr(all), &null));

        if (which == node || (which == 0 && found == NULL))
            found = TextDatumGetCString(heap_getattr(row, value, RelationGetDescr(all), &null));
    }
    systable_endscan(scan);
    table_close(all, AccessShareLock);
    return found;
}

static DefElem *option(const char *name, const char *value)
{
    return makeDefElem(pstrdup(name), (Node *)makeString(pstrdup(value)), -1);
}

/* Those in a text as libpq takes it. */
static List *parsed_options(const char *text)
{
    PQconninfoOption *const all = PQconninfoParse(text == NULL ? "" : text, NULL);
    List *options = NIL;

    if (all == NULL)
        ereport(ERROR, (errcode(ERRCODE_CONFIG_FILE_ERROR), errmsg("Citus has bad options of connections")));
    for (const PQconninfoOption *one = all; one->keyword != NULL; ++one)
        if (one->val != NULL && one->val[0] != '\0')
            options = lappend(options, option(one->keyword, one->val));
    PQconninfoFree(all);
    return options;
}

List *shard_options(const NodeServer *server)
{
    List *options = parsed_options(GetConfigOption("citus.node_conninfo", true, false));

    /* A host among them is the name that certificates have. */
    options = lappend(options, option(node_option(options, "host") == NULL ? "host" : "hostaddr", server->host));
    options = lappend(options, option("port", server->port));
    options = lappend(options, option("dbname", get_database_name(MyDatabaseId)));
    options = lappend(options, option("user", GetUserNameFromId(GetUserId(), false)));
    return list_concat(options, parsed_options(role_options(options_number(server))));
}
