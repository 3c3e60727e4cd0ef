/*
 * pca.h - pca_options and pca_model.
 */
#ifndef PGKM_PG_PCA_H
#define PGKM_PG_PCA_H

#include "pg/run/run_job.h"
#include "pg/values/options.h"

/* Fields of pca_options. */
#define PGKM_PCA_OPTIONS 3

/* A model as the row functions need it. */
struct PgkmPcaModel {
    int32 n_components;
    int32 d;
    const double *mean;       /* d */
    const double *scale;      /* d, or NULL unless standardized */
    const double *components; /* n_components x d */
    const double *explained_variance;
    const double *explained_variance_ratio;
    const double *singular_values;
    const double *deviation; /* n_components: what whitening divides by; all 1 without */
    const double *fills;     /* d: what stands in the place of NULLs; or NULL */
};

/* The row type of a function that returns pca_model, in CurrentMemoryContext. */
TupleDesc pgkm_pca_model_tupdesc(FunctionCallInfo fcinfo);

/* Unpacks and checks a pca_model: 22023 for one whose fields do not fit together. */
void pgkm_pca_model_read(Datum composite, MemoryContext context, PgkmPcaModel *model);

/* The result of PCA as a pca_model datum in CurrentMemoryContext. `fills` are d values that stood in the place of
 * NULLs, or NULL. */
Datum pgkm_pca_model_build(const PgkmResult *result, const PgkmPcaOptions *options, const double *fills,
                           TupleDesc tupdesc);

#endif
