/*
 * nodes.cpp - has other servers load their rows, and lends them to a job.
 */
#include "pg/nodes/nodes.h"

#include "pg/nodes/places.h"
#include "pg/scan/scan.h"
#include "pg/settings.h"

extern "C" {
#include "utils/memutils.h"
}

struct Nodes {
    MemoryContextCallback on_reset;
    List *servers; /* NodeServer */
    PgkmNode *list;
    bool at_work;
};

void nodes_end(Nodes *nodes)
{
    servers_close(nodes->servers);
}

static void end_at_reset(void *nodes)
{
    nodes_end((Nodes *)nodes);
}

/* NULL where one of them lacks the extension. */
static Nodes *connect_and_load(const TableQuery *query, List *servers, MemoryContext context)
{
    Nodes *const nodes = (Nodes *)MemoryContextAllocZero(context, sizeof(Nodes));

    nodes->servers = servers;
    nodes->list = (PgkmNode *)MemoryContextAlloc(context, list_length(servers) * sizeof(PgkmNode));
    nodes->on_reset.func = end_at_reset;
    nodes->on_reset.arg = nodes;
    MemoryContextRegisterResetCallback(context, &nodes->on_reset);
    servers_connect(servers);
    if (!servers_find_extension(servers)) {
        nodes_end(nodes);
        return NULL;
    }
    foreach_ptr (NodeServer, server, servers) {
        server->call = psprintf("SELECT %s.pgkm_node_call($1)", server->schema);
        server_call(server, node_load_statement(query, server));
    }
    return nodes;
}

Nodes *nodes_begin(const TableQuery *query, MemoryContext context, List **local)
{
    const MemoryContext caller = MemoryContextSwitchTo(context);
    List *const servers = pgkm_scan_choice == SCAN_AUTO ? node_servers(query) : NIL;
    Nodes *nodes = NULL;

    if (servers != NIL) {
        const char *const obstacle = node_obstacle(query, servers, local);

        if (obstacle == NULL)
            nodes = connect_and_load(query, servers, context);
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

    return link_call(&server->link, server->call, request, bytes, error);
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

/* Takes the answer to the call that loads rows. */
static void take_loaded(NodeServer *server)
{
    const PGresult *const result = server->link.result;

    if (PQntuples(result) == 1 && PQnfields(result) == 3) {
        server->n = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
        server->d = atoi(PQgetvalue(result, 0, 1));
        server->element = strcmp(PQgetvalue(result, 0, 2), "real") == 0 ? PGKM_FLOAT32 : PGKM_FLOAT64;
    }
    if (PQntuples(result) != 1 || PQnfields(result) != 3 || server->n < 0 || (server->n > 0 && server->d < 1))
        ereport(ERROR, (errcode(ERRCODE_FDW_ERROR), errmsg("%s returned an unexpected result", server->name)));
}

bool nodes_await(Nodes *nodes, PgkmElement element)
{
    int64 rows = 0;

    servers_await(nodes->servers);
    foreach_ptr (NodeServer, server, nodes->servers) {
        take_loaded(server);
        /* Half of the range is room for the rows here. */
        if (server->n > PG_INT64_MAX / 2 - rows)
            ereport(ERROR, (errcode(ERRCODE_FDW_ERROR), errmsg("%s returned an unexpected result", server->name)));
        rows += server->n;
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

    foreach_ptr (NodeServer, server, nodes->servers)
        n += server->n;
    return n;
}

int32 nodes_features(const Nodes *nodes)
{
    foreach_ptr (NodeServer, server, nodes->servers)
        if (server->n > 0)
            return server->d;
    return 0;
}

const PgkmNode *nodes_list(Nodes *nodes, int64 *count)
{
    PgkmNode *node = nodes->list;

    foreach_ptr (NodeServer, server, nodes->servers) {
        server->link.timeout_ms = pgkm_node_timeout_ms();
        *node++ = {server->name, server->n, server, node_call, node_reply, node_cancel};
    }
    nodes->at_work = true;
    *count = list_length(nodes->servers);
    return nodes->list;
}

bool nodes_stand(const Nodes *nodes)
{
    foreach_ptr (NodeServer, server, nodes->servers)
        if (server->link.conn == NULL)
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
