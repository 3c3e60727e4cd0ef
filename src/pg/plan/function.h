/*
 * function.h - recognises our functions in a query.
 *
 * The library takes part in planning from the first query that names one of them: the function's support
 * function loads it into the process.
 */
#ifndef PGKM_PG_PLAN_FUNCTION_H
#define PGKM_PG_PLAN_FUNCTION_H

#include "pg/compat.h"

/* Whether `function` is written in C with one of these symbols. */
bool pgkm_plan_source_among(Oid function, const char *const *symbols, int count);

/* Whether `function` is ours, by the name and the address of its symbol, and is called directly. One that is
 * SECURITY DEFINER, has settings of its own or is watched by a plugin is called through another function.
 * Cheap for other functions: hooks see those of all queries. */
bool pgkm_plan_is(Oid function, const char *symbol, PGFunction address);

#endif
