/*
 * options_kind.h - the options of one algorithm, for what all algorithms share: rows bring
 * them along, groups compare them, processes hand them over.
 */
#ifndef PGKM_PG_OPTIONS_KIND_H
#define PGKM_PG_OPTIONS_KIND_H

extern "C" {
#include "postgres.h"
}

#include "engine/api.h"

/* The options of any algorithm that collects rows; plain data but for pointers to arrays. */
union PgkmAnyOptions {
    PgkmOptions        kmeans;
    PgkmMixtureOptions mixture;
};

struct PgkmOptionsKind {
    void (*set_default)(PgkmAnyOptions *options);
    /* From a composite; arrays go to `context`. */
    void (*read)(Datum composite, MemoryContext context, PgkmAnyOptions *options);
    bool (*same)(const PgkmAnyOptions *a, const PgkmAnyOptions *b);
    /* Bytes of the arrays that the options point to; writes them to `to` unless it is NULL. */
    Size (*write_arrays)(const PgkmAnyOptions *options, char *to);
    /* Makes the options point to arrays as written. */
    void (*attach_arrays)(PgkmAnyOptions *options, const char *arrays);
};

extern const PgkmOptionsKind pgkm_kmeans_options_kind;
extern const PgkmOptionsKind pgkm_mixture_options_kind;

#endif
