/*
 * servers.cpp - connects to other servers, and waits for them.
 */
#include "pg/nodes/servers.h"

#include "pg/nodes/options.h"
#include "pg/nodes/shards.h"
#include "pg/settings.h"
#include "pg/version.h"

extern "C" {
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/builtins.h"
}

/* How long one server is waited for before interrupts and the others are looked at. */
#define SLICE_MS 10

void server_close(NodeServer *server)
{
    link_cancel(&server->link);
    link_close(&server->link);
    link_close(&server->probe);
    for (; server->descriptors > 0; --server->descriptors)
        ReleaseExternalFD();
}

[[noreturn]] static void raise_node(const NodeServer *server, const PgkmError *error)
{
    const char *const state = error->sqlstate;

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
    if (state < 0)
        raise_node(server, &error);
    if (state == 1) {
        link_close(&server->probe);
        link_heard(&server->link);
    }
}

void servers_await(NodeServer *servers, int count)
{
    bool waiting = true;

    while (waiting) {
        int slice = SLICE_MS; /* for the first that is waited for */

        waiting = false;
        for (int i = 0; i < count; ++i) {
            NodeServer *const server = &servers[i];
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

void server_call(NodeServer *server, const char *sql, int count, const char *const *parameters)
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

/* Foreign servers by the rules of postgres_fdw, others as Citus connects to them. */
static List *options_of(NodeServer *server, const NodePlace *place)
{
    if (!OidIsValid(place->server))
        return shard_options(place);
    server->user = GetUserMapping(GetUserId(), place->server);
    return list_concat_copy(GetForeignServer(place->server)->options, server->user->options);
}

static void begin_connection(NodeServer *server, const NodePlace *place)
{
    PgkmError error;

    server->name = place->name;
    server->link.name = server->name;
    server->link.timeout_ms = pgkm_node_timeout_ms();
    node_connect_options(options_of(server, place), &server->keywords, &server->values);
    if (!acquire_descriptors(server))
        ereport(ERROR, (errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
                        errmsg("could not connect to %s", server->name), errdetail("There are too many open files."),
                        errhint("Raise the server's max_files_per_process and/or \"ulimit -n\" limits.")));
    if (link_open(&server->link, server->keywords, server->values, &error) != 0)
        raise_node(server, &error);
}

static void await_connections(NodeServer *servers, int count)
{
    bool *const stands = (bool *)palloc0(count * sizeof(bool));
    int left = count;

    while (left > 0) {
        int slice = SLICE_MS;

        for (int i = 0; i < count; ++i) {
            NodeServer *const server = &servers[i];
            PgkmError error;

            if (stands[i])
                continue;

            const int state = link_connect(&server->link, slice, &error);

            if (state < 0)
                raise_node(server, &error);
            slice = 0;
            if (state == 0)
                continue;
            if (server->user != NULL)
                node_check_password(server->user, PQconnectionUsedPassword(server->link.conn) != 0);
            stands[i] = true;
            server->link.timeout_ms = 0; /* until a job takes over: probe() */
            --left;
        }
        CHECK_FOR_INTERRUPTS();
    }
    pfree(stands);
}

void servers_connect(NodeServer *servers, List *places)
{
    for (int i = 0; i < list_length(places); ++i)
        begin_connection(&servers[i], (const NodePlace *)list_nth(places, i));
    await_connections(servers, list_length(places));
}

/* What a session over there needs: no names but the catalog's, signs of life, an end when we are gone. And where the
 * extension is. This statement itself is read under the search path that the role has there, so it names the schema of
 * each operator, too. */
static const char find_extension[] =
    "SELECT pg_catalog.set_config('search_path', 'pg_catalog', false),"
    " pg_catalog.set_config('client_min_messages', 'notice', false),"
    " pg_catalog.set_config('client_connection_check_interval', '500', false),"
    " (SELECT n.nspname FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n"
    " ON n.oid OPERATOR(pg_catalog.=) e.extnamespace JOIN pg_catalog.pg_proc p"
    " ON p.pronamespace OPERATOR(pg_catalog.=) n.oid AND p.proname OPERATOR(pg_catalog.=) 'pgkm_node_version'"
    " WHERE e.extname OPERATOR(pg_catalog.=) 'pg_kmeans')";

static char *text_result(const NodeServer *server, int column)
{
    const PGresult *const result = server->link.result;

    return PQntuples(result) == 1 && !PQgetisnull(result, 0, column) ? pstrdup(PQgetvalue(result, 0, column)) : NULL;
}

bool servers_find_extension(NodeServer *servers, int count)
{
    for (int i = 0; i < count; ++i)
        server_call(&servers[i], find_extension, 0, NULL);
    servers_await(servers, count);
    for (int i = 0; i < count; ++i) {
        NodeServer *const server = &servers[i];
        const char *const schema = text_result(server, 3);

        if (schema == NULL)
            continue;
        server->schema = quote_identifier(schema);
        server_call(server, psprintf("SELECT %s.pgkm_node_version()", server->schema), 0, NULL);
    }
    servers_await(servers, count);
    for (int i = 0; i < count; ++i) {
        const NodeServer *const server = &servers[i];
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
