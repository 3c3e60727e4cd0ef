/*
 * options.cpp - the table of pca_options, and pca_fit.
 */
#include "pg/pca/pca.h"

extern "C" {
#include "catalog/pg_type.h"

PG_FUNCTION_INFO_V1(pgkm_pca_options);
PG_FUNCTION_INFO_V1(pgkm_pca_table_fit);
}

static const PgkmField fields[] = {
    {"n_components", FLOAT8OID, PGKM_TAKES_SHARE, offsetof(PgkmPcaOptions, n_components)},
    {"whiten", BOOLOID, PGKM_TAKES_SWITCH, offsetof(PgkmPcaOptions, whiten)},
    {"standardize", BOOLOID, PGKM_TAKES_SWITCH, offsetof(PgkmPcaOptions, standardize)}};

static const PgkmOptionsType type = {{"pca_options", fields, lengthof(fields)},
                                     [](void *options) { memset(options, 0, sizeof(PgkmPcaOptions)); }};

const FitKind pca_kind = {PGKM_PCA, "pca", &type, false, pgkm_pca_model_tupdesc, NULL, pgkm_pca_model_of_fit,
                          NULL,     NULL};

/* pca_options(n_components, whiten, standardize) -> pca_options */
Datum pgkm_pca_options(PG_FUNCTION_ARGS)
{
    return pgkm_options_make(fcinfo, &type);
}

Datum pgkm_pca_table_fit(PG_FUNCTION_ARGS)
{
    return fit_table(&pca_kind, fcinfo, "pca_fit");
}
