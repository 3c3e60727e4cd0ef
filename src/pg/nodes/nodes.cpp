/*
 * nodes.cpp - has other servers load their rows, and lends them to a job.
 */
#include "pg/nodes/nodes.h"

#include "pg/nodes/servers.h"
#include "pg/scan/scan.h"
#include "pg/settings.h"

extern "C" {
#include "utils/memutils.h"
}

struct Nodes {
    MemoryContextCallback on_reset;
    NodeServer *servers;
    int count;
    bool at_work;
    PgkmNode *list;
};

void nodes_end(Nodes *nodes)
{
    for (int i = 0; i < nodes->count; ++i)
        server_close(&nodes->servers[i]);
}

static void end_at_reset(void *nodes)
{
    nodes_end((Nodes *)nodes);
}

static void begin_loading(NodeServer *server, const TableQuery *query, const NodePlace *place)
{
    const char *arguments[4];

    node_load_arguments(query, place, &arguments[0], &arguments[1], &arguments[2]);
    arguments[3] = query->need_direction ? "true" : "false";
    server->call = psprintf("SELECT %s.pgkm_node_call($1)", server->schema);
    server_call(
        server,
        psprintf("SELECT n, d, element FROM %s.pgkm_node_load($1::pg_catalog.regclass[], $2::pg_catalog.text[], "
                 "$3::pg_catalog.text[], $4::pg_catalog.bool)",
                 server->schema),
        4, arguments);
}

static Nodes *create(List *places, MemoryContext context)
{
    Nodes *const nodes = (Nodes *)MemoryContextAllocZero(context, sizeof(Nodes));

    nodes->servers = (NodeServer *)MemoryContextAllocZero(context, list_length(places) * sizeof(NodeServer));
    nodes->count = list_length(places);
    nodes->on_reset.func = end_at_reset;
    nodes->on_reset.arg = nodes;
    MemoryContextRegisterResetCallback(context, &nodes->on_reset);
    return nodes;
}

/* NULL where one of them lacks the extension. */
static Nodes *connect_and_load(const TableQuery *query, List *places, MemoryContext context)
{
    Nodes *const nodes = create(places, context);

    servers_connect(nodes->servers, places);
    if (!servers_find_extension(nodes->servers, nodes->count)) {
        nodes_end(nodes);
        return NULL;
    }
    for (int i = 0; i < nodes->count; ++i)
        begin_loading(&nodes->servers[i], query, (const NodePlace *)list_nth(places, i));
    return nodes;
}

Nodes *nodes_begin(const TableQuery *query, MemoryContext context, List **local)
{
    const MemoryContext caller = MemoryContextSwitchTo(context);
    List *const places = pgkm_scan_choice == SCAN_AUTO ? node_places(query) : NIL;
    Nodes *nodes = NULL;

    if (places != NIL) {
        const char *const obstacle = node_obstacle(query, places, local);

        if (obstacle == NULL)
            nodes = connect_and_load(query, places, context);
        else
            ereport(NOTICE, (errmsg("rows of other servers are read by this one"), errdetail("%s", obstacle)));
    }
    MemoryContextSwitchTo(caller);
    return nodes;
}

/* --- what a job calls, in its thread --- */

static int node_call(void *arg, const void *request, size_t bytes, PgkmError *error)
{
    NodeServer *const server = (NodeServer *)arg;

    return link_call_bytes(&server->link, server->call, request, bytes, error);
}

static int node_reply(void *arg, int milliseconds, const void **reply, size_t *bytes, PgkmError *error)
{
    NodeServer *const server = (NodeServer *)arg;
    const int state = link_wait(&server->link, milliseconds, error);

    if (state == 1) {
        *reply = PQgetvalue(server->link.result, 0, 0);
        *bytes = (size_t)PQgetlength(server->link.result, 0, 0);
    }
    return state;
}

static void node_cancel(void *arg)
{
    link_cancel(&((NodeServer *)arg)->link);
}

[[noreturn]] static void raise_unexpected(const NodeServer *server)
{
    ereport(ERROR, (errcode(ERRCODE_FDW_ERROR), errmsg("%s returned an unexpected result", server->name)));
    pg_unreachable();
}

bool nodes_await(Nodes *nodes, PgkmElement element)
{
    int64 rows = 0;

    servers_await(nodes->servers, nodes->count);
    nodes->list = (PgkmNode *)MemoryContextAllocZero(GetMemoryChunkContext(nodes), nodes->count * sizeof(PgkmNode));
    for (int i = 0; i < nodes->count; ++i) {
        NodeServer *const server = &nodes->servers[i];
        const PGresult *const result = server->link.result;

        if (PQntuples(result) != 1 || PQnfields(result) != 3)
            raise_unexpected(server);
        server->n = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
        server->d = atoi(PQgetvalue(result, 0, 1));
        /* Half of the range is room for the rows here. */
        if (server->n < 0 || server->n > PG_INT64_MAX / 2 - rows || (server->n > 0 && server->d < 1))
            raise_unexpected(server);
        rows += server->n;
        server->element = strcmp(PQgetvalue(result, 0, 2), "real") == 0 ? PGKM_FLOAT32 : PGKM_FLOAT64;
        nodes->list[i] = {server->name, server->n, server, node_call, node_reply, node_cancel};
        if (server->element != element) {
            ereport(NOTICE, (errmsg("rows of other servers are read by this one"),
                             errdetail("Features have another type on %s.", server->name)));
            return false;
        }
        if (server->n > 0 && server->d != nodes_features(nodes))
            ereport(ERROR,
                    (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s has rows of %d features, others have %d",
                                                                      server->name, server->d, nodes_features(nodes))));
    }
    return true;
}

int64 nodes_rows(const Nodes *nodes)
{
    int64 n = 0;

    for (int i = 0; i < nodes->count; ++i)
        n += nodes->servers[i].n;
    return n;
}

int32 nodes_features(const Nodes *nodes)
{
    for (int i = 0; i < nodes->count; ++i)
        if (nodes->servers[i].n > 0)
            return nodes->servers[i].d;
    return 0;
}

const PgkmNode *nodes_list(Nodes *nodes, int64 *count)
{
    for (int i = 0; i < nodes->count; ++i)
        nodes->servers[i].link.timeout_ms = pgkm_node_timeout_ms();
    nodes->at_work = true;
    *count = nodes->count;
    return nodes->list;
}

bool nodes_stand(const Nodes *nodes)
{
    for (int i = 0; i < nodes->count; ++i)
        if (nodes->servers[i].link.conn == NULL)
            return false;
    return true;
}

void nodes_rest(Nodes *nodes)
{
    nodes->at_work = false;
}

bool nodes_are_at_work(const Nodes *nodes)
{
    return nodes->at_work;
}
