/*
 * loaded.h - rows that a session keeps: kmeans_load, kmeans_unload, kmeans_loaded.
 *
 * Loaded rows are a snapshot: what the SELECT of kmeans_load saw. A function reads them only when it is told
 * to (memory => 'loaded'), for the relation, the features and the weight under which they were loaded, and only
 * for the role that loaded them. Other roles that are members of that one may list and unload them, no more.
 * Rows on other servers stay there, as long as the connections stand.
 * Rows stay, with what a backend made of them, until kmeans_unload, the end of the session, or until other
 * rows of the session need their memory (PgkmReclaimHooks).
 */
#ifndef PGKM_PG_TABLE_LOADED_H
#define PGKM_PG_TABLE_LOADED_H

#include "pg/nodes/nodes.h"
#include "pg/table/call.h"

struct PgkmLoaded {
    MemoryContextCallback on_reset;
    MemoryContext context; /* holds all of it */
    Oid relation;
    Oid owner;          /* the role that loaded them */
    const char *name;   /* of the relation, then */
    Datum features;     /* names: text[] */
    const char *weight; /* or NULL, as filter */
    const char *filter;
    TableNulls nulls;
    TableRows *rows;     /* of this server */
    struct Nodes *nodes; /* the other servers that keep theirs; or NULL */
    int n_files;
    Oid *files; /* that the rows of each table (TableRows.ranges) lay in, where these have ctids */
    PgkmResident *resident;
    TimestampTz loaded_at;
    uint64 last_use; /* a count of uses, for the choice of what has to go */
    int users;       /* calls that read them at the moment */
    PgkmLoaded *next;
};

/* The rows that are loaded under the call's relation and columns. They count as in use until the call's
 * context goes. 55000 when there are none. */
PgkmLoaded *pgkm_loaded_use(const TableCall *call);

/* Locks the tables of the rows as a SELECT does. 55000 when one of them has another file than when the rows
 * were loaded: then their ctids mean nothing any more. */
void pgkm_loaded_check_places(const PgkmLoaded *loaded);

#endif
