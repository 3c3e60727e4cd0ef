/*
 * model.h - kmeans_model, the composite type that a fit returns, and back.
 */
#ifndef PGKM_PG_MODEL_H
#define PGKM_PG_MODEL_H

#include "pg/model/origin.h"
#include "pg/model/row.h"
#include "pg/values/composite_read.h"

/* A model as the row functions need it; arrays lie in the context given to pgkm_model_read. */
struct PgkmModel {
    int32 k;
    int32 d;
    PgkmMetric metric;
    const double *centroids; /* k x d, in the space of the distance */
    const int64 *sizes;      /* k */
    const double *within_ss; /* k */
    const double *masses;    /* k: what rows count for, or NULL: as many as there are */
    const double *center;    /* d, or NULL where (value - center) / scale is the value */
    const double *scale;     /* d, or NULL likewise */
    const double *fills;     /* d: what stands in the place of NULLs; or NULL */
    mutable ModelColumns columns;
};

/* "l2" and "cosine", of PgkmMetric. */
extern const PgkmWords pgkm_metrics;

/* k-means as the functions over tables and the aggregates have it. */
extern const FitKind kmeans_kind;

/* Parts of it. */
TupleDesc pgkm_model_tupdesc(FunctionCallInfo fcinfo);
void pgkm_model_check_size(const PgkmRequest *request, int64 k, int64 n);
Datum pgkm_model_of_fit(const PgkmResult *result, const PgkmRequest *request, const TableCall *call, TupleDesc tupdesc);

/* The result as a kmeans_model datum in CurrentMemoryContext. `origin` is a kmeans_origin, or NULL. `fills` are d
 * values that stood in the place of NULLs, or NULL. `parents` are the last field of a kmeans_tree; a
 * kmeans_model has `mass` there, which is empty. */
Datum pgkm_model_build(const PgkmResult *result, const PgkmRequest *request, PgkmValue origin, const double *fills,
                       TupleDesc tupdesc, PgkmValue parents = PgkmValue());

/* Where it comes from, in the current memory context. 22023 where the origin does not fit the model. */
Origin pgkm_model_origin(Datum composite);

/* Centroid j in the units of the data. 22003 beyond the range of double precision. */
void pgkm_model_centroid(const PgkmModel *model, int32 j, double *centroid);

/* What the rows of cluster j count for. */
static inline double pgkm_model_mass(const PgkmModel *model, int32 j)
{
    return Max(model->masses != NULL ? model->masses[j] : (double)model->sizes[j], 0.0);
}

/* Unpacks and checks a kmeans_model, whose arrays are copied into the context; they stay in the composite where that is
 * NULL. Models can be made by hand: 22023 for one whose fields do not fit together. */
void pgkm_model_read(Datum composite, MemoryContext context, PgkmModel *model);

/* The same of another type that has the fields of clusters, which are in `from`, opened. */
void pgkm_model_read_clusters(const PgkmModelFields *from, PgkmModel *model);

/* The features in argument `number` as a row in the model's space, rounded as the fit rounds rows of its type;
 * palloc'd, or NULL for a NULL row. `behind` as of model_row. */
double *pgkm_model_row(FunctionCallInfo fcinfo, int number, const PgkmModel *model, int behind = 0);

/* A squared distance as users see it. 22003 beyond the range of double precision. */
double pgkm_model_distance(double square, PgkmMetric metric);

/* Brings a row there. 22023 where it has no direction for metric cosine; `number`, unless 0, says which row it is. */
void pgkm_model_place(const PgkmModel *model, PgkmElement element, double *row, int64 number = 0);

/* Whether all its fields are null, so that it is null to SQL. */
bool pgkm_model_is_null(Datum composite);

/* The composite with the clusters of `model`, which has as many, and `rows` more rows; its other fields stay. */
Datum pgkm_model_with(Datum composite, const PgkmModel *model, int64 rows);

#endif
