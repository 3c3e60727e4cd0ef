/*
 * function.cpp - recognises our functions in a query, and has the library loaded to plan it.
 */
#include "pg/plan/plan.h"

extern "C" {
#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "nodes/supportnodes.h"
#include "optimizer/plancat.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/rel.h"
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

/* The rows that the planner expects of a relation and of those that inherit from it; 0 where it does not know. */
static double expected_rows(Oid id)
{
    const Relation parent = try_relation_open(id, AccessShareLock);
    double rows = 0;
    ListCell *cell;

    if (parent == NULL)
        return 0;
    relation_close(parent, NoLock);
    foreach (cell, find_all_inheritors(id, AccessShareLock, NULL)) {
        const Relation relation = relation_open(lfirst_oid(cell), NoLock);
        BlockNumber pages;
        double tuples;
        double all_visible;

        if (relation->rd_rel->relkind != RELKIND_PARTITIONED_TABLE) {
            estimate_rel_size(relation, NULL, &pages, &tuples, &all_visible);
            rows += Max(tuples, 0);
        }
        relation_close(relation, NoLock);
    }
    return rows;
}

/* Labels are as many as the rows of the relation, which is the call's first argument. Whether that is known. */
static bool estimate_labels(SupportRequestRows *request)
{
    static const char *const labels[] = {"pgkm_kmeans_labels", "pgkm_gmm_table_labels"};

    if (!IsA(request->node, FuncExpr) || !pgkm_plan_source_among(request->funcid, labels, lengthof(labels)))
        return false;

    const Const *const relation = (const Const *)linitial(((const FuncExpr *)request->node)->args);

    if (!IsA(relation, Const) || relation->constisnull)
        return false;
    request->rows = expected_rows(DatumGetObjectId(relation->constvalue));
    return request->rows > 0;
}

/*
 * pgkm_plan_support(request internal) -> internal: how many rows kmeans_labels and gmm_labels return, or a call with
 * the columns of a row in its place; else NULL, for there is nothing to say. The planner asks before it chooses paths,
 * and so the library, with its hooks, is there when it does.
 */
Datum pgkm_plan_support(PG_FUNCTION_ARGS)
{
    Node *const request = (Node *)PG_GETARG_POINTER(0);

    if (IsA(request, SupportRequestRows) && estimate_labels((SupportRequestRows *)request))
        PG_RETURN_POINTER(request);
    if (IsA(request, SupportRequestSimplify))
        PG_RETURN_POINTER(pgkm_plan_row_call((SupportRequestSimplify *)request));
    PG_RETURN_POINTER(NULL);
}
