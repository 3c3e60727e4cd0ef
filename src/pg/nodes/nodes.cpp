/*
 * nodes.cpp - opens connections to other servers, has rows loaded there, and lends them to a job.
 */
#include "pg/nodes/nodes.h"

#include "pg/nodes/link.h"
#include "pg/nodes/options.h"
#include "pg/nodes/places.h"
#include "pg/run/run_job.h"
#include "pg/scan/scan.h"
#include "pg/settings.h"
#include "pg/version.h"

extern "C" {
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
}

/* How long one server is waited for before interrupts and the others are looked at. */
#define SLICE_MS 10

struct NodeServer {
    NodeLink link;
    NodeLink probe; /* asks whether the server is alive, while it says nothing */
    const char **keywords;
    const char **values;
    int descriptors; /* counted by this server's account of open files */
    UserMapping *user;
    const char *name;   /* for errors: server "..." */
    const char *schema; /* of the extension there; NULL: it has none of this version */
    const char *call;   /* the statement that passes a request on */
    int64 n;
    int32 d;
    PgkmElement element;
};

struct Nodes {
    MemoryContextCallback on_reset;
    NodeServer *servers;
    int count;
    PgkmNode *list;
};

static void close_server(NodeServer *server)
{
    link_cancel(&server->link);
    link_close(&server->link);
    link_close(&server->probe);
    for (; server->descriptors > 0; --server->descriptors)
        ReleaseExternalFD();
}

void nodes_end(Nodes *nodes)
{
    for (int i = 0; i < nodes->count; ++i)
        close_server(&nodes->servers[i]);
}

static void end_at_reset(void *nodes)
{
    nodes_end((Nodes *)nodes);
}

[[noreturn]] static void raise_node(const NodeServer *server, const PgkmError *error)
{
    const char *const state = server->link.sqlstate;

    ereport(ERROR, (errcode(MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4])),
                    errmsg("%s: %s", server->name, error->text)));
    pg_unreachable();
}

/* A server that reads rows may have nothing to tell for long. Then another connection shows whether it is alive. */
static void probe(NodeServer *server)
{
    PgkmError error;
    int state = 0;

    if (server->probe.conn == NULL) {
        if (link_silence(&server->link) < pgkm_node_timeout_ms() / 2)
            return;
        server->probe.timeout_ms = pgkm_node_timeout_ms() / 2;
        state = link_open(&server->probe, server->keywords, server->values, &error);
    }
    if (state == 0)
        state = link_connect(&server->probe, 0, &error);
    if (state < 0) {
        memcpy(server->link.sqlstate, server->probe.sqlstate, sizeof server->link.sqlstate);
        raise_node(server, &error);
    }
    if (state == 1) {
        link_close(&server->probe);
        link_heard(&server->link);
    }
}

/* Waits for the calls of all servers that are at work. */
static void await_all(Nodes *nodes)
{
    bool waiting = true;

    while (waiting) {
        int slice = SLICE_MS; /* for the first that is waited for */

        waiting = false;
        for (int i = 0; i < nodes->count; ++i) {
            NodeServer *const server = &nodes->servers[i];
            PgkmError error;

            if (!server->link.busy)
                continue;

            const int state = link_wait(&server->link, slice, &error);

            if (state < 0)
                raise_node(server, &error);
            if (state == 0)
                probe(server);
            waiting = waiting || state == 0;
            slice = 0;
        }
        CHECK_FOR_INTERRUPTS();
    }
}

static void call(NodeServer *server, const char *sql, int count, const char *const *parameters)
{
    PgkmError error;

    if (link_call(&server->link, sql, count, parameters, &error) != 0)
        raise_node(server, &error);
}

/* --- connecting --- */

/* One for the connection, and one for probes. */
static bool acquire_descriptors(NodeServer *server)
{
    while (server->descriptors < 2 && AcquireExternalFD())
        ++server->descriptors;
    return server->descriptors == 2;
}

static void begin_connection(NodeServer *server, Oid id)
{
    const ForeignServer *const foreign = GetForeignServer(id);
    PgkmError error;

    server->user = GetUserMapping(GetUserId(), id);
    server->name = psprintf("server \"%s\"", foreign->servername);
    server->link.name = server->name;
    server->link.timeout_ms = pgkm_node_timeout_ms();
    node_connect_options(foreign, server->user, &server->keywords, &server->values);
    if (!acquire_descriptors(server))
        ereport(ERROR, (errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
                        errmsg("could not connect to %s", server->name), errdetail("There are too many open files."),
                        errhint("Raise the server's max_files_per_process and/or \"ulimit -n\" limits.")));
    if (link_open(&server->link, server->keywords, server->values, &error) != 0)
        raise_node(server, &error);
}

static void await_connections(Nodes *nodes)
{
    bool *const stands = (bool *)palloc0(nodes->count * sizeof(bool));
    int left = nodes->count;

    while (left > 0) {
        int slice = SLICE_MS;

        for (int i = 0; i < nodes->count; ++i) {
            NodeServer *const server = &nodes->servers[i];
            PgkmError error;

            if (stands[i])
                continue;

            const int state = link_connect(&server->link, slice, &error);

            if (state < 0)
                raise_node(server, &error);
            slice = 0;
            if (state == 0)
                continue;
            node_check_password(server->user, PQconnectionUsedPassword(server->link.conn) != 0);
            stands[i] = true;
            server->link.timeout_ms = 0; /* until a job takes over: probe() */
            --left;
        }
        CHECK_FOR_INTERRUPTS();
    }
    pfree(stands);
}

