/*
 * pca.h - pca_options and pca_model.
 */
#ifndef PGKM_PG_PCA_H
#define PGKM_PG_PCA_H

#include "pg/model/origin.h"
#include "pg/model/row.h"

/* A model as the row functions need it. */
struct PgkmPcaModel {
    int32 n_components;
    int32 d;
    const double *mean;       /* d */
    const double *scale;      /* d, or NULL unless standardized */
    const double *components; /* n_components x d */
    const double *explained_variance;
    const double *deviation; /* n_components: what whitening divides by; all 1 without */
    const double *fills;     /* d: what stands in the place of NULLs; or NULL */
    mutable ModelColumns columns;
};

/* PCA as the functions over tables have it. */
extern const FitKind pca_kind;

/* Parts of it. */
TupleDesc pgkm_pca_model_tupdesc(FunctionCallInfo fcinfo);
Datum pgkm_pca_model_of_fit(const PgkmResult *result, const PgkmRequest *request, const TableCall *call,
                            TupleDesc tupdesc);

/* Unpacks and checks a pca_model: 22023 for one whose fields do not fit together. */
void pgkm_pca_model_read(Datum composite, MemoryContext context, PgkmPcaModel *model);

#endif
