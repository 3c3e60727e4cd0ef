/*
 * servers.cpp - connects to other servers, and waits for them.
 */
#include "pg/nodes/servers.h"

#include "pg/nodes/options.h"
#include "pg/settings.h"
#include "pg/version.h"

extern "C" {
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/wait_event.h"
}

/* How long one server is waited for before interrupts and the others are looked at. */
#define SLICE_MS 10

/* How long all servers together are given to take it that a call is cancelled. */
#define CANCEL_MS 100

static bool are_cancelling(List *servers, int milliseconds)
{
    bool waiting = false;

    foreach_ptr (NodeServer, server, servers)
        waiting = link_cancelling(&server->link, waiting ? 0 : milliseconds) || waiting;
    return waiting;
}

void servers_close(List *servers)
{
    foreach_ptr (NodeServer, server, servers)
        link_cancel(&server->link);
    for (int waited = 0; waited < CANCEL_MS && are_cancelling(servers, SLICE_MS); waited += SLICE_MS) {}
    foreach_ptr (NodeServer, server, servers) {
        link_close(&server->link);
        link_close(&server->probe);
        for (; server->descriptors > 0; --server->descriptors)
            ReleaseExternalFD();
    }
}

[[noreturn]] static void raise_node(const NodeServer *server, const char *state, const char *text)
{
    ereport(ERROR, (errcode(MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4])),
                    errmsg("%s: %s", server->name, text)));
    pg_unreachable();
}

/* What a server says beside results is a sign of life, no more. */
static void heed(void *, const PGresult *) {}

/* As libpqsrv_connect_params() of the server's libpq-be-fe-helpers.h, but it knows a timeout. Whatever comes, the
 * connection belongs to *server. */
static void open_link(NodeServer *server, NodeLink *link, int timeout_ms)
{
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;

    if (!AcquireExternalFD())
        ereport(ERROR, (errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
                        errmsg("could not connect to %s", server->name), errdetail("There are too many open files."),
                        errhint("Raise the server's max_files_per_process and/or \"ulimit -n\" limits.")));
    ++server->descriptors;
    link_heard(link);
    link->conn = PQconnectStartParams(server->keywords, server->values, 0);
    if (link->conn == NULL)
        raise_node(server, "53200", "out of memory");
    PQsetNoticeReceiver(link->conn, heed, NULL);
    while (PQstatus(link->conn) != CONNECTION_BAD && state != PGRES_POLLING_OK && state != PGRES_POLLING_FAILED) {
        const int ready = state == PGRES_POLLING_WRITING ? WL_SOCKET_WRITEABLE : WL_SOCKET_READABLE;
        const int events = WaitLatchOrSocket(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH | ready,
                                             PQsocket(link->conn), timeout_ms, PG_WAIT_EXTENSION);

        if (events & WL_LATCH_SET) {
            ResetLatch(MyLatch);
            CHECK_FOR_INTERRUPTS();
        }
        if (events & ready)
            state = PQconnectPoll(link->conn);
        if (link_silence(link) >= timeout_ms)
            raise_node(server, "08006", LINK_SILENT);
    }
    if (state != PGRES_POLLING_OK || PQsetnonblocking(link->conn, 1) != 0)
        raise_node(server, "08001", pchomp(PQerrorMessage(link->conn)));
    link_heard(link);
}

/* A server that reads rows may have nothing to tell for long. Then another connection shows whether it is alive. */
static void probe(NodeServer *server)
{
    const int patience = pgkm_node_timeout_ms() / 2;

    if (link_silence(&server->link) < patience)
        return;
    open_link(server, &server->probe, patience);
    link_close(&server->probe);
    ReleaseExternalFD();
    --server->descriptors;
    link_heard(&server->link);
}

void servers_await(List *servers)
{
    bool waiting = true;

    while (waiting) {
        int slice = SLICE_MS; /* for the first that is waited for */

        waiting = false;
        foreach_ptr (NodeServer, server, servers) {
            PgkmError error;

            if (!server->link.busy)
                continue;

            const int state = link_wait(&server->link, slice, &error);

            if (state < 0)
                raise_node(server, error.sqlstate, error.text);
            if (state == 0)
                probe(server);
            waiting = waiting || state == 0;
            slice = 0;
        }
        CHECK_FOR_INTERRUPTS();
    }
}

void server_call(NodeServer *server, const char *sql)
{
    PgkmError error;

    if (link_call(&server->link, sql, NULL, 0, &error) != 0)
        raise_node(server, error.sqlstate, error.text);
}

void servers_connect(List *servers)
{
    foreach_ptr (NodeServer, server, servers) {
        node_connect_options(server);
        open_link(server, &server->link, pgkm_node_timeout_ms());
        /* The account is not for a thread of the job, which may cancel. */
        for (; server->descriptors < LINK_SOCKETS; ++server->descriptors)
            ReserveExternalFD();
        node_check_password(server);
    }
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

bool servers_find_extension(List *servers)
{
    foreach_ptr (NodeServer, server, servers)
        server_call(server, find_extension);
    servers_await(servers);
    foreach_ptr (NodeServer, server, servers) {
        const char *const schema = text_result(server, 3);

        if (schema == NULL)
            continue;
        server->schema = quote_identifier(schema);
        server_call(server, psprintf("SELECT %s.pgkm_node_version()", server->schema));
    }
    servers_await(servers);
    foreach_ptr (const NodeServer, server, servers) {
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
