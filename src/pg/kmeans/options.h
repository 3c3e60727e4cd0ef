/*
 * options.h - the argument k, and the words of k-means' options.
 */
#ifndef PGKM_PG_KMEANS_OPTIONS_H
#define PGKM_PG_KMEANS_OPTIONS_H

#include "pg/values/options.h"

/* Fields of kmeans_options. */
#define PGKM_KMEANS_OPTIONS 14
/* Places among them. */
#define PGKM_OPTION_INIT 0
#define PGKM_OPTION_INIT_MODEL 12

/* Whether the field init leaves the way of seeding to the fit: k-means++, or for streamed rows k-means||. */
bool kmeans_init_is_free(const NullableDatum *init);

/* "l2" and "cosine", of PgkmMetric. */
extern const PgkmWords pgkm_metrics;

/* Argument `number` as k, or as the k of that name: 22023 when it is NULL, below 1 or above 2^31 - 1. */
int64 pgkm_k_argument(FunctionCallInfo fcinfo, int number, const char *name = "k");

/* Options as jsonb; `more` is NULL or further members of the object. */
Datum pgkm_kmeans_options_json(const PgkmOptions *options, const char *more);

/* The same check for a k that was read otherwise. */
int64 pgkm_check_k(const NullableDatum *k, const char *name = "k");

#endif
