/*
 * model_fields.h - the fields of the composite type kmeans_model, in order.
 */
#ifndef PGKM_PG_MODEL_FIELDS_H
#define PGKM_PG_MODEL_FIELDS_H

#include "pg/values/composite.h"

enum ModelField {
    MODEL_K,
    MODEL_D,
    MODEL_CENTROIDS,
    MODEL_SIZE,
    MODEL_WITHIN_SS,
    MODEL_INERTIA,
    MODEL_N_ITER,
    MODEL_CONVERGED,
    MODEL_N,
    MODEL_METRIC,
    MODEL_SEED,
    MODEL_CENTER,
    MODEL_SCALE,
    MODEL_COUNT
};

/* The type itself, as the extension made it. */
extern const PgkmCompositeType pgkm_model_type;

#endif
