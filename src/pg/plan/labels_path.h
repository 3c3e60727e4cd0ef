/*
 * labels_path.h - the planner's side of kmeans_labels in FROM.
 *
 * A function in FROM hands its rows over through a tuple store, which for millions of rows costs
 * more than finding their clusters. So the planner is offered a custom scan in the function's place.
 */
#ifndef PGKM_PG_LABELS_PATH_H
#define PGKM_PG_LABELS_PATH_H

/* From _PG_init: takes part in planning from now on. */
void labels_path_install(void);

#endif
