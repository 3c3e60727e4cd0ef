/*
 * fit_path.h - the planner's side of fits in subqueries: each fit runs once, however often the plan reads the
 * subquery.
 */
#ifndef PGKM_PG_PLAN_FIT_PATH_H
#define PGKM_PG_PLAN_FIT_PATH_H

extern "C" {
#include "postgres.h"
#include "nodes/pathnodes.h"
}

/* For _PG_init, with labels_path_install. */
void fit_path_install(void);

/* Puts a scan that keeps its rows (fit_scan.h) on top of the plan of a subquery that fits. */
void fit_path_keep(RelOptInfo *rel, const RangeTblEntry *rte);

#endif
