/*
 * labels_path.h - the planner's side of kmeans_labels in FROM.
 *
 * A function in FROM returns its rows through a tuple store. For millions of rows that costs more than
 * finding their clusters. So the planner is offered a custom scan in place of the function.
 */
#ifndef PGKM_PG_PLAN_LABELS_PATH_H
#define PGKM_PG_PLAN_LABELS_PATH_H

/* For _PG_init: takes part in planning from now on. */
void labels_path_install(void);

#endif
