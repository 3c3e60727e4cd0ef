/*
 * pca.h - pca_options and pca_model, and running the analysis.
 */
#ifndef PGKM_PG_PCA_H
#define PGKM_PG_PCA_H

extern "C" {
#include "postgres.h"
#include "access/tupdesc.h"
#include "fmgr.h"
}

#include "pg/run/run_job.h"

/* The options from three fields in their order: n_components, whiten, standardize; NULL means the
 * default. 22023 naming the option and what it takes. */
void pgkm_pca_options_fields(const NullableDatum *fields, PgkmPcaOptions *options);

/* The same from a pca_options composite, or from SQL's NULL. */
void pgkm_pca_options_read(const NullableDatum *composite, PgkmPcaOptions *options);

/* A model as the row functions need it. */
struct PgkmPcaModel {
    int32         n_components;
    int32         d;
    const double *mean;       /* d */
    const double *scale;      /* d, or NULL unless standardized */
    const double *components; /* n_components x d */
    const double *explained_variance;
    const double *explained_variance_ratio;
    const double *singular_values;
    const double *deviation; /* n_components: what whitening divides by; all 1 without */
};

/* The row type of a function that returns pca_model, in CurrentMemoryContext. */
TupleDesc pgkm_pca_model_tupdesc(FunctionCallInfo fcinfo);

/* Unpacks and checks a pca_model into a PgkmPcaModel; a PgkmModelReader. */
void pgkm_pca_model_read(Datum composite, MemoryContext context, void *model);

/* The result of PCA as a pca_model datum in CurrentMemoryContext. */
Datum pgkm_pca_model_build(const PgkmResult *result, const PgkmPcaOptions *options, TupleDesc tupdesc);

#endif
