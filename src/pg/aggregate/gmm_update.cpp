/*
 * gmm_update.cpp - the aggregate gmm_update(model, features [, weight [, decay]]): adds rows to a mixture.
 *
 * One step of incremental EM (Neal and Hinton 1998; Cappe and Moulines 2009). Each row brings its responsibilities
 * under the model as it was. The model itself stands for the statistics of its rows: masses, means and covariances. At
 * the end comes the M step over both. A row's deviations from the old means are rounded, as are its responsibilities;
 * all sums of them are exact until a result is rounded. So the order of rows does not count, and nothing cancels.
 */
#include "pg/compat.h"

#include <cfloat>
#include <cmath>

#include "pg/aggregate/aggregate.h"
#include "pg/aggregate/exact_sums.h"
#include "pg/aggregate/updated_model.h"
#include "pg/gmm/gmm.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_gmm_update_accum);
PG_FUNCTION_INFO_V1(pgkm_gmm_update_final);
}

/* A smaller responsibility counts as none: the others add up to 1 without it. */
#define LEAST_SHARE (DBL_EPSILON / 2)

/* Of the rows that came: deviations from the old mean, by responsibility times weight. */
struct ComponentUpdate {
    ExactSums mass;     /* one */
    ExactSums first;    /* d: of deviations */
    ExactSums *squares; /* of products of them, as many as the type has: a lower triangle, d, or one. Tied: of all */
};

struct GmmUpdateState : UpdatedModel {
    PgkmGmmModel model;
    double reg_covar;
    ExactSums mass;              /* one: of the weights */
    ComponentUpdate *components; /* k */
    double *posterior;           /* k, of a row */
    double *apart;               /* d, of a row */
};

static bool is_matrix(const PgkmMixture *mixture)
{
    return mixture->covariance_type == PGKM_COVARIANCE_FULL || mixture->covariance_type == PGKM_COVARIANCE_TIED;
}

static int32 squares_size(const PgkmMixture *mixture, int32 d)
{
    return is_matrix(mixture) ? d * (d + 1) / 2 : mixture->covariance_type == PGKM_COVARIANCE_DIAG ? d : 1;
}

/* What its fit added to variances, else the default. */
static double reg_covar_of(Datum model)
{
    const double known = pgkm_gmm_model_origin(model).reg_covar;
    PgkmMixtureOptions options;

    pgkm_mixture_options_default(&options);
    return std::isnan(known) ? options.reg_covar : known;
}

/* Exact sums take four words or so each. */
static void check_memory(const PgkmMixture *mixture, int32 d)
{
    const bool is_tied = mixture->covariance_type == PGKM_COVARIANCE_TIED;
    const double sums = (double)mixture->k * (d + 1) + (is_tied ? 1.0 : mixture->k) * squares_size(mixture, d);

    if (sums * 4 * sizeof(uint64) > (double)pgkm_memory_available())
        pgkm_raise_working_memory(
            psprintf("gmm_update of %s of %s", pgkm_counted(mixture->k, "component"), pgkm_counted(d, "feature")),
            (uint64)(sums * 4 * sizeof(uint64)));
}

static UpdatedModel *begin_state(struct varlena *flat, double)
{
    GmmUpdateState *const state = (GmmUpdateState *)palloc0(sizeof(GmmUpdateState));
    const PgkmMixture *const mixture = &state->model.mixture;

    pgkm_gmm_model_read(PointerGetDatum(flat), CurrentMemoryContext, &state->model);
    state->reg_covar = reg_covar_of(PointerGetDatum(flat));
    check_memory(mixture, state->model.d);
    exact_sums_init(&state->mass, CurrentMemoryContext, 1);
    state->posterior = (double *)palloc(mixture->k * sizeof(double));
    state->apart = (double *)palloc(state->model.d * sizeof(double));
    state->components =
        (ComponentUpdate *)MemoryContextAllocHuge(CurrentMemoryContext, (Size)mixture->k * sizeof(ComponentUpdate));
    for (int32 j = 0; j < mixture->k; ++j) {
        ComponentUpdate *const component = &state->components[j];

        exact_sums_init(&component->mass, CurrentMemoryContext, 1);
        exact_sums_init(&component->first, CurrentMemoryContext, state->model.d);
        if (j > 0 && mixture->covariance_type == PGKM_COVARIANCE_TIED) {
            component->squares = state->components[0].squares;
            continue;
        }
        component->squares = (ExactSums *)palloc(sizeof(ExactSums));
        exact_sums_init(component->squares, CurrentMemoryContext, squares_size(mixture, state->model.d));
    }
    return state;
}

static void add_squares(ExactSums *squares, const PgkmMixture *mixture, int32 d, double factor, const double *apart)
{
    int32 i = 0;

    for (int32 a = 0; a < d; ++a) {
        CHECK_FOR_INTERRUPTS();
        for (int32 b = is_matrix(mixture) ? 0 : a; b <= a; ++b)
            exact_sums_add_triple(squares, squares->count == 1 ? 0 : i++, factor, apart[a], apart[b]);
    }
}

