/*
 * model.h - kmeans_model, the composite type that a fit returns, and back.
 */
#ifndef PGKM_PG_MODEL_H
#define PGKM_PG_MODEL_H

#include <cmath>

#include "pg/values/composite.h"

#include "engine/api.h"

/* A model as the row functions need it; arrays lie in the context given to pgkm_model_read. */
struct PgkmModel {
    int32 k;
    int32 d;
    PgkmMetric metric;
    const double *centroids; /* k x d, in the space of the distance */
    const int64 *sizes;      /* k */
    const double *within_ss; /* k */
    const double *center;    /* d, or NULL where (value - center) / scale is the value */
    const double *scale;     /* d, or NULL likewise */
    const double *fills;     /* d: what stands in the place of NULLs; or NULL */
};

/* Where a model comes from, as far as it is known; what else its field origin holds is the result's. */
struct PgkmOrigin {
    PgkmValue features; /* text[] */
    PgkmValue relation;
    PgkmValue options; /* jsonb */
    PgkmValue fitted_at;
};

/* The row type of a function that returns kmeans_model, in CurrentMemoryContext. */
TupleDesc pgkm_model_tupdesc(FunctionCallInfo fcinfo);

/* 54000 when a model of k clusters (as asked; fewer when there are only n rows) would pass
 * the maximum size of a value. Call it before the fit, not after. */
void pgkm_model_check_size(int64 k, int64 n, int32 d);

/* The fit's result as a kmeans_model datum in CurrentMemoryContext. Without an origin that field is NULL. `fills` are d
 * values that stood in the place of NULLs, or NULL. */
Datum pgkm_model_build(const PgkmResult *result, const PgkmOptions *options, const PgkmOrigin *origin,
                       const double *fills, TupleDesc tupdesc);

/* The names of the columns that it is a model of, as text[]; 0 where its origin has none, as of an aggregate. 22023
 * where the origin has no list of names. */
Datum pgkm_model_features(Datum composite);

/* Centroid j in the units of the data. 22003 beyond the range of double precision. */
void pgkm_model_centroid(const PgkmModel *model, int32 j, double *centroid);

/* A squared distance as users see it: Euclidean, or 1 - cosine (half the squared distance of unit vectors). */
static inline double pgkm_model_distance(double square, PgkmMetric metric)
{
    return metric == PGKM_COSINE ? square / 2 : std::sqrt(square);
}

/* Unpacks and checks a kmeans_model. Models can be made by hand: 22023 for one whose fields
 * do not fit together. */
void pgkm_model_read(Datum composite, MemoryContext context, PgkmModel *model);

/* Whether all its fields are null, so that it is null to SQL. */
bool pgkm_model_is_null(Datum composite);

/* Whether its origin says that it was standardized, as one with means 0 and deviations 1 does not show otherwise. */
bool pgkm_model_was_standardized(Datum composite);

/* The composite with the clusters of `model`, which has as many, and `rows` more rows; its other fields stay. */
Datum pgkm_model_with(Datum composite, const PgkmModel *model, int64 rows);

#endif
