/*
 * labels_scan.h - the custom scan "KmeansLabels": kmeans_labels in FROM, row by row.
 *
 * It runs the fit when the first row is asked for, and returns rows straight from the arrays of the fit. A
 * rescan starts again from the same labels, unless a parameter in the function's arguments has changed.
 * Cursors may go backwards.
 */
#ifndef PGKM_PG_PLAN_LABELS_SCAN_H
#define PGKM_PG_PLAN_LABELS_SCAN_H

#include "pg/compat.h"

extern "C" {
#include "nodes/extensible.h"
}

/* custom_exprs holds the call, a FuncExpr; custom_scan_tlist the columns of LabelColumn. */
extern const CustomScanMethods labels_scan_methods;

#endif
