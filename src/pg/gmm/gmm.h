/*
 * gmm.h - gmm_options and gmm_model, and running a fit of a Gaussian mixture.
 */
#ifndef PGKM_PG_GMM_H
#define PGKM_PG_GMM_H

extern "C" {
#include "postgres.h"
#include "access/tupdesc.h"
#include "fmgr.h"
#include "utils/tuplestore.h"
}

#include "pg/run/run_job.h"

/* Fields of gmm_options. */
#define GMM_OPTION_COUNT 9

/* The options from their fields in order, as gmm_options() takes them; NULL means the default.
 * Arrays go to `context`. 22023 naming the option and what it takes. */
void pgkm_gmm_options_fields(const NullableDatum *fields, MemoryContext context, PgkmMixtureOptions *options);

/* Looks up what pgkm_covariance_name() gives; false when there is none of that name. */
bool pgkm_covariance_from_name(const char *name, PgkmCovariance *type);

/* A model as the row functions need it. */
struct PgkmGmmModel {
    PgkmMixture   mixture; /* log_weights, means, factors, log_determinants */
    int32         d;
    const double *weights;
    const double *covariances;
};

/* The row type of a function that returns gmm_model, in CurrentMemoryContext. */
TupleDesc pgkm_gmm_model_tupdesc(FunctionCallInfo fcinfo);

/* The fit's result as a gmm_model datum in CurrentMemoryContext. */
Datum pgkm_gmm_model_build(const PgkmResult *result, const PgkmMixtureOptions *options, TupleDesc tupdesc);

/* Unpacks and checks a gmm_model, without the factors, which take long where there are many features. */
void pgkm_gmm_fields_read(Datum composite, MemoryContext context, PgkmGmmModel *model);

/* The same with factors; 22023 when a covariance is singular. A PgkmModelReader. */
void pgkm_gmm_model_read(Datum composite, MemoryContext context, void *model);

/* Adds the relation (component_id, weight, mean, covariance) to a tuplestore. */
void pgkm_put_components(Tuplestorestate *store, TupleDesc tupdesc, PgkmCovariance type, int32 k, int32 d,
                         const double *weights, const double *means, const double *covariances);

/* 54000 when the model of the request's points would pass the maximum size of a value. */
void pgkm_mixture_check_size(const PgkmRequest *request);

#endif
