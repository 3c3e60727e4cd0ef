/*
 * group_name.h - the group whose result an aggregate is asked for, for errors.
 */
#ifndef PGKM_PG_AGGREGATE_GROUP_NAME_H
#define PGKM_PG_AGGREGATE_GROUP_NAME_H

extern "C" {
#include "postgres.h"
#include "fmgr.h"
}

/* The values of its GROUP BY columns, like "region = north, year = 2024", in the final function called with `fcinfo`.
 * NULL where there are none. */
char *pgkm_group_name(FunctionCallInfo fcinfo);

#endif
