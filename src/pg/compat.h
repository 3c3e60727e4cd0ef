/*
 * compat.h - the differences between PostgreSQL 15 and 19, and nothing else. Code is
 * written against the newest interface; older servers get it here.
 */
#ifndef PGKM_PG_COMPAT_H
#define PGKM_PG_COMPAT_H

extern "C" {
#include "postgres.h"
#include "fmgr.h"
#include "funcapi.h"
}

#if PG_VERSION_NUM < 150000
#error "pg_kmeans needs PostgreSQL 15 or newer"
#endif

/* 15.1 renamed SetSingleFuncCall (a19e5cee635d); 15.0 has the old name only. */
#if PG_VERSION_NUM < 160000 && !defined(MAT_SRF_USE_EXPECTED_DESC)
#define InitMaterializedSRF(fcinfo, flags) SetSingleFuncCall(fcinfo, flags)
#endif

/*
 * 16 moved the macros of toastable values out of postgres.h (d952373a987b), named the readers of the array of backends
 * anew (8fb13dd6ab5b), asks one function about privileges on objects of all kinds (c727f511bd7f), speaks of locators
 * and numbers of files (b0a55e43299c), has the plan sort the rows of an aggregate (1349d2790bf4), and declares what
 * walkers are (1c27d16e6e5c): before, C++ takes the declaration for a function without arguments.
 */
#if PG_VERSION_NUM >= 160000
extern "C" {
#include "varatt.h"
}
#define pgkm_function_aclcheck(function, user) object_aclcheck(ProcedureRelationId, function, user, ACL_EXECUTE)
#define pgkm_schema_aclcheck(schema, user) object_aclcheck(NamespaceRelationId, schema, user, ACL_USAGE)
#define pgkm_class_ownercheck(relation, user) object_ownercheck(RelationRelationId, relation, user)
#define pgkm_file_number(relation) ((relation)->rd_locator.relNumber)
#define pgkm_aggregate_is_presorted(aggref) ((aggref)->aggpresorted)
#define pgkm_planstate_tree_walker(node, walker, context) planstate_tree_walker(node, walker, context)
#define pgkm_expression_tree_walker(node, walker, context) expression_tree_walker(node, walker, context)
#define pgkm_raw_expression_tree_walker(node, walker, context) raw_expression_tree_walker(node, walker, context)
#else
#define pgstat_get_local_beentry_by_index(index) pgstat_fetch_stat_local_beentry(index)
#define pgkm_function_aclcheck(function, user) pg_proc_aclcheck(function, user, ACL_EXECUTE)
#define pgkm_schema_aclcheck(schema, user) pg_namespace_aclcheck(schema, user, ACL_USAGE)
#define pgkm_class_ownercheck(relation, user) pg_class_ownercheck(relation, user)
#define pgkm_file_number(relation) ((relation)->rd_node.relNode)
#define pgkm_aggregate_is_presorted(aggref) false
#define pgkm_planstate_tree_walker(node, walker, context) \
    planstate_tree_walker(node, (bool (*)())(void (*)())(walker), context)
#define pgkm_expression_tree_walker(node, walker, context) \
    expression_tree_walker(node, (bool (*)())(void (*)())(walker), context)
#define pgkm_raw_expression_tree_walker(node, walker, context) \
    raw_expression_tree_walker(node, (bool (*)())(void (*)())(walker), context)
#endif

/* 18 moved what writes EXPLAIN's properties to a header of its own. */
#if PG_VERSION_NUM >= 180000
extern "C" {
#include "commands/explain_format.h"
}
#endif