static bool add_row(FunctionCallInfo fcinfo, UpdatedModel *updated, double weight)
{
    GmmUpdateState *const state = (GmmUpdateState *)updated;
    const PgkmMixture *const mixture = &state->model.mixture;
    const int32 d = state->model.d;
    double *const row = pgkm_gmm_model_row(fcinfo, ARGUMENT_FEATURES, &state->model);
    int32 label;

    if (row == NULL)
        return false;
    if (pgkm_lacks_values(row, d))
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("gmm_update does not take rows that lack values"),
                 errhint("The model was fitted with nulls => 'em'. Leave such rows out.")));
    if (!std::isfinite(pgkm_mixture_row(mixture, d, row, state->posterior, &label)))
        updated_model_raise_too_far();
    for (int32 j = 0; j < mixture->k; ++j) {
        ComponentUpdate *const component = &state->components[j];
        const double factor = weight * state->posterior[j];

        if (state->posterior[j] < LEAST_SHARE)
            continue;
        exact_sums_add(&component->mass, 0, factor, 1);
        for (int32 f = 0; f < d; ++f) {
            state->apart[f] = row[f] - mixture->means[(Size)j * d + f];
            exact_sums_add(&component->first, f, factor, state->apart[f]);
        }
        add_squares(component->squares, mixture, d, factor, state->apart);
    }
    exact_sums_add(&state->mass, 0, weight, 1);
    pfree(row);
    return true;
}

/*
 * pgkm_gmm_update_accum(state internal, model gmm_model, features [, weight [, decay]]) -> internal
 *
 *   if model is NULL: return state
 *   if state is NULL: state := zero sums for the model's components
 *   unless model and decay are those of the state: ERROR 22023
 *   if weight is NULL or 0, or features is NULL or all NULLs: return state
 *   for each component j, r := its responsibility for features, in the units of the model, and u := features - mean[j]:
 *     state.mass[j] += weight r;  state.first[j] += weight r u;  state.squares[j] += weight r u u'
 *   return state
 */
Datum pgkm_gmm_update_accum(PG_FUNCTION_ARGS)
{
    static const UpdateKind kind = {begin_state, add_row};

    return updated_model_accumulate(fcinfo, &kind);
}

/* A component at the end: what it had and what came, with the mean of both. */
struct MovedComponent {
    double had;      /* mass, after the decay */
    ExactSums all;   /* one: N, of both */
    double mass;     /* the same, rounded */
    double *drift;   /* d: from the old mean to the new */
    ExactSums *left; /* d, of one each: what rounding the drift left of the sum of deviations, first - N drift */
};

static MovedComponent move(const ComponentUpdate *component, double had, int32 d)
{
    MovedComponent moved = {
        had, {}, 0, (double *)palloc(d * sizeof(double)), (ExactSums *)palloc(d * sizeof(ExactSums))};

    exact_sums_init(&moved.all, CurrentMemoryContext, 1);
    exact_sums_add(&moved.all, 0, had, 1);
    exact_sums_add_multiple(&moved.all, &component->mass, 0, 1);
    moved.mass = exact_sums_quotient(&moved.all, 0, 1);
    if (!std::isfinite(moved.mass))
        updated_model_raise_too_far();
    for (int32 f = 0; f < d; ++f) {
        CHECK_FOR_INTERRUPTS();
        moved.drift[f] = moved.mass > 0 ? exact_sums_quotient(&component->first, f, moved.mass) : 0;
        if (!std::isfinite(moved.drift[f]))
            updated_model_raise_too_far();
        exact_sums_init(&moved.left[f], CurrentMemoryContext, 1);
        exact_sums_add_multiple(&moved.left[f], &component->first, f, 1);
        exact_sums_add_multiple(&moved.left[f], &moved.all, 0, -moved.drift[f]);
    }
    return moved;
}

/*
 * Adds to a sum, which has the products of deviations of the new rows from the old mean, what makes it N times the
 * element (a, b) of the new covariance C' of a component: M C for what it had; reg_covar times the mass that came, on
 * the diagonal; and less N e e' for the drift e, which is first[a] e[b] + e[a] left[b], as first = N e + left.
 */
static void add_element(ExactSums *sum, const GmmUpdateState *state, const MovedComponent *moved, int32 j, int32 a,
                        int32 b, double covariance)
{
    const ComponentUpdate *const component = &state->components[j];

    CHECK_FOR_INTERRUPTS();
    exact_sums_add(sum, 0, moved[j].had, covariance);
    exact_sums_add_multiple(sum, &component->first, a, -moved[j].drift[b]);
    exact_sums_add_multiple(sum, &moved[j].left[b], 0, -moved[j].drift[a]);
    if (a == b)
        exact_sums_add_multiple(sum, &component->mass, 0, state->reg_covar);
}

