/*
 * link.cpp - one connection to another server.
 */
#include "pg/nodes/link.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t link_silence(const NodeLink *link)
{
    return now_ms() - link->heard;
}

void link_heard(NodeLink *link)
{
    link->heard = now_ms();
}

/* Messages of libpq end with line feeds. */
static int fail(const char *sqlstate, const char *text, PgkmError *error)
{
    size_t length;

    error->status = PGKM_NODE_FAILED;
    snprintf(error->sqlstate, sizeof error->sqlstate, "%s", sqlstate == NULL ? "08006" : sqlstate);
    snprintf(error->text, sizeof error->text, "%s", text);
    for (length = strlen(error->text); length > 0 && error->text[length - 1] == '\n'; --length)
        error->text[length - 1] = '\0';
    return -1;
}

static int fail_connection(NodeLink *link, PgkmError *error)
{
    return fail("08006", PQerrorMessage(link->conn), error);
}

static bool is_ready(NodeLink *link, short events, int milliseconds)
{
    struct pollfd wanted = {PQsocket(link->conn), events, 0};

    return poll(&wanted, 1, milliseconds) > 0;
}

int link_call(NodeLink *link, const char *sql, const void *bytes, size_t size, PgkmError *error)
{
    const Oid bytea = 17;
    const char *const value = (const char *)bytes;
    const int length = (int)size;
    const int binary = 1;

    PQclear(link->result);
    link->result = NULL;
    if (link->conn == NULL)
        return fail("08003", "the connection is closed", error);
    if (size > 0x3fffffff)
        return fail("54000", "a request exceeds the maximum size of a value", error);
    if (PQsendQueryParams(link->conn, sql, bytes != NULL, &bytea, &value, &length, &binary, bytes != NULL) == 0)
        return fail_connection(link, error);
    link->busy = true;
    link_heard(link);
    /* The server begins when it has all. What it has not taken by then goes out in link_wait(). */
    for (int i = 0; i < 10 && PQflush(link->conn) > 0; ++i)
        is_ready(link, POLLOUT, 10);
    return 0;
}

/* In a COPY libpq returns the same result again and again. */
static bool is_copy(const PGresult *result)
{
    const ExecStatusType status = PQresultStatus(result);

    return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

/* The last result counts, or the first error. */
static int take_results(NodeLink *link, PgkmError *error)
{
    while (!PQisBusy(link->conn)) {
        PGresult *const result = PQgetResult(link->conn);

        if (result == NULL) {
            const ExecStatusType status = PQresultStatus(link->result);

            link->busy = false;
            if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
                return 1;
            if (link->result == NULL)
                return fail_connection(link, error);

            const char *const message = PQresultErrorField(link->result, PG_DIAG_MESSAGE_PRIMARY);

            return fail(PQresultErrorField(link->result, PG_DIAG_SQLSTATE),
                        message == NULL ? PQresultErrorMessage(link->result) : message, error);
        }
        if (is_copy(result)) {
            PQclear(result);
            link_close(link);
            return fail("08P01", "unexpected COPY response", error);
        }
        if (link->result != NULL && PQresultStatus(link->result) == PGRES_FATAL_ERROR) {
            PQclear(result);
            continue;
        }
        PQclear(link->result);
        link->result = result;
    }
    return 0;
}

int link_wait(NodeLink *link, int milliseconds, PgkmError *error)
{
    if (link->conn == NULL)
        return fail("08003", "the connection is closed", error);

    const int unsent = PQflush(link->conn);
    int state;

    if (unsent < 0)
        return fail_connection(link, error);
    if ((state = take_results(link, error)) != 0)
        return state;
    if (is_ready(link, unsent > 0 ? POLLIN | POLLOUT : POLLIN, milliseconds)) {
        link_heard(link);
        if (PQconsumeInput(link->conn) == 0)
            return fail_connection(link, error);
        return take_results(link, error);
    }
    return link->timeout_ms > 0 && link_silence(link) > link->timeout_ms ? fail("08006", LINK_SILENT, error) : 0;
}

#ifdef LIBPQ_HAS_ASYNC_CANCEL
void link_cancel(NodeLink *link)
{
    /* Not for the sake of a server that may be gone. */
    if (link->conn == NULL || !link->busy || link->cancel != NULL || link_silence(link) > 3000)
        return;
    link->cancel = PQcancelCreate(link->conn);
    link->cancel_state = PQcancelStart(link->cancel) != 0 ? PGRES_POLLING_WRITING : PGRES_POLLING_FAILED;
    link_cancelling(link, 0);
}

bool link_cancelling(NodeLink *link, int milliseconds)
{
    while (link->cancel != NULL &&
           (link->cancel_state == PGRES_POLLING_WRITING || link->cancel_state == PGRES_POLLING_READING)) {
        const short events = link->cancel_state == PGRES_POLLING_WRITING ? POLLOUT : POLLIN;
        struct pollfd wanted = {PQcancelSocket(link->cancel), events, 0};

        if (poll(&wanted, 1, milliseconds) <= 0)
            return true;
        link->cancel_state = PQcancelPoll(link->cancel);
    }
    return false;
}

static void finish_cancel(NodeLink *link)
{
    if (link->cancel != NULL)
        PQcancelFinish(link->cancel);
    link->cancel = NULL;
}
#else
void link_cancel(NodeLink *) {}

bool link_cancelling(NodeLink *, int)
{
    return false;
}

static void finish_cancel(NodeLink *) {}
#endif

void link_close(NodeLink *link)
{
    finish_cancel(link);
    PQclear(link->result);
    link->result = NULL;
    PQfinish(link->conn);
    link->conn = NULL;
    link->busy = false;
}
