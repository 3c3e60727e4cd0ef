/*
 * vector_argument.cpp - arguments of any type as arrays of numbers.
 */
#include "pg/values/datum.h"

#include "pg/compat.h"

extern "C" {
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "parser/parse_coerce.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

/* How an argument becomes an array. */
struct PgkmCast {
    bool is_text; /* or it is, or has the form of, an array unless there is a function */
    FmgrInfo function;
    short n_arguments; /* of the function: the value, a type modifier, whether the cast is explicit; 0: no function */
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

/* As the executor checks functions of expressions, with which it is not concerned here. */
static void check_privilege(Oid function)
{
    const AclResult result = pgkm_function_aclcheck(function, GetUserId());

    if (result != ACLCHECK_OK)
        aclcheck_error(result, OBJECT_FUNCTION, get_func_name(function));
}

static PgkmCast *find_cast(FmgrInfo *flinfo, Oid type)
{
    PgkmCast *const cast = (PgkmCast *)MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(PgkmCast));
    const Oid base = OidIsValid(type) ? getBaseType(type) : InvalidOid;
    CoercionPathType path = COERCION_PATH_NONE;
    Oid function = InvalidOid;

    cast->is_text = base == TEXTOID;
    if (cast->is_text || is_feature_array(base))
        return cast;
    for (const Oid target : {FLOAT4ARRAYOID, FLOAT8ARRAYOID})
        if (path == COERCION_PATH_NONE && OidIsValid(base))
            path = find_coercion_pathway(target, base, COERCION_ASSIGNMENT, &function);
    if (path != COERCION_PATH_FUNC && path != COERCION_PATH_RELABELTYPE)
        raise_no_vector(type);
    if (path == COERCION_PATH_FUNC) {
        check_privilege(function);
        fmgr_info_cxt(function, &cast->function, flinfo->fn_mcxt);
        cast->n_arguments = (short)get_func_nargs(function);
    }
    return cast;
}

static Datum call_cast(PgkmCast *cast, Datum value)
{
    LOCAL_FCINFO(call, 3);

    InitFunctionCallInfoData(*call, &cast->function, cast->n_arguments, InvalidOid, NULL, NULL);
    call->args[0] = {value, false};
    call->args[1] = {Int32GetDatum(-1), false};
    call->args[2] = {BoolGetDatum(false), false};

    const Datum result = FunctionCallInvoke(call);

    return call->isnull ? (Datum)0 : result;
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
    if (cache->cast->n_arguments == 0)
        return *value;

    const Datum array = call_cast(cache->cast, value->value);

    return {array, array == (Datum)0};
}
