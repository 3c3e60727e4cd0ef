/*
 * updated_model.h - what kmeans_update and gmm_update have in common: arguments (model, features [, weight [, decay]]),
 * of which model and decay are the same in all rows of a group.
 */
#ifndef PGKM_PG_AGGREGATE_UPDATED_MODEL_H
#define PGKM_PG_AGGREGATE_UPDATED_MODEL_H

#include "pg/compat.h"

extern "C" {
#include "fmgr.h"
}

enum UpdateArgument { ARGUMENT_STATE, ARGUMENT_MODEL, ARGUMENT_FEATURES, ARGUMENT_WEIGHT, ARGUMENT_DECAY };

/* The head of a state. It lives in the aggregate's memory context, like everything it points to. */
struct UpdatedModel {
    bool constant;       /* the query cannot change the model from row to row */
    struct varlena *raw; /* the model as the first row brought it, and the same in plain form */
    struct varlena *flat;
    double decay; /* of the masses that the model has */
    int64 n;      /* rows that came */
};

/* What differs. */
struct UpdateKind {
    /* A state in the context, CurrentMemoryContext too, of the model in plain form and the decay. */
    UpdatedModel *(*begin)(struct varlena *flat, double decay);
    /* Adds the row in the call's features by its weight, above 0. False for a row to skip. */
    bool (*add)(FunctionCallInfo fcinfo, UpdatedModel *state, double weight);
};

/* The transition function: the model is kept of the first row that has one, other rows are added. */
Datum updated_model_accumulate(FunctionCallInfo fcinfo, const UpdateKind *kind);

/* 22003 */
[[noreturn]] void updated_model_raise_too_far(void);

#endif
