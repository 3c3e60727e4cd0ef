/*
 * updated_model.cpp - the transition function of aggregates that add rows to a model.
 */
#include "pg/aggregate/updated_model.h"

#include <algorithm>
#include <iterator>

#include "pg/aggregate/aggregate.h"
#include "pg/aggregate/flat_state.h"
#include "pg/values/composite.h"
#include "pg/values/weight.h"

extern "C" {
#include "access/htup_details.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/typcache.h"
}

/* 1 where the call has no such argument. */
static double decay_argument(FunctionCallInfo fcinfo)
{
    if (PG_NARGS() <= ARGUMENT_DECAY)
        return 1;

    const double decay = PG_ARGISNULL(ARGUMENT_DECAY) ? 0 : PG_GETARG_FLOAT8(ARGUMENT_DECAY);

    if (!(decay > 0 && decay <= 1))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("decay must be a number above 0 and at most 1")));
    return decay;
}

static UpdatedModel *begin_state(FunctionCallInfo fcinfo, const UpdateKind *kind)
{
    const MemoryContext caller = MemoryContextSwitchTo(pgkm_aggregate_context(fcinfo));
    struct varlena *const value = (struct varlena *)DatumGetPointer(PG_GETARG_DATUM(ARGUMENT_MODEL));
    struct varlena *const flat = pg_detoast_datum_copy(value);
    struct varlena *const raw = (struct varlena *)palloc(VARSIZE_ANY(value));
    const double decay = decay_argument(fcinfo);
    UpdatedModel *const state = kind->begin(flat, decay);

    memcpy(raw, value, VARSIZE_ANY(value));
    *state = {pgkm_is_constant_in_group(fcinfo, ARGUMENT_MODEL), raw, flat, decay, 0};
    MemoryContextSwitchTo(caller);
    return state;
}

static void deform(Datum model, TupleDesc tupdesc, Datum *values, bool *nulls)
{
    HeapTupleData tuple;

    tuple.t_data = DatumGetHeapTupleHeader(model);
    tuple.t_len = HeapTupleHeaderGetDatumLength(tuple.t_data);
    heap_deform_tuple(&tuple, tupdesc, values, nulls);
}

/* Whether two models are the same but for fields that no update reads. */
static bool is_same(Datum a, Datum b)
{
    static const char *const unread[] = {"origin",         "seed",  "n_iter", "converged", "inertia",
                                         "log_likelihood", "trace", "aic",    "bic"};
    const HeapTupleHeader header = DatumGetHeapTupleHeader(a);
    const TupleDesc tupdesc =
        lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
    Datum values[2][PGKM_MOST_FIELDS];
    bool nulls[2][PGKM_MOST_FIELDS];
    bool same = true;

    deform(a, tupdesc, values[0], nulls[0]);
    deform(b, tupdesc, values[1], nulls[1]);
    for (int i = 0; same && i < tupdesc->natts; ++i) {
        const Form_pg_attribute field = TupleDescAttr(tupdesc, i);

        same = std::any_of(unread, std::end(unread),
                           [field](const char *name) { return strcmp(name, NameStr(field->attname)) == 0; }) ||
               (nulls[0][i] && nulls[1][i]) ||
               (!nulls[0][i] && !nulls[1][i] &&
                datum_image_eq(values[0][i], values[1][i], field->attbyval, field->attlen));
    }
    ReleaseTupleDesc(tupdesc);
    return same;
}

/* Equal bytes nearly always. What lies in memory (PL/pgSQL's rows) can change behind an equal pointer. */
static void check_same_model(const UpdatedModel *state, Datum model)
{
    struct varlena *const value = (struct varlena *)DatumGetPointer(model);
    const bool in_memory = VARATT_IS_EXTERNAL(value) && !VARATT_IS_EXTERNAL_ONDISK(value);

    if (!in_memory && VARSIZE_ANY(value) == VARSIZE_ANY(state->raw) &&
        memcmp(value, state->raw, VARSIZE_ANY(value)) == 0)
        return;
    if (!is_same(PointerGetDatum(state->flat), PointerGetDatum(pg_detoast_datum(value))))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("model must be the same for all rows of a group")));
}

/* A group without rows has the model that it came with. */
static UpdatedModel *accumulate(FunctionCallInfo fcinfo, UpdatedModel *state, const UpdateKind *kind)
{
    if (PG_ARGISNULL(ARGUMENT_MODEL))
        return state;
    if (state == NULL)
        state = begin_state(fcinfo, kind);
    else if (!state->constant)
        check_same_model(state, PG_GETARG_DATUM(ARGUMENT_MODEL));
    if (decay_argument(fcinfo) != state->decay)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("decay must be the same for all rows of a group")));

    const double weight = pgkm_weight_argument(fcinfo, ARGUMENT_WEIGHT);

    if (weight != 0 && kind->add(fcinfo, state, weight))
        ++state->n;
    return state;
}

Datum updated_model_accumulate(FunctionCallInfo fcinfo, const UpdateKind *kind)
{
    UpdatedModel *const state = PG_ARGISNULL(ARGUMENT_STATE) ? NULL : (UpdatedModel *)PG_GETARG_POINTER(ARGUMENT_STATE);

    return pgkm_accumulate(fcinfo, state, state == NULL ? 0 : state->n,
                           [kind](FunctionCallInfo call, UpdatedModel *s) { return accumulate(call, s, kind); });
}

void updated_model_raise_too_far(void)
{
    ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                    errmsg("features are out of range: they lie too far from the model")));
    pg_unreachable();
}
