/*
 * options.cpp - options of libpq, and the rules of postgres_fdw for those of a foreign server and of a user mapping.
 */
#include "pg/nodes/options.h"

#include "pg/nodes/shards.h"

extern "C" {
#include "commands/defrem.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

bool node_is_postgres(Oid server)
{
    const ForeignDataWrapper *const wrapper = GetForeignDataWrapper(GetForeignServer(server)->fdwid);
    const char *const handler = OidIsValid(wrapper->fdwhandler) ? get_func_name(wrapper->fdwhandler) : NULL;

    return handler != NULL && strcmp(handler, "postgres_fdw_handler") == 0;
}

const char *node_option(List *options, const char *name)
{
    foreach_ptr (DefElem, option, options)
        if (strcmp(option->defname, name) == 0)
            return defGetString(option);
    return NULL;
}

/* The mapping of a user who has to give a password; NULL: none has. Only a superuser can set the option that waives it.
 */
static const UserMapping *needs_password(const NodeServer *server)
{
    const UserMapping *const user = OidIsValid(server->server) ? GetUserMapping(GetUserId(), server->server) : NULL;
    bool value = true;

    if (user == NULL || superuser_arg(user->userid))
        return NULL;

    const char *const required = node_option(user->options, "password_required");

    return required == NULL || !parse_bool(required, &value) || value ? user : NULL;
}

bool node_lacks_password(const NodeServer *server)
{
    const UserMapping *const user = needs_password(server);
    const char *const password = user == NULL ? NULL : node_option(user->options, "password");

    return user != NULL && (password == NULL || password[0] == '\0');
}

void node_check_password(const NodeServer *server)
{
    if (!PQconnectionUsedPassword(server->link.conn) && needs_password(server) != NULL)
        ereport(ERROR, (errcode(ERRCODE_S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED), errmsg("password is required"),
                        errdetail("Non-superuser cannot connect if the server does not request a password.")));
}

/* Whether it is an option of connections, and no other one of the foreign-data wrapper. */
static bool is_of_connection(const PQconninfoOption *known, const char *name)
{
    for (; known->keyword != NULL; ++known)
        if (strcmp(known->keyword, name) == 0)
            return strchr(known->dispchar, 'D') == NULL && strcmp(name, "client_encoding") != 0;
    return false;
}

/* Foreign servers by the rules of postgres_fdw, others as Citus connects to them. */
static List *options_of(const NodeServer *server)
{
    if (!OidIsValid(server->server))
        return shard_options(server);
    return list_concat_copy(GetForeignServer(server->server)->options,
                            GetUserMapping(GetUserId(), server->server)->options);
}

void node_connect_options(NodeServer *server)
{
    List *const options = options_of(server);
    PQconninfoOption *const known = PQconndefaults();
    int count = 0;

    if (known == NULL)
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
    server->keywords = (const char **)palloc0((list_length(options) + 3) * sizeof(char *));
    server->values = (const char **)palloc0((list_length(options) + 3) * sizeof(char *));
    server->keywords[count] = "fallback_application_name";
    server->values[count++] = "pg_kmeans";
    foreach_ptr (DefElem, option, options) {
        if (!is_of_connection(known, option->defname))
            continue;
        server->keywords[count] = option->defname;
        server->values[count++] = defGetString(option);
    }
    server->keywords[count] = "client_encoding";
    server->values[count] = GetDatabaseEncodingName();
    PQconninfoFree(known);
}
