/*
 * update.cpp - the aggregate kmeans_update(model, features [, weight [, decay]]): adds rows to a model.
 *
 * Each row goes to the nearest centroid of the model as it was. At the end each centroid becomes the mean of all that
 * it stands for: the rows that it had, by its mass times the decay, and those that came, by their weights (Sculley
 * 2010, one batch). Sums are exact, and are rounded when the model is made. So the order of rows does not count, and
 * rows and model may be of any magnitude.
 */
#include "pg/compat.h"

#include <cmath>

#include "pg/aggregate/aggregate.h"
#include "pg/aggregate/exact_sums.h"
#include "pg/aggregate/updated_model.h"
#include "pg/kmeans/model.h"
#include "pg/values/datum.h"

extern "C" {
#include "common/int.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_update_accum);
PG_FUNCTION_INFO_V1(pgkm_update_final);
}

/* Of the rows that came to a cluster. */
struct ClusterUpdate {
    int64 count;
    ExactSums mass;    /* one: of the weights */
    ExactSums rows;    /* d: times their weights */
    ExactSums squares; /* one: of all features, times the weights */
};

struct UpdateState : UpdatedModel {
    PgkmModel model;
    bool weighs;             /* masses of the new model may differ from its sizes */
    ClusterUpdate *clusters; /* k */
};

static UpdatedModel *begin_state(struct varlena *flat, double decay)
{
    UpdateState *const state = (UpdateState *)palloc0(sizeof(UpdateState));

    pgkm_model_read(PointerGetDatum(flat), NULL, &state->model);
    if (state->model.metric == PGKM_HAMMING)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("a model of metric hamming cannot be updated"),
                        errdetail("It does not know how many of its rows have each bit.")));
    state->weighs = state->model.masses != NULL || decay != 1;

    state->clusters =
        (ClusterUpdate *)MemoryContextAllocHuge(CurrentMemoryContext, (Size)state->model.k * sizeof(ClusterUpdate));
    for (int32 j = 0; j < state->model.k; ++j) {
        state->clusters[j].count = 0;
        exact_sums_init(&state->clusters[j].mass, CurrentMemoryContext, 1);
        exact_sums_init(&state->clusters[j].rows, CurrentMemoryContext, state->model.d);
        exact_sums_init(&state->clusters[j].squares, CurrentMemoryContext, 1);
    }
    return state;
}

static void add_row(UpdateState *state, const double *row, double weight)
{
    const PgkmModel *const model = &state->model;
    int32 label;
    double square;

    pgkm_nearest(row, model->centroids, model->k, model->d, &label, &square);
    if (!std::isfinite(square)) /* so all features are finite, too */
        updated_model_raise_too_far();

    ClusterUpdate *const cluster = &state->clusters[label];

    for (int32 f = 0; f < model->d; ++f) {
        exact_sums_add(&cluster->rows, f, weight, row[f]);
        exact_sums_add_triple(&cluster->squares, 0, weight, row[f], row[f]);
    }
    exact_sums_add(&cluster->mass, 0, weight, 1);
    state->weighs = state->weighs || weight != 1;
    ++cluster->count;
}

static bool add_call(FunctionCallInfo fcinfo, UpdatedModel *updated, double weight)
{
    UpdateState *const state = (UpdateState *)updated;
    double *const row = pgkm_model_row(fcinfo, ARGUMENT_FEATURES, &state->model);

    if (row == NULL)
        return false;
    add_row(state, row, weight);
    pfree(row);
    return true;
}

/*
 * pgkm_update_accum(state internal, model kmeans_model, features [, weight [, decay]]) -> internal
 *
 *   if model is NULL: return state
 *   if state is NULL: state := zero sums for the model's clusters
 *   unless model and decay are those of the state: ERROR 22023
 *   if weight is NULL or 0, or features is NULL or all NULLs: return state
 *   j := the nearest cluster of features, brought to the units of the model
 *   state.count[j] += 1;  state.mass[j] += weight
 *   state.rows[j] += weight features;  state.squares[j] += weight features . features
 *   return state
 */
