/*
 * gmm.h - gmm_options and gmm_model.
 */
#ifndef PGKM_PG_GMM_H
#define PGKM_PG_GMM_H

#include "pg/table/call.h"
#include "pg/values/options.h"

/* Fields of gmm_options. */
#define PGKM_GMM_OPTIONS 10

/* "full", "tied", "diag" and "spherical", of PgkmCovariance. */
extern const PgkmWords pgkm_covariances;

/* A model as the row functions need it. */
struct PgkmGmmModel {
    PgkmMixture mixture; /* log_weights, means, factors, log_determinants */
    int32 d;
    const double *weights;
    const double *covariances;
    const double *center; /* d, or NULL where (value - center) / scale is the value */
    const double *scale;  /* d, or NULL likewise */
    const double *fills;  /* d: what stands in the place of NULLs; or NULL */
};

/* A call of a table function with these arguments and their options. 22023 for a bad one, or for one of those that the
 * function, which is named then, cannot use. */
TableCall *pgkm_gmm_call_create(const TableArguments &arguments, const char *function = NULL,
                                std::initializer_list<const char *> unusable = {});

/* The row type of a function that returns gmm_model, in CurrentMemoryContext. */
TupleDesc pgkm_gmm_model_tupdesc(FunctionCallInfo fcinfo);

/* The fit's result as a gmm_model datum in CurrentMemoryContext. `fills` are d values that stood in the place of NULLs,
 * or NULL. */
Datum pgkm_gmm_model_build(const PgkmResult *result, const PgkmMixtureOptions *options, const double *fills,
                           TupleDesc tupdesc);

/* Unpacks and checks a gmm_model, without the factors, which take long where there are many features. */
void pgkm_gmm_fields_read(Datum composite, MemoryContext context, PgkmGmmModel *model);

/* The same with factors; 22023 when a covariance is singular. */
void pgkm_gmm_model_read(Datum composite, MemoryContext context, PgkmGmmModel *model);

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

/* 54000 when the model of the request's points would pass the maximum size of a value. */
void pgkm_mixture_check_size(const PgkmRequest *request);

#endif
