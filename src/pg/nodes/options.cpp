/*
 * options.cpp - options of libpq, and the rules of postgres_fdw for those of a foreign server and of a user mapping.
 */
#include "pg/nodes/options.h"

#include "libpq-fe.h"

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
    ListCell *cell;

    foreach (cell, options) {
        DefElem *const option = (DefElem *)lfirst(cell);

        if (strcmp(option->defname, name) == 0)
            return defGetString(option);
    }
    return NULL;
}

/* Only a superuser can set the option that waives the password. */
static bool needs_password(UserMapping *user)
{
    const char *const required = node_option(user->options, "password_required");
    bool value = true;

    if (superuser_arg(user->userid))
        return false;
    return required == NULL || !parse_bool(required, &value) || value;
}

bool node_lacks_password(UserMapping *user)
{
    const char *const password = node_option(user->options, "password");

    return needs_password(user) && (password == NULL || password[0] == '\0');
}

void node_check_password(UserMapping *user, bool password_used)
{
    if (needs_password(user) && !password_used)
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

void node_connect_options(List *options, const char ***keywords, const char ***values)
{
    PQconninfoOption *const known = PQconndefaults();
    int count = 0;
    ListCell *cell;

    if (known == NULL)
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
    *keywords = (const char **)palloc0((list_length(options) + 3) * sizeof(char *));
    *values = (const char **)palloc0((list_length(options) + 3) * sizeof(char *));
    (*keywords)[count] = "fallback_application_name";
    (*values)[count++] = "pg_kmeans";
    foreach (cell, options) {
        DefElem *const option = (DefElem *)lfirst(cell);

        if (!is_of_connection(known, option->defname))
            continue;
        (*keywords)[count] = option->defname;
        (*values)[count++] = defGetString(option);
    }
    (*keywords)[count] = "client_encoding";
    (*values)[count] = GetDatabaseEncodingName();
    PQconninfoFree(known);
}