Datum pgkm_update_accum(PG_FUNCTION_ARGS)
{
    static const UpdateKind kind = {begin_state, add_call};

    return updated_model_accumulate(fcinfo, &kind);
}

/* A cluster with its new rows, of mass N in all: its old centroid c stood for some, m came. */
struct Moved {
    double *mean;   /* d: of all rows */
    double squares; /* Q, of the distances of the new rows to c */
    double within;  /* W + Q - N |mean - c|^2, where W is the old sum of squares: the new one, not below 0 */
};

/* The sum, which is spoiled, divided by `all`, whose value is `mass` but for a rounding: that is made good by what is
 * left, so that a mean of equal rows is theirs. */
static double divide(ExactSums *sum, const ExactSums *all, double mass)
{
    const double quotient = exact_sums_quotient(sum, 0, mass);

    if (!std::isfinite(quotient))
        return quotient;
    exact_sums_add_multiple(sum, all, 0, -quotient);
    return quotient + exact_sums_quotient(sum, 0, mass);
}

/*
 * From the exact sums X of the new rows, P of their squares and m of their weights: S = X - m c, mean = (S + N c) / N,
 * Q = P - c . X - c . S. All of it is exact until a result is rounded, so nothing cancels.
 */
static Moved add_up(const ClusterUpdate *rows, int32 d, const ExactSums *all, double mass, const double *centroid,
                    const ExactSums *within_ss)
{
    Moved moved = {(double *)palloc(d * sizeof(double)), 0, 0};
    ExactSums sum, squares, within;

    exact_sums_init(&sum, CurrentMemoryContext, 1);
    exact_sums_init(&squares, CurrentMemoryContext, 1);
    exact_sums_init(&within, CurrentMemoryContext, 1);
    exact_sums_add_multiple(&squares, &rows->squares, 0, 1);
    for (int32 f = 0; f < d; ++f) {
        CHECK_FOR_INTERRUPTS();
        exact_sums_clear(&sum);
        exact_sums_add_multiple(&sum, &rows->rows, f, 1);
        exact_sums_add_multiple(&sum, &rows->mass, 0, -centroid[f]);
        exact_sums_add_multiple(&squares, &rows->rows, f, -centroid[f]);
        exact_sums_add_multiple(&squares, &sum, 0, -centroid[f]);
        exact_sums_add_product(&within, &sum, &sum, -1);
        exact_sums_add_multiple(&sum, all, 0, centroid[f]);
        moved.mean[f] = divide(&sum, all, mass);
    }
    moved.squares = exact_sums_quotient(&squares, 0, 1);
    exact_sums_add_multiple(&squares, within_ss, 0, 1);
    exact_sums_add_product(&within, all, &squares, 1);
    moved.within = divide(&within, all, mass);
    return moved;
}

/* Brings a cluster, whose centroid and sum of squares these are, to its new mean. */
static void move_mean(const Moved *moved, int32 d, double, double, double *centroid, double *within_ss)
{
    memcpy(centroid, moved->mean, d * sizeof(double));
    *within_ss = moved->within;
}

/*
 * The direction of the sum of all rows, which are unit vectors. Those that a cluster had sum up to c (M - W / 2) for a
 * mass M. So the sum of all is N c + V, V = S - (W / 2) c; its length is L. The sum of squares about its direction is 2
 * (N - L), here 2 (N^2 - L^2) / (N + L), of which no digits cancel: N^2 - L^2 = N (W + Q) - |V|^2 as c . S = -Q / 2,
 * and |V|^2 = |S|^2 + W (Q / 2 + W / 4).
 */
