/*
 * plan.h - our functions in the planner and the executor.
 *
 * - kmeans_labels in FROM. A function in FROM returns its rows through a tuple store. For millions of rows
 *   that costs more than finding their clusters. So the planner is offered a custom scan in its place.
 * - Whole rows under a model. Calls take their columns instead (row_call.cpp).
 * - Fits in subqueries. A nested loop may read a subquery again for each row of another table. So a custom
 *   scan has the server's Material keep its rows, and the fit runs once. By itself the Material keeps no rows where
 *   it expects to be read once, in a correlated subquery or beside a relation that is looked up by an index.
 */
#ifndef PGKM_PG_PLAN_PLAN_H
#define PGKM_PG_PLAN_PLAN_H

#include "pg/compat.h"

extern "C" {
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"
}

/* For _PG_init: they take part in planning from now on. labels_path_install brings the hook that
 * fit_once_keep needs. */
void fit_once_install(void);
void labels_path_install(void);

/* Puts the custom scan "KmeansFitOnce" on top of the plan of a subquery that fits: its child, a Material, keeps its
 * rows. */
void fit_once_keep(RelOptInfo *rel, const RangeTblEntry *rte);

/*
 * The custom scan "KmeansLabels": kmeans_labels, row by row. It runs the fit when the first row is asked for,
 * and returns rows straight from the arrays of the fit. A rescan starts again from the same labels, unless a
 * parameter in the function's arguments has changed. Cursors may go backwards. custom_exprs holds the call, a
 * FuncExpr; custom_scan_tlist the columns of LabelColumn.
 */
extern const CustomScanMethods labels_scan_methods;

/* A call of a function of a model and a row, as kmeans_predict(m, t), with the row's columns in its place; NULL where
 * they are not known, or too many. */
Node *pgkm_plan_row_call(SupportRequestSimplify *request);

/* Whether `function` is written in C with one of these symbols. */
bool pgkm_plan_source_among(Oid function, const char *const *symbols, int count);

/* Whether `function` is ours, by the name and the address of its symbol, and is called directly. One that is
 * SECURITY DEFINER, has settings of its own or is watched by a plugin is called through another function.
 * Cheap for other functions: hooks see those of all queries. */
bool pgkm_plan_is(Oid function, const char *symbol, PGFunction address);

#endif
