/*
 * update.cpp - the aggregate kmeans_update(model, features): adds rows to a model.
 *
 * Each row goes to the nearest centroid of the model as it was. At the end each centroid becomes the mean of all that
 * it stands for: the rows that it had (its size) and those that came (Sculley 2010, one batch). Sums are integers, of
 * quanta that the model decides, so that the order of rows does not count.
 */
#include "pg/compat.h"

#include <cmath>

#include "pg/aggregate/aggregate.h"
#include "pg/aggregate/flat_state.h"
#include "pg/kmeans/model.h"
#include "pg/values/datum.h"

extern "C" {
#include "common/int.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_update_accum);
PG_FUNCTION_INFO_V1(pgkm_update_final);
}

enum UpdateArgument { ARGUMENT_STATE, ARGUMENT_MODEL, ARGUMENT_FEATURES };

/* A quantum is so many bits below the extent of the model; so many are left for the number of rows, and for rows that
 * lie farther out. */
#define BITS_BELOW 62
/* Of squares where the model has no extent, below the square of its magnitude. */
#define BITS_BELOW_SQUARE 104

/* Lives in the aggregate's memory context, like everything it points to. */
struct UpdateState {
    PgkmModel model;
    bool constant;       /* the query cannot change the model from row to row */
    struct varlena *raw; /* the model as the first row brought it, and the same in plain form */
    struct varlena *flat;
    int64 n;
    int *exponents;      /* d: a quantum of a feature is 2^exponent */
    int square_exponent; /* likewise of squared distances */
    int64 *counts;       /* k */
    int128 *sums;        /* k x d */
    int128 *squares;     /* k: distances to the centroids, squared */
};

/* The exponent of the power of two above a value; `otherwise` for 0. */
static int exponent_above(double value, int otherwise)
{
    return value > 0 ? std::ilogb(value) + 1 : otherwise;
}

/* Quanta follow from the extent of the centroids and of the clusters around them. */
static void set_quanta(UpdateState *state)
{
    const PgkmModel *const model = &state->model;
    double spread = 0;
    double extent = 0;
    double magnitude = 0;

    for (int32 j = 0; j < model->k; ++j)
        if (model->sizes[j] > 0)
            spread = Max(spread, model->within_ss[j] / (double)model->sizes[j]);
    for (int32 f = 0; f < model->d; ++f) {
        double least = model->centroids[f];
        double most = least;

        for (int32 j = 1; j < model->k; ++j) {
            least = Min(least, model->centroids[(Size)j * model->d + f]);
            most = Max(most, model->centroids[(Size)j * model->d + f]);
        }

        const double largest = Max(std::fabs(least), std::fabs(most)) + std::sqrt(spread);

        state->exponents[f] = exponent_above(largest, 0) - BITS_BELOW;
        extent += (most - least) * (most - least);
        magnitude += largest * largest;
    }
    if (extent + spread > 0 && std::isfinite(extent + spread))
        state->square_exponent = exponent_above(extent + spread, 0) - BITS_BELOW;
    else
        state->square_exponent = exponent_above(magnitude, BITS_BELOW_SQUARE) - BITS_BELOW_SQUARE;
}

static Size size_as_it_came(const struct varlena *value)
{
    return VARSIZE_ANY(value);
}

static UpdateState *begin_state(FunctionCallInfo fcinfo)
{
    const MemoryContext context = pgkm_aggregate_context(fcinfo);
    const MemoryContext caller = MemoryContextSwitchTo(context);
    UpdateState *const state = (UpdateState *)palloc0(sizeof(UpdateState));
    struct varlena *const value = (struct varlena *)DatumGetPointer(PG_GETARG_DATUM(ARGUMENT_MODEL));

    state->flat = pg_detoast_datum_copy(value);
    state->constant = pgkm_is_constant_in_group(fcinfo, ARGUMENT_MODEL);
    state->raw = (struct varlena *)palloc(size_as_it_came(value));
    memcpy(state->raw, value, size_as_it_came(value));
    pgkm_model_read(PointerGetDatum(state->flat), context, &state->model);

    const Size k = state->model.k;
    const Size d = state->model.d;

    state->exponents = (int *)palloc(d * sizeof(int));
    state->counts = (int64 *)palloc0(k * sizeof(int64));
    state->sums = (int128 *)MemoryContextAllocHuge(context, k * d * sizeof(int128));
    memset(state->sums, 0, k * d * sizeof(int128));
    state->squares = (int128 *)palloc0(k * sizeof(int128));
    set_quanta(state);
    MemoryContextSwitchTo(caller);
    return state;
}

