/*
 * function.h - our functions as the planner meets them.
 *
 * The library takes part in planning from the first query on that names one of them: the function's
 * support function brings it into the process.
 */
#ifndef PGKM_PG_PLAN_FUNCTION_H
#define PGKM_PG_PLAN_FUNCTION_H

#include "pg/compat.h"

/* Whether `function` is written in C with one of these symbols. */
bool pgkm_plan_source_among(Oid function, const char *const *symbols, int count);

/* Whether `function` is ours, by the name and the address of its symbol, called as it is: one that
 * became SECURITY DEFINER, has settings of its own or is watched by a plugin would be reached by way
 * of another. Asks little before it looks a function up: hooks see the functions of all queries. */
bool pgkm_plan_is(Oid function, const char *symbol, PGFunction address);

#endif
