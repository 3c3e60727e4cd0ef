/*
 * definition.h - reductions that are kept under a name: the table reduction_definitions.
 *
 * All may see what is in it. `runners` say who may run one, a trigger of the table says who may add and drop it.
 * Functions read and write it with the caller's rights.
 */
#ifndef PGKM_PG_REDUCE_DEFINITION_H
#define PGKM_PG_REDUCE_DEFINITION_H

#include "pg/reduce/object.h"

/* The objects of that name, in the current memory context, and whether sums are exact. 42704 when there is none that
 * the caller may run. */
ReduceObjects *reduction_find(FunctionCallInfo fcinfo, text *name, bool *exact);

#endif
