/*
 * aggregate.cpp - pca(features [, options [, weight]]): rows into moments, moments into a model.
 *
 * Like kmeans_step it keeps nothing between calls but the state, which is bytea: a distributed planner can call the
 * parts one by one.
 */
#include "pg/pca/sums.h"

#include "pg/values/datum.h"
#include "pg/aggregate/aggregate.h"
#include "pg/pca/pca.h"

extern "C" {
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_pca_accum);
PG_FUNCTION_INFO_V1(pgkm_pca_final);
}

enum AccumArgument { ARGUMENT_STATE, ARGUMENT_FEATURES, ARGUMENT_OPTIONS, ARGUMENT_WEIGHT };

static PgkmPcaOptions read_options(FunctionCallInfo fcinfo)
{
    static const NullableDatum none = {0, true};
    PgkmPcaOptions options;

    pgkm_options_read(pca_kind.options, PG_NARGS() > ARGUMENT_OPTIONS ? &fcinfo->args[ARGUMENT_OPTIONS] : &none,
                      CurrentMemoryContext, &options);
    return options;
}

/* The state for the first row, and for others of its length. */
static PcaSums *begin_sums(FunctionCallInfo fcinfo, const PgkmVector *vector)
{
    const PgkmPcaOptions options = read_options(fcinfo);

    return pca_sums_create(pgkm_flat_context(fcinfo), vector->length, &options);
}

static void check_options(FunctionCallInfo fcinfo, const PcaSums *sums)
{
    if (pgkm_is_constant_in_group(fcinfo, ARGUMENT_OPTIONS))
        return;

    const PgkmPcaOptions options = read_options(fcinfo);

    pca_sums_check_options(sums, &options);
}

/* Lets the row wait; when enough wait, adds them to the moments. */
static void add_row(PcaSums *sums, const PgkmVector *vector, double weight)
{
    PgkmRowFault fault;

    if (!pgkm_copy_row(vector, PGKM_FLOAT64, sums->d, sums->waiting() + (Size)sums->pending * sums->d, &fault))
        pgkm_raise_row_fault(&fault, NULL);
    sums->weights()[sums->pending] = weight;
    if (++sums->pending == PcaSums::capacity(sums->d))
        pca_sums_flush(sums);
}

static PcaSums *accumulate(FunctionCallInfo fcinfo, PcaSums *sums)
{
    PgkmVector vector;
    double weight;

    if (!pgkm_row_arguments(fcinfo, ARGUMENT_FEATURES, ARGUMENT_WEIGHT, &vector, &weight))
        return sums;
    if (sums == NULL)
        sums = begin_sums(fcinfo, &vector);
    else
        check_options(fcinfo, sums);
    add_row(sums, &vector, weight);
    return sums;
}

/*
 * pgkm_pca_accum(state bytea, features anyarray [, options pca_options [, weight float8]])
 *
 *   if features is NULL or all NULLs, or weight is NULL or 0: return state
 *   if state is NULL: state := no rows, with options
 *   unless options are those of the state: ERROR 22023
 *   let the row wait in the state; when enough wait, add them to the moments
 *   return state
 */
Datum pgkm_pca_accum(PG_FUNCTION_ARGS)
{
    return pgkm_flat_accumulate<PcaSums>(fcinfo, accumulate);
}

/*
 * pgkm_pca_final(state bytea) -> pca_model: NULL without rows. The state stays as it is, so that
 * a window frame may go on growing.
 */
Datum pgkm_pca_final(PG_FUNCTION_ARGS)
{
    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();

    const TupleDesc tupdesc = pgkm_pca_model_tupdesc(fcinfo);
    const MemoryContext caller = CurrentMemoryContext;
    const MemoryContext context = AllocSetContextCreate(caller, "pca", ALLOCSET_DEFAULT_SIZES);
    PgkmJobHolder *holder = NULL;
    PgkmRequest request;

    MemoryContextSwitchTo(context);
    PcaSums *const sums = pgkm_flat_argument<PcaSums>(fcinfo, 0, true); /* the job's own */

    pca_sums_flush(sums);
    pca_sums_check(sums);
    MemoryContextSwitchTo(caller);

    memset(&request, 0, sizeof request);
    request.algorithm = PGKM_PCA;
    request.points.n = sums->n;
    request.points.d = sums->d;
    request.mean = sums->mean();
    request.cross = sums->cross();
    request.mass = sums->mass;
    request.pca = sums->options();

    const PgkmResult *const result = pgkm_aggregate_run("pca", &request, context, &holder);
    const Datum model = pgkm_pca_model_of_fit(result, &request, NULL, tupdesc);

    MemoryContextDelete(context);
    PG_RETURN_DATUM(model);
}
