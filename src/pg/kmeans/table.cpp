/*
 * table.cpp - kmeans_fit and kmeans_labels.
 */
#include "pg/fit/labels.h"
#include "pg/kmeans/model.h"

extern "C" {
PG_FUNCTION_INFO_V1(pgkm_kmeans_fit);
PG_FUNCTION_INFO_V1(pgkm_kmeans_labels);
}

Datum pgkm_kmeans_fit(PG_FUNCTION_ARGS)
{
    return fit_table(&kmeans_kind, fcinfo, "kmeans_fit");
}

Datum pgkm_kmeans_labels(PG_FUNCTION_ARGS)
{
    return fit_labels(&kmeans_kind, fcinfo, "kmeans_labels");
}
