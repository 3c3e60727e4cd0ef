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
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

/* How an argument becomes an array. */
struct PgkmCast {
    bool is_text;
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
                 "or numeric, or a type that has a cast to real[] or double precision[], as vector and halfvec.")));
    pg_unreachable();
}

/* Has the server find the cast, and check the right to use its function. */
static void make_cast(PgkmCast *cast, Oid type)
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
        raise_no_vector(type);
    cast->cast = ExecInitExpr((Expr *)array, NULL);
    cast->context = CreateStandaloneExprContext();
}

static PgkmCast *find_cast(FmgrInfo *flinfo, Oid type)
{
    const MemoryContext caller = MemoryContextSwitchTo(flinfo->fn_mcxt);
    PgkmCast *const cast = (PgkmCast *)palloc0(sizeof(PgkmCast));
    const Oid base = OidIsValid(type) ? getBaseType(type) : InvalidOid;

    cast->is_text = base == TEXTOID;
    if (!cast->is_text && !is_feature_array(base))
        make_cast(cast, type);
    MemoryContextSwitchTo(caller);
    return cast;
}

NullableDatum pgkm_vector_value(FmgrInfo *flinfo, int number, const NullableDatum *value)
{
    const Oid type = get_fn_expr_argtype(flinfo, number);

    if (likely(is_feature_array(type)) || value->isnull)
        return *value;

    PgkmCallCache *const cache = pgkm_call_cache(flinfo);

    if (cache->cast == NULL)
        cache->cast = find_cast(flinfo, type);
    if (cache->cast->is_text)
        return {OidInputFunctionCall(F_ARRAY_IN, TextDatumGetCString(value->value), FLOAT8OID, -1), false};
    if (cache->cast->cast == NULL)
        return *value;
    cache->cast->context->caseValue_datum = value->value;
    cache->cast->context->caseValue_isNull = false;

    NullableDatum array;

    array.value = ExecEvalExpr(cache->cast->cast, cache->cast->context, &array.isnull);
    return array;
}
