/*
 * model_fields.h - the fields of the composite type kmeans_model, in order.
 */
#ifndef PGKM_PG_MODEL_FIELDS_H
#define PGKM_PG_MODEL_FIELDS_H

extern "C" {
#include "postgres.h"
#include "access/tupdesc.h"
}

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

/* 42804 unless the row type is that of kmeans_model as the extension made it: its owner can
 * alter it, and reading a changed one as this one would crash. */
void pgkm_check_model_type(TupleDesc tupdesc);

#endif
