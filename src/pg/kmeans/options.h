/*
 * options.h - kmeans_options and the argument k.
 */
#ifndef PGKM_PG_OPTIONS_H
#define PGKM_PG_OPTIONS_H

extern "C" {
#include "postgres.h"
#include "fmgr.h"
}

#include "engine/api.h"

/*
 * Reads a kmeans_options composite into `options`; a NULL field means its default. The
 * init_centroids are copied into `context`. Values are checked here as in kmeans_options(),
 * because ROW(...)::kmeans_options does not pass through it: 22023 naming the option and
 * what it takes. The shape of init_centroids is checked against k and d by the fit.
 */
void pgkm_options_read(Datum composite, MemoryContext context, PgkmOptions *options);

/* The same from the eight fields in their order; also for functions that take them as
 * arguments of their own. */
void pgkm_options_fields(const NullableDatum *fields, MemoryContext context, PgkmOptions *options);

/* Argument `number` as options: the defaults when it is NULL or the call has no such argument. */
void pgkm_options_argument(FunctionCallInfo fcinfo, int number, MemoryContext context, PgkmOptions *options);

/* Argument `number` as k, or as the k of that name: 22023 when it is NULL, below 1 or above 2^31 - 1. */
int64 pgkm_k_argument(FunctionCallInfo fcinfo, int number, const char *name = "k");

/* The same check for a k that was read otherwise. */
int64 pgkm_check_k(bool isnull, int64 k, const char *name = "k");

/* 22023: the option must be what it takes; the hint says what the values mean. */
[[noreturn]] void pgkm_raise_option(const char *name, const char *takes, const char *hint = NULL);

/* "l2" or "cosine". */
const char *pgkm_metric_name(PgkmMetric metric);

/* Looks a metric's name up; false when there is none of that name. */
bool pgkm_metric_from_name(const char *name, PgkmMetric *metric);

#endif
