/*
 * options.cpp - the table of pca_options.
 */
#include "pg/pca/pca.h"

extern "C" {
#include "catalog/pg_type.h"

PG_FUNCTION_INFO_V1(pgkm_pca_options);
}

static const PgkmField fields[PGKM_PCA_OPTIONS] = {
    {"n_components", FLOAT8OID, PGKM_TAKES_SHARE, offsetof(PgkmPcaOptions, n_components)},
    {"whiten", BOOLOID, PGKM_TAKES_SWITCH, offsetof(PgkmPcaOptions, whiten)},
    {"standardize", BOOLOID, PGKM_TAKES_SWITCH, offsetof(PgkmPcaOptions, standardize)}};

const PgkmOptionsType pgkm_pca_options_type = {{"pca_options", fields, lengthof(fields)},
                                               [](void *options) { memset(options, 0, sizeof(PgkmPcaOptions)); }};

/* pca_options(n_components, whiten, standardize) -> pca_options */
Datum pgkm_pca_options(PG_FUNCTION_ARGS)
{
    return pgkm_options_make(fcinfo, &pgkm_pca_options_type);
}