/* What a session over there needs: no names but the catalog's, signs of life, an end when we are gone. And where the
 * extension is. */
static const char find_extension[] =
    "SELECT pg_catalog.set_config('search_path', 'pg_catalog', false),"
    " pg_catalog.set_config('client_min_messages', 'notice', false),"
    " pg_catalog.set_config('client_connection_check_interval', '500', false),"
    " (SELECT n.nspname FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace"
    " JOIN pg_catalog.pg_proc p ON p.pronamespace = n.oid AND p.proname = 'kmeans_node_version'"
    " WHERE e.extname = 'pg_kmeans')";

static char *text_result(const NodeServer *server, int column)
{
    const PGresult *const result = server->link.result;

    return PQntuples(result) == 1 && !PQgetisnull(result, 0, column) ? pstrdup(PQgetvalue(result, 0, column)) : NULL;
}

/* Whether every server has this version of the extension; a NOTICE names one that has not. */
static bool find_extensions(Nodes *nodes)
{
    for (int i = 0; i < nodes->count; ++i)
        call(&nodes->servers[i], find_extension, 0, NULL);
    await_all(nodes);
    for (int i = 0; i < nodes->count; ++i) {
        NodeServer *const server = &nodes->servers[i];
        const char *const schema = text_result(server, 3);

        if (schema == NULL)
            continue;
        server->schema = quote_identifier(schema);
        call(server, psprintf("SELECT %s.kmeans_node_version()", server->schema), 0, NULL);
    }
    await_all(nodes);
    for (int i = 0; i < nodes->count; ++i) {
        const NodeServer *const server = &nodes->servers[i];
        const char *const version = server->schema == NULL ? NULL : text_result(server, 0);

        if (version != NULL && strcmp(version, PGKM_VERSION) == 0)
            continue;
        ereport(NOTICE,
                (errmsg("rows of other servers are read by this one"),
                 version == NULL
                     ? errdetail("%s does not have the extension pg_kmeans of this version.", server->name)
                     : errdetail("%s has version %s of pg_kmeans, not " PGKM_VERSION ".", server->name, version)));
        return false;
    }
    return true;
}

/* --- loading --- */

static void begin_loading(NodeServer *server, const TableQuery *query, const NodePlace *place)
{
    const char *arguments[4];

    node_load_arguments(query, place, &arguments[0], &arguments[1], &arguments[2]);
    arguments[3] = query->need_direction ? "true" : "false";
    server->call = psprintf("SELECT %s.kmeans_node_call($1)", server->schema);
    call(server,
         psprintf("SELECT n, d, element FROM %s.kmeans_node_load($1::pg_catalog.regclass[], $2::pg_catalog.text[], "
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

Nodes *nodes_begin(const TableQuery *query, MemoryContext context, List **local)
{
    const MemoryContext caller = MemoryContextSwitchTo(context);
    List *const places = pgkm_scan_choice() == SCAN_AUTO ? node_places(query, local) : NIL;
    Nodes *nodes = NULL;

    if (places != NIL && scan_is_privileged(query)) {
        const char *const obstacle = node_obstacle(query, places, *local);

        if (obstacle != NULL) {
            ereport(NOTICE, (errmsg("rows of other servers are read by this one"), errdetail("%s", obstacle)));
        } else {
            nodes = create(places, context);
            for (int i = 0; i < nodes->count; ++i)
                begin_connection(&nodes->servers[i], ((NodePlace *)list_nth(places, i))->server);
            await_connections(nodes);
            if (find_extensions(nodes)) {
                for (int i = 0; i < nodes->count; ++i)
                    begin_loading(&nodes->servers[i], query, (NodePlace *)list_nth(places, i));
            } else {
                nodes_end(nodes);
                nodes = NULL;
            }
        }
    }
    MemoryContextSwitchTo(caller);
    return nodes;
}

/* --- what a job calls, in its thread --- */

static int node_call(void *arg, const void *request, size_t bytes, PgkmError *error)
{
    NodeServer *const server = (NodeServer *)arg;

    if (link_call_bytes(&server->link, server->call, request, bytes, error) == 0)
        return 0;
    pgkm_note_node_state(server->link.sqlstate);
    return -1;
}

static int node_reply(void *arg, int milliseconds, const void **reply, size_t *bytes, PgkmError *error)
{
    NodeServer *const server = (NodeServer *)arg;
    const int state = link_wait(&server->link, milliseconds, error);

    if (state == 1) {
        *reply = PQgetvalue(server->link.result, 0, 0);
        *bytes = (size_t)PQgetlength(server->link.result, 0, 0);
    } else if (state < 0) {
        pgkm_note_node_state(server->link.sqlstate);
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

    await_all(nodes);
    nodes->list = (PgkmNode *)palloc0(nodes->count * sizeof(PgkmNode));
    for (int i = 0; i < nodes->count; ++i) {
        NodeServer *const server = &nodes->servers[i];
        const PGresult *const result = server->link.result;

        if (PQntuples(result) != 1 || PQnfields(result) != 3)
            raise_unexpected(server);
        server->link.timeout_ms = pgkm_node_timeout_ms();
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

const PgkmNode *nodes_list(const Nodes *nodes, int64 *count)
{
    *count = nodes->count;
    return nodes->list;
}
