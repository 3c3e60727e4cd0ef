/*
 * vector_argument.cpp - arguments of any type as arrays of numbers.
 */
#include "pg/values/datum.h"

#include "pg/compat.h"

extern "C" {
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "parser/parse_coerce.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

/* How an argument becomes an array. */
struct PgkmCast {
    bool is_text;
    bool is_bits;
    bool is_row;     /* it does not: it is a row of any columns */
    ExprState *cast; /* of the case value; NULL: it is an array of a feature type, or a text */
    ExprContext *context;
};

static bool is_feature_array(Oid type)
{
    switch (type) {
    case FLOAT4ARRAYOID:
    case FLOAT8ARRAYOID:
    case INT2ARRAYOID:
    case INT4ARRAYOID:
    case INT8ARRAYOID:
    case NUMERICARRAYOID:
        return true;
    default:
        return false;
    }
}

PgkmCallCache *pgkm_call_cache(FmgrInfo *flinfo, Size size)
{
    if (flinfo->fn_extra == NULL)
        flinfo->fn_extra = MemoryContextAllocZero(flinfo->fn_mcxt, size);
    return (PgkmCallCache *)flinfo->fn_extra;
}

[[noreturn]] static void raise_no_vector(Oid type)
{
    ereport(
        ERROR,
        (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("type %s is no vector of numbers", format_type_be(type)),
         errhint("Write ARRAY[x, y] of numbers, or take an array of smallint, integer, bigint, real, double precision "
                 "or numeric, or a type that has a cast to real[] or double precision[], as vector and halfvec. A row "
                 "of a table t is t.*, where t is a column's name, too.")));
    pg_unreachable();
}

/* Has the server find the cast, and check the right to use its function. False where there is none. */
static bool make_cast(PgkmCast *cast, Oid type)
{
    CaseTestExpr *const given = makeNode(CaseTestExpr);
    Node *array = NULL;

    given->typeId = type;
    given->typeMod = -1;
    for (const Oid target : {FLOAT4ARRAYOID, FLOAT8ARRAYOID})
        if (array == NULL && OidIsValid(type))
            array = coerce_to_target_type(NULL, (Node *)given, type, target, -1, COERCION_ASSIGNMENT,
                                          COERCE_IMPLICIT_CAST, -1);
    if (array == NULL)
        return false;
    cast->cast = ExecInitExpr((Expr *)array, NULL);
    cast->context = CreateStandaloneExprContext();
    return true;
}

PgkmCast *pgkm_cast_make(MemoryContext context, Oid type)
{
    const MemoryContext caller = MemoryContextSwitchTo(context);
    PgkmCast *const cast = (PgkmCast *)palloc0(sizeof(PgkmCast));
    const Oid base = OidIsValid(type) ? getBaseType(type) : InvalidOid;

    cast->is_text = base == TEXTOID;
    cast->is_bits = base == BITOID || base == VARBITOID;
    if (!cast->is_text && !cast->is_bits && !is_feature_array(base) && !make_cast(cast, type)) {
        cast->is_row = OidIsValid(type) && type_is_rowtype(type);
        if (!cast->is_row)
            raise_no_vector(type);
    }
    MemoryContextSwitchTo(caller);
    return cast;
}

static Datum array_of_bits(Datum value)
{
    PgkmVector bits;
    PgkmRowFault fault;

    if (!pgkm_open_bits(value, &bits, &fault))
        return PointerGetDatum(construct_empty_array(FLOAT8OID));

    double *const values = (double *)palloc(bits.length * sizeof(double));

    (void)pgkm_copy_row(&bits, PGKM_FLOAT64, bits.length, values, &fault);

    const Datum array = pgkm_array(values, {bits.length});

    pfree(values);
    return array;
}

NullableDatum pgkm_cast_value(PgkmCast *cast, NullableDatum value)
{
    NullableDatum array;

    if (value.isnull)
        return value;
    if (cast->is_text)
        return {OidInputFunctionCall(F_ARRAY_IN, TextDatumGetCString(value.value), FLOAT8OID, -1), false};
    if (cast->is_bits)
        return {array_of_bits(value.value), false};
    if (cast->cast == NULL)
        return value;
    cast->context->caseValue_datum = value.value;
    cast->context->caseValue_isNull = false;
    array.value = ExecEvalExpr(cast->cast, cast->context, &array.isnull);
    return array;
}

/* Of an argument that is no array of a feature type. */
static PgkmCast *find_cast(FmgrInfo *flinfo, Oid type)
{
    PgkmCallCache *const cache = pgkm_call_cache(flinfo);

    if (cache->cast == NULL)
        cache->cast = pgkm_cast_make(flinfo->fn_mcxt, type);
    return cache->cast;
}

bool pgkm_argument_is_row(FmgrInfo *flinfo, int number)
{
    const Oid type = get_fn_expr_argtype(flinfo, number);

    return !is_feature_array(type) && find_cast(flinfo, type)->is_row;
}

bool pgkm_argument_is_bits(FmgrInfo *flinfo, int number)
{
    const Oid type = get_fn_expr_argtype(flinfo, number);

    return !is_feature_array(type) && find_cast(flinfo, type)->is_bits;
}

NullableDatum pgkm_vector_value(FmgrInfo *flinfo, int number, const NullableDatum *value)
{
    const Oid type = get_fn_expr_argtype(flinfo, number);

    if (likely(is_feature_array(type)) || value->isnull)
        return *value;

    PgkmCast *const cast = find_cast(flinfo, type);

    if (cast->is_row)
        raise_no_vector(type);
    return pgkm_cast_value(cast, *value);
}
