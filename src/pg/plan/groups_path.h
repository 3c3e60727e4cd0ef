/*
 * groups_path.h - what the groups of kmeans and gmm cost, for the planner.
 *
 * The server charges a final function alike in every plan, and a state like one tuple. But the groups
 * of a hash aggregate are fitted together, by all threads (pg/aggregate/batch.h), when the first one is
 * asked for, and in a parallel plan the rows of all groups go from process to process. Unless the
 * planner knows, it takes a parallel plan with sorted groups for thousands of tenants.
 */
#ifndef PGKM_PG_PLAN_GROUPS_PATH_H
#define PGKM_PG_PLAN_GROUPS_PATH_H

/* For _PG_init: takes part in planning from now on. */
void groups_path_install(void);

#endif
