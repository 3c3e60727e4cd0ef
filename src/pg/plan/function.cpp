/*
 * function.cpp - recognises our functions in a query, and has the library loaded to plan it.
 */
#include "pg/plan/plan.h"

#include "pg/shared/pinned_slices.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "nodes/supportnodes.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(pgkm_plan_support);
}

bool pgkm_plan_source_among(Oid function, const char *const *symbols, int count)
{
    const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    bool matches = false;

    if (!HeapTupleIsValid(tuple))
        return false;
    if (((Form_pg_proc)GETSTRUCT(tuple))->prolang == ClanguageId) {
        bool isnull;
        const Datum value = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
        const char *const source = isnull ? "" : TextDatumGetCString(value);

        for (int i = 0; i < count; ++i)
            matches = matches || strcmp(source, symbols[i]) == 0;
    }
    ReleaseSysCache(tuple);
    return matches;
}

bool pgkm_plan_is(Oid function, const char *symbol, PGFunction address)
{
    FmgrInfo info;

    if (!pgkm_plan_source_among(function, &symbol, 1))
        return false;
    fmgr_info(function, &info);
    return info.fn_addr == address;
}

/*
 * pgkm_plan_support(request internal) -> internal: NULL, for there is nothing to say. The planner
 * asks before it chooses paths, and so the library, with its hooks, is there when it does. It asks for the cost of an
 * aggregate's final function, which has no node, in the process that may lead the aggregate's workers.
 */
Datum pgkm_plan_support(PG_FUNCTION_ARGS)
{
    const Node *const request = (const Node *)PG_GETARG_POINTER(0);

    if (IsA(request, SupportRequestCost) && ((const SupportRequestCost *)request)->node == NULL)
        pinned_slices_expect();
    PG_RETURN_POINTER(NULL);
}
