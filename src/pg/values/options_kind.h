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
    /* Bytes of the arrays that the options have, by their shapes alone; SIZE_MAX when those cannot be. */
    Size (*arrays_size)(const PgkmAnyOptions *options);
    void (*write_arrays)(const PgkmAnyOptions *options, char *to);
    /* Makes the options point to arrays as written; to nothing where that is NULL. */
    void (*attach_arrays)(PgkmAnyOptions *options, const char *arrays);
    /* Whether `read` could have made them. For options that came as bytes, their arrays attached. */
    bool (*are_valid)(const PgkmAnyOptions *options);
};

/* Bytes of a float8 array of this shape; SIZE_MAX when an extent is below 1, or that is too much. */
Size pgkm_array_size(const int32 *extents, int count);

/* Whether all values are finite and of magnitude at most PGKM_MAX_MAGNITUDE. */
bool pgkm_all_usable(const double *values, Size count);

extern const PgkmOptionsKind pgkm_kmeans_options_kind;
extern const PgkmOptionsKind pgkm_mixture_options_kind;

#endif