/* All that an update reads of a model; its other fields may differ, as the origin may. */
static bool same_clusters(const PgkmModel *a, const PgkmModel *b)
{
    const auto same = [](const void *x, const void *y, Size bytes) {
        return x == NULL || y == NULL ? x == y : memcmp(x, y, bytes) == 0;
    };
    const Size k = a->k;
    const Size d = a->d;

    return a->k == b->k && a->d == b->d && a->metric == b->metric &&
           same(a->centroids, b->centroids, k * d * sizeof(double)) && same(a->sizes, b->sizes, k * sizeof(int64)) &&
           same(a->within_ss, b->within_ss, k * sizeof(double)) && same(a->center, b->center, d * sizeof(double)) &&
           same(a->scale, b->scale, d * sizeof(double)) && same(a->fills, b->fills, d * sizeof(double));
}

/* Equal bytes nearly always. What lies in memory (PL/pgSQL's rows) can change behind an equal pointer. */
static void check_same_model(const UpdateState *state, Datum model)
{
    struct varlena *const value = (struct varlena *)DatumGetPointer(model);
    const bool in_memory = VARATT_IS_EXTERNAL(value) && !VARATT_IS_EXTERNAL_ONDISK(value);

    if (!in_memory && size_as_it_came(value) == size_as_it_came(state->raw) &&
        memcmp(value, state->raw, size_as_it_came(value)) == 0)
        return;

    const struct varlena *const flat = pg_detoast_datum(value);

    if (VARSIZE(flat) == VARSIZE(state->flat) && memcmp(flat, state->flat, VARSIZE(flat)) == 0)
        return;

    PgkmModel other;

    pgkm_model_read(PointerGetDatum(flat), CurrentMemoryContext, &other);
    if (!same_clusters(&state->model, &other))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("model must be the same for all rows of a group")));
}

/* Adds a value in quanta. */
static void add_quanta(int128 *sum, double value, int exponent)
{
    const double quanta = std::rint(std::ldexp(value, -exponent));

    if (!(std::fabs(quanta) < 0x1p126) || __builtin_add_overflow(*sum, (int128)quanta, sum))
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("features are out of range: they lie too far from the model")));
}

static void add_row(UpdateState *state, double *row)
{
    const PgkmModel *const model = &state->model;
    int32 label;
    double square;

    pgkm_nearest(row, model->centroids, model->k, model->d, &label, &square);

    int128 *const sums = state->sums + (Size)label * model->d;

    for (int32 f = 0; f < model->d; ++f)
        add_quanta(&sums[f], row[f], state->exponents[f]);
    add_quanta(&state->squares[label], square, state->square_exponent);
    ++state->counts[label];
    ++state->n;
}

/* A group without rows has the model that it came with. */
static UpdateState *accumulate(FunctionCallInfo fcinfo, UpdateState *state)
{
    PgkmElement element;

    if (PG_ARGISNULL(ARGUMENT_MODEL))
        return state;
    if (state == NULL)
        state = begin_state(fcinfo);
    else if (!state->constant)
        check_same_model(state, PG_GETARG_DATUM(ARGUMENT_MODEL));

    const PgkmModel *const model = &state->model;
    double *const row = pgkm_read_row(&fcinfo->args[ARGUMENT_FEATURES], model->d, "feature", &element, model->fills);

    if (row == NULL)
        return state;
    if (!pgkm_transform_row(row, model->d, model->center, model->scale, model->metric, element))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("features are a zero vector, which has no direction for metric cosine")));
    add_row(state, row);
    pfree(row);
    return state;
}

