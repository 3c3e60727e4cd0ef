/*
 * gmm.h - gmm_options and gmm_model.
 */
#ifndef PGKM_PG_GMM_H
#define PGKM_PG_GMM_H

#include "pg/model/origin.h"
#include "pg/model/row.h"

/* "full", "tied", "diag" and "spherical", of PgkmCovariance. */
extern const PgkmWords pgkm_covariances;

/* A model as the row functions need it. */
struct PgkmGmmModel {
    PgkmMixture mixture; /* log_weights, means, factors, log_determinants */
    int32 d;
    const double *weights;
    const double *covariances;
    double mass;          /* what its rows count for */
    const double *center; /* d, or NULL where (value - center) / scale is the value */
    const double *scale;  /* d, or NULL likewise */
    const double *fills;  /* d: what stands in the place of NULLs; NaN where a row is taken without them; or NULL */
    mutable ModelColumns columns;
};

/* Gaussian mixtures as the functions over tables and the aggregates have them. */
extern const FitKind gmm_kind;

/* Parts of it. */
TupleDesc pgkm_gmm_model_tupdesc(FunctionCallInfo fcinfo);
void pgkm_gmm_check_size(const PgkmRequest *request, int64 k, int64 n);
Datum pgkm_gmm_model_of_fit(const PgkmResult *result, const PgkmRequest *request, const TableCall *call,
                            TupleDesc tupdesc);

/* Unpacks and checks a gmm_model; 22023 when a covariance is singular. */
void pgkm_gmm_model_read(Datum composite, MemoryContext context, PgkmGmmModel *model);

/* A gmm_model as option init_model, a PgkmGivenModel, and where it comes from. */
void pgkm_gmm_model_give(Datum composite, MemoryContext context, void *model);
Origin pgkm_gmm_model_origin(Datum composite);

/* The composite with the weights, means, covariances and mass of `model`, and `rows` more rows; its other fields
 * stay. */
Datum pgkm_gmm_model_with(Datum composite, const PgkmGmmModel *model, int64 rows);

/* The features in argument `number` as a row in the model's units, rounded as the fit rounds rows of its type;
 * palloc'd, or NULL for a NULL row. */
double *pgkm_gmm_model_row(FunctionCallInfo fcinfo, int number, const PgkmGmmModel *model);

/* Whether NaN stands for some value of such a row. */
bool pgkm_lacks_values(const double *row, int32 d);

/* How a fit went. */
struct PgkmGmmTrace {
    int32 k;
    PgkmCovariance covariance_type;
    int32 n_iter;
    bool converged;
    const double *values; /* n_iter: the log-likelihood at each iteration */
};

/* Unpacks and checks what a gmm_model says about that. */
void pgkm_gmm_trace_read(Datum composite, MemoryContext context, PgkmGmmTrace *trace);

#endif
