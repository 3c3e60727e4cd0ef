/*
 * fit_scan.h - the executor's side of fits in subqueries: a custom scan that keeps its child's rows.
 *
 * The server's Material is not enough. It keeps no rows where it expects to be read once: in a correlated
 * subquery, or beside a relation that is looked up by an index for each row.
 */
#ifndef PGKM_PG_PLAN_FIT_SCAN_H
#define PGKM_PG_PLAN_FIT_SCAN_H

extern "C" {
#include "postgres.h"
#include "nodes/extensible.h"
}

extern const CustomScanMethods fit_scan_methods;

#endif