static void move_direction(const Moved *moved, int32 d, double all, double had, double *centroid, double *within_ss)
{
    double *const sum = moved->mean;
    double length = 0;

    for (int32 f = 0; f < d; ++f) {
        sum[f] = all * sum[f] - had / 2 * centroid[f];
        length += sum[f] * sum[f];
    }
    length = std::sqrt(length);
    for (int32 f = 0; f < d && length > 0; ++f) /* opposite rows have no direction: the old one stays */
        centroid[f] = sum[f] / length;

    const double excess = moved->within - had * (moved->squares / 2 + had / 4) / all;

    *within_ss = Max(2 * excess * all / (all + length), 0.0);
}

/* Decays what the cluster had, and adds its new rows. */
static void update_cluster(const UpdateState *state, int32 j, double *centroid, double *mass, double *within_ss)
{
    const ClusterUpdate *const rows = &state->clusters[j];
    const PgkmModel *const model = &state->model;
    const auto move = model->metric == PGKM_COSINE ? move_direction : move_mean;
    ExactSums all, within;

    /* of unit vectors, each within a distance of 2 of their direction */
    if (model->metric == PGKM_COSINE && rows->count > 0 && *within_ss > 2 * *mass * (1 + 1e-9))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("a model of metric cosine that was fitted with weights cannot be updated")));
    exact_sums_init(&all, CurrentMemoryContext, 1);
    exact_sums_init(&within, CurrentMemoryContext, 1);
    exact_sums_add(&all, 0, state->decay, *mass);
    exact_sums_add_multiple(&all, &rows->mass, 0, 1);
    exact_sums_add(&within, 0, state->decay, *within_ss);
    *mass = exact_sums_quotient(&all, 0, 1);
    *within_ss = exact_sums_quotient(&within, 0, 1);
    if (rows->count > 0) {
        const Moved moved = add_up(rows, model->d, &all, *mass, centroid, &within);

        move(&moved, model->d, *mass, *within_ss, centroid, within_ss);
        pfree(moved.mean);
    }
    if (!std::isfinite(*within_ss) || !std::isfinite(*mass))
        updated_model_raise_too_far();
}

/*
 * pgkm_update_final(state internal) -> kmeans_model: the state's model with its rows; the state stays as it is.
 */
Datum pgkm_update_final(PG_FUNCTION_ARGS)
{
    pgkm_aggregate_context(fcinfo);
    if (PG_ARGISNULL(ARGUMENT_STATE))
        PG_RETURN_NULL();

    const UpdateState *const state = (const UpdateState *)PG_GETARG_POINTER(ARGUMENT_STATE);
    const Size values = (Size)state->model.k * state->model.d;
    PgkmModel updated = state->model;
    double *const centroids = (double *)palloc_extended(values * sizeof(double), MCXT_ALLOC_HUGE);
    double *const within_ss = (double *)palloc(updated.k * sizeof(double));
    double *const masses = (double *)palloc(updated.k * sizeof(double));
    int64 *const sizes = (int64 *)palloc(updated.k * sizeof(int64));

    memcpy(centroids, state->model.centroids, values * sizeof(double));
    memcpy(within_ss, state->model.within_ss, updated.k * sizeof(double));
    memcpy(sizes, state->model.sizes, updated.k * sizeof(int64));
    for (int32 j = 0; j < updated.k; ++j) {
        const int64 count = state->clusters[j].count;

        masses[j] = pgkm_model_mass(&state->model, j);
        if (count > 0 && pg_add_s64_overflow(Max(sizes[j], (int64)0), count, &sizes[j]))
            ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
        update_cluster(state, j, centroids + (Size)j * updated.d, &masses[j], &within_ss[j]);
    }
    updated.centroids = centroids;
    updated.within_ss = within_ss;
    updated.sizes = sizes;
    updated.masses = state->weighs ? masses : NULL;
    PG_RETURN_DATUM(pgkm_model_with(PointerGetDatum(state->flat), &updated, state->n));
}