/*
 * pgkm_update_accum(state internal, model kmeans_model, features) -> internal
 *
 *   if model is NULL: return state
 *   if state is NULL: state := zero sums for the model's clusters
 *   unless model is that of the state: ERROR 22023
 *   if features is NULL or all NULLs: return state
 *   j := the nearest cluster of features, brought to the units of the model
 *   state.count[j] += 1;  state.sum[j] += features;  state.square[j] += D
 *   return state
 */
Datum pgkm_update_accum(PG_FUNCTION_ARGS)
{
    UpdateState *const state = PG_ARGISNULL(ARGUMENT_STATE) ? NULL : (UpdateState *)PG_GETARG_POINTER(ARGUMENT_STATE);

    return pgkm_accumulate(fcinfo, state, state == NULL ? 0 : state->n, accumulate);
}

/* What is added to a coordinate of a centroid: how far the mean of all its rows, old and new, lies from it. */
static double shift_of(const UpdateState *state, int32 j, int32 f, double centroid, int64 rows)
{
    const int exponent = state->exponents[f];
    const int128 at_centroid = (int128)std::rint(std::ldexp(centroid, -exponent)) * state->counts[j];
    const int128 sum = state->sums[(Size)j * state->model.d + f];

    return std::ldexp((double)(sum - at_centroid), exponent) / (double)rows;
}

/* The new centroid and, by the parallel axis theorem, the sum of squares about it. */
static void move_mean(const UpdateState *state, int32 j, int64 rows, double *centroid, double *within_ss)
{
    double square = 0;

    for (int32 f = 0; f < state->model.d; ++f) {
        const double shift = shift_of(state, j, f, centroid[f], rows);

        centroid[f] += shift;
        square += shift * shift;
    }
    *within_ss += std::ldexp((double)state->squares[j], state->square_exponent) - (double)rows * square;
    *within_ss = Max(*within_ss, 0.0);
}

/* The direction of the sum of all rows, which are unit vectors. Those that a cluster had sum up to its centroid times
 * size - within_ss / 2. */
static void move_direction(const UpdateState *state, int32 j, int64 rows, double *centroid, double *within_ss)
{
    const int32 d = state->model.d;
    const double size = (double)(rows - state->counts[j]);

    if (*within_ss > 2 * size * (1 + 1e-9))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("a model of metric cosine that was fitted with weights cannot be updated")));

    const double had = Max(size - *within_ss / 2, 0.0);
    double *const sum = (double *)palloc(d * sizeof(double));
    double length = 0;

    for (int32 f = 0; f < d; ++f) {
        sum[f] = had * centroid[f] + std::ldexp((double)state->sums[(Size)j * d + f], state->exponents[f]);
        length += sum[f] * sum[f];
    }
    length = std::sqrt(length);
    for (int32 f = 0; f < d && length > 0; ++f) /* opposite rows have no direction: the old one stays */
        centroid[f] = sum[f] / length;
    *within_ss = Max(2 * ((double)rows - length), 0.0);
    pfree(sum);
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
    int64 *const sizes = (int64 *)palloc(updated.k * sizeof(int64));

    memcpy(centroids, state->model.centroids, values * sizeof(double));
    memcpy(within_ss, state->model.within_ss, updated.k * sizeof(double));
    memcpy(sizes, state->model.sizes, updated.k * sizeof(int64));
    for (int32 j = 0; j < updated.k; ++j) {
        const auto move = updated.metric == PGKM_COSINE ? move_direction : move_mean;

        if (state->counts[j] == 0)
            continue;
        if (pg_add_s64_overflow(Max(sizes[j], (int64)0), state->counts[j], &sizes[j]))
            ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
        move(state, j, sizes[j], centroids + (Size)j * updated.d, &within_ss[j]);
    }
    updated.centroids = centroids;
    updated.within_ss = within_ss;
    updated.sizes = sizes;
    PG_RETURN_DATUM(pgkm_model_with(PointerGetDatum(state->flat), &updated, state->n));
}