/* 17 has loops over lists that declare their variable (14dd0f27d7cd). */
#if PG_VERSION_NUM < 170000
#define pgkm_foreach(type, var, list, first)                                                                           \
    for (ForEachState var##_at = {(list), 0}; var##_at.i >= 0; var##_at.i = -1)                                        \
        for (type var = {};                                                                                            \
             var##_at.i < list_length(var##_at.l) && (var = (type)first(list_nth_cell(var##_at.l, var##_at.i)), true); \
             ++var##_at.i)
#define foreach_ptr(type, var, list) pgkm_foreach(type *, var, list, lfirst)
#define foreach_oid(var, list) pgkm_foreach(Oid, var, list, lfirst_oid)
#endif

/* 17 lets an extension name what it waits for (c9af05465307). The number is asked for once per
 * process; `name` is a literal. */
#if PG_VERSION_NUM >= 170000
#define pgkm_wait_event(name)                    \
    ([]() -> uint32 {                            \
        static uint32 asked = 0;                 \
        if (asked == 0)                          \
            asked = WaitEventExtensionNew(name); \
        return asked;                            \
    }())
#else
#define pgkm_wait_event(name) PG_WAIT_EXTENSION
#endif

/* 16 keeps what a query needs privileges for beside its range table (a61b1f74823c). */
#if PG_VERSION_NUM >= 160000
#define pgkm_check_permissions(statement) ExecCheckPermissions((statement)->rtable, (statement)->permInfos, true)
#else
#define pgkm_check_permissions(statement) ExecCheckRTPerms((statement)->rtable, true)
#endif

/* 19 lets whoever begins a scan set flags. */
#if PG_VERSION_NUM >= 190000
#define pgkm_table_beginscan(table, snapshot) table_beginscan(table, snapshot, 0, NULL, 0)
#else
#define pgkm_table_beginscan(table, snapshot) table_beginscan(table, snapshot, 0, NULL)
#endif

/* 19 hands signal handlers a second argument, and has its own constants for those that are none. */
#ifndef PG_SIG_IGN
#define PG_SIG_IGN SIG_IGN
#endif

/* 17 tells how much memory an area has. Before, the number of the segment that holds `last`, something in the area,
 * says it about: each two segments are twice as large as the two before. */
extern "C" {
#include "utils/dsa.h"
}
#if PG_VERSION_NUM >= 170000
#define pgkm_area_bytes(area, last) dsa_get_total_size(area)
#else
#define pgkm_area_bytes(area, last) ((void)(area), (Size)1048576 << (((last) >> 40) / 2 + 1))
#endif

/* 18 tells columns of RETURNING old from others (80feb727c869); 16 says which outer joins make a column NULL
 * (2489d76c4906). */
#if PG_VERSION_NUM >= 180000
#define pgkm_expand_entry(entry, whole, names, columns)                                                                \
    expandRTE(entry, (whole)->varno, (whole)->varlevelsup, (whole)->varreturningtype, (whole)->location, false, names, \
              columns)
#else
#define pgkm_expand_entry(entry, whole, names, columns) \
    expandRTE(entry, (whole)->varno, (whole)->varlevelsup, (whole)->location, false, names, columns)
#endif
#if PG_VERSION_NUM >= 160000
#define pgkm_copy_nulling(column, whole) ((column)->varnullingrels = bms_copy((whole)->varnullingrels))
#define pgkm_is_never_nulled(whole) ((whole)->varnullingrels == NULL)
#else
#define pgkm_copy_nulling(column, whole) ((void)(column))
#define pgkm_is_never_nulled(whole) ((void)(whole), false)
#endif
#if PG_VERSION_NUM >= 180000
#define pgkm_is_old_or_new(whole) ((whole)->varreturningtype != VAR_RETURNING_DEFAULT)
#else
#define pgkm_is_old_or_new(whole) ((void)(whole), false)
#endif

/* 18 can name a module and its version in pg_get_loaded_modules(). */
#ifdef PG_MODULE_MAGIC_EXT
#define PGKM_MODULE_MAGIC(module, number) PG_MODULE_MAGIC_EXT(.name = module, .version = number)
#else
#define PGKM_MODULE_MAGIC(module, number) PG_MODULE_MAGIC
#endif

#endif