/* The new covariance of component j in the place of the old; of all for a tied one, whose j is 0. */
static void update_covariance(const GmmUpdateState *state, const MovedComponent *moved, int32 j, double mass,
                              double *covariance)
{
    const PgkmMixture *const mixture = &state->model.mixture;
    const int32 d = state->model.d;
    const int32 end = mixture->covariance_type == PGKM_COVARIANCE_TIED ? mixture->k : j + 1;
    const bool is_spherical = mixture->covariance_type == PGKM_COVARIANCE_SPHERICAL;
    ExactSums sum;
    int32 i = 0;

    if (!(mass > 0))
        return;
    exact_sums_init(&sum, CurrentMemoryContext, 1);
    for (int32 a = 0; a < d; ++a)
        for (int32 b = is_matrix(mixture) ? 0 : a; b <= a; ++b) {
            double *const element = &covariance[is_matrix(mixture) ? (Size)a * d + b : is_spherical ? 0 : a];

            if (!is_spherical || a == 0)
                exact_sums_add_multiple(&sum, state->components[j].squares, i++, 1);
            for (int32 c = j; c < end; ++c)
                add_element(&sum, state, moved, c, a, b, *element);
            if (is_spherical && a < d - 1)
                continue;
            *element = exact_sums_quotient(&sum, 0, is_spherical ? mass * d : mass);
            if (is_matrix(mixture))
                covariance[(Size)b * d + a] = *element;
            exact_sums_clear(&sum);
        }
}

static double *copy(const double *values, Size count)
{
    double *const to = (double *)palloc_extended(count * sizeof(double), MCXT_ALLOC_HUGE);

    memcpy(to, values, count * sizeof(double));
    return to;
}

/* The M step. */
static PgkmGmmModel maximise(const GmmUpdateState *state)
{
    const PgkmGmmModel *const model = &state->model;
    const PgkmMixture *const mixture = &model->mixture;
    const bool is_tied = mixture->covariance_type == PGKM_COVARIANCE_TIED;
    const Size size = pgkm_covariance_size(mixture->covariance_type, mixture->k, model->d);
    const Size values = (Size)mixture->k * model->d;
    MovedComponent *const moved =
        (MovedComponent *)palloc_extended((Size)mixture->k * sizeof(MovedComponent), MCXT_ALLOC_HUGE);
    double *const weights = copy(model->weights, mixture->k);
    double *const means = copy(mixture->means, values);
    double *const covariances = copy(model->covariances, size);
    double sum = 0;
    ExactSums all;

    exact_sums_init(&all, CurrentMemoryContext, 1);
    for (int32 j = 0; j < mixture->k; ++j)
        sum += weights[j];
    for (int32 j = 0; j < mixture->k; ++j) {
        moved[j] = move(&state->components[j], state->decay * model->mass * (weights[j] / sum), model->d);
        exact_sums_add_multiple(&all, &moved[j].all, 0, 1);
        for (int32 f = 0; f < model->d; ++f)
            means[(Size)j * model->d + f] += moved[j].drift[f];
    }

    const double mass = exact_sums_quotient(&all, 0, 1);

    if (!std::isfinite(mass * model->d))
        updated_model_raise_too_far();
    for (int32 j = 0; j < mixture->k; ++j)
        weights[j] = exact_sums_quotient(&moved[j].all, 0, mass);
    for (int32 j = 0; j < (is_tied ? 1 : mixture->k); ++j)
        update_covariance(state, moved, j, is_tied ? mass : moved[j].mass,
                          covariances + (is_tied ? 0 : size / mixture->k * j));
    if (!pgkm_all_finite(means, values) || !pgkm_all_finite(covariances, size))
        updated_model_raise_too_far();

    PgkmGmmModel updated = *model;

    updated.weights = weights;
    updated.mixture.means = means;
    updated.covariances = covariances;
    return updated;
}

/* pgkm_gmm_update_final(state internal) -> gmm_model: the state's model with its rows; the state stays as it is. */
Datum pgkm_gmm_update_final(PG_FUNCTION_ARGS)
{
    pgkm_aggregate_context(fcinfo);
    if (PG_ARGISNULL(ARGUMENT_STATE))
        PG_RETURN_NULL();

    const GmmUpdateState *const state = (const GmmUpdateState *)PG_GETARG_POINTER(ARGUMENT_STATE);
    PgkmGmmModel updated = state->n > 0 ? maximise(state) : state->model;
    ExactSums mass;

    exact_sums_init(&mass, CurrentMemoryContext, 1);
    exact_sums_add(&mass, 0, state->decay, state->model.mass);
    exact_sums_add_multiple(&mass, &state->mass, 0, 1);
    updated.mass = exact_sums_quotient(&mass, 0, 1);
    if (!std::isfinite(updated.mass))
        updated_model_raise_too_far();

    const Datum result = pgkm_gmm_model_with(PointerGetDatum(state->flat), &updated, state->n);

    pgkm_gmm_model_read(result, CurrentMemoryContext, &updated); /* 22023 where a covariance has become singular */
    PG_RETURN_DATUM(result);
}
