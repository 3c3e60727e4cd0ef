/*
 * centroids.cpp - kmeans_centroids(model): a model's clusters as a relation.
 */
#include "pg/compat.h"

#include "pg/kmeans/model.h"

extern "C" {
#include "nodes/execnodes.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_centroids);
}

/*
 * kmeans_centroids(model kmeans_model)
 *     -> (cluster_id integer, centroid double precision[], size bigint, within_ss double precision)
 *
 * Centroids in the units of the data: the standardization is undone. 22023 for a model whose
 * fields do not fit together, 22003 for centroids beyond the range of double precision.
 */
Datum pgkm_kmeans_centroids(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = (ReturnSetInfo *) fcinfo->resultinfo;
    PgkmModel            model;

    InitMaterializedSRF(fcinfo, 0);
    pgkm_model_read(PG_GETARG_DATUM(0), CurrentMemoryContext, &model);
    pgkm_put_centroids(result->setResult, result->setDesc, &model);
    return (Datum) 0;
}
