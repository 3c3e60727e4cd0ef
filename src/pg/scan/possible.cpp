/*
 * possible.cpp - finds the tables that the SELECT of a query scans from start to end, or why it does something else.
 *
 * The planner says: if it reads a relation by sequential scans alone, one behind the other and without conditions, then
 * a scan of those tables returns the same rows in the same order. So row security, views, and whatever extension takes
 * part in planning need no rules of their own here.
 */
#include "pg/compat.h"
#include "pg/query/decoder.h"
#include "pg/scan/scan.h"
#include "pg/settings.h"

extern "C" {
#include "access/sysattr.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "nodes/plannodes.h"
#include "parser/parsetree.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/rel.h"
#include "utils/resowner.h"
}

struct Search {
    const PlannedStmt *statement;
    const TableQuery *query;
    bool others;           /* foreign tables are left out */
    bool has_row_security; /* of one of the tables */
    MemoryContext context; /* of the list */
    List *tables;          /* ScanTable */
};

/* Where a table has the columns; or why it has one of them not. */
static const char *find_places(const TableQuery *query, const Scan *scan, int n_names, AttrNumber *places)
{
    int at = 0; /* in the SELECT, which lacks expressions */

    for (int i = 0; i < n_names; ++i) {
        const char *const name = table_query_name(query, i);

        places[i] = -1;
        if (name == NULL)
            continue;

        const Var *const column = (const Var *)((const TargetEntry *)list_nth(scan->plan.targetlist, at++))->expr;

        if (!IsA(column, Var) || column->varattno <= 0)
            return psprintf("Column \"%s\" is computed.", name);
        places[i] = column->varattno - 1;
    }
    return NULL;
}

static const char *table_obstacle(Oid id)
{
    const Relation relation = table_open(id, NoLock);
    const char *obstacle = NULL;

    if (relation->rd_tableam == NULL || relation->rd_tableam->scan_set_tidrange == NULL)
        obstacle = "Its access method cannot scan ranges of ctids.";
    else if (!RelationIsScannable(relation))
        obstacle = "It has not been populated.";
    table_close(relation, NoLock);
    return obstacle;
}

static const char *add_table(Search *search, const Scan *scan)
{
    const RangeTblEntry *const entry = rt_fetch(scan->scanrelid, search->statement->rtable);
    MemoryContext caller = MemoryContextSwitchTo(search->context);
    const int n_names = table_query_names(search->query);
    ScanTable *const table = (ScanTable *)palloc(offsetof(ScanTable, places) + n_names * sizeof(AttrNumber));

    table->id = entry->relid;
    search->tables = lappend(search->tables, table);

    const char *const obstacle = table_obstacle(entry->relid);
    const char *const result = obstacle == NULL ? find_places(search->query, scan, n_names, table->places) : obstacle;

    MemoryContextSwitchTo(caller);
    return result;
}

/* Of no tables, or of those that a condition without columns rules out. */
static bool is_empty(const Result *result)
{
    const Node *const first =
        result->resconstantqual == NULL ? NULL : (const Node *)linitial((const List *)result->resconstantqual);

    return first != NULL && IsA(first, Const) && !DatumGetBool(((const Const *)first)->constvalue);
}

/* Adds the tables that a plan scans; or why it does something else. */
static const char *add_tables(Search *search, Plan *plan)
{
    const char *obstacle = NULL;
    ListCell *cell;

    if (plan->qual != NIL || plan->initPlan != NIL)
        return search->has_row_security ? "Row-level security selects its rows." : "It is a view with a condition.";
    switch (nodeTag(plan)) {
    case T_SeqScan:
        return add_table(search, (const Scan *)plan);
    case T_ForeignScan:
        return search->others ? NULL : "It is a foreign table or has foreign tables below it.";
    case T_Append:
        foreach (cell, ((const Append *)plan)->appendplans)
            if (obstacle == NULL)
                obstacle = add_tables(search, (Plan *)lfirst(cell));
        return obstacle;
    case T_Result:
        return is_empty((const Result *)plan) ? NULL : "It is a view without a table.";
    case T_IndexScan:
    case T_IndexOnlyScan:
    case T_BitmapHeapScan:
        return "The planner reads it by an index.";
    case T_CustomScan:
        return "Another extension reads it.";
    default:
        return "It is a view that does more than name columns of a table: it joins, sorts, groups or computes.";
    }
}

const char *scan_find_tables(const TableQuery *query, bool others, List **tables)
{
    const int nest_level = NewGUCNestLevel();
    TableDecoder decoder;
    Search search = {NULL, query, others, false, CurrentMemoryContext, NIL};

    SPI_connect();
    table_select_settings();

    const SPIPlanPtr prepared = SPI_prepare(table_select_text(query, &decoder), 0, NULL);

    if (prepared == NULL)
        elog(ERROR, "preparing to read rows failed: %s", SPI_result_code_string(SPI_result));

    CachedPlan *const cached = SPI_plan_get_cached_plan(prepared);

    search.has_row_security = ((const CachedPlanSource *)linitial(SPI_plan_get_plan_sources(prepared)))->dependsOnRLS;
    search.statement = linitial_node(PlannedStmt, cached->stmt_list);
    pgkm_check_permissions(search.statement);

    const char *const obstacle = add_tables(&search, search.statement->planTree);

    ReleaseCachedPlan(cached, NULL);
    SPI_finish();
    AtEOXact_GUC(false, nest_level);
    *tables = search.tables;
    return obstacle;
}

/* Why the query cannot be read directly, for a DETAIL; NULL when it can, from *tables. */
static const char *find_obstacle(const TableQuery *query, List **tables)
{
    if (pgkm_scan_choice == SCAN_EXECUTOR)
        return "The setting \"pg_kmeans.scan\" is executor.";
    if (IsolationIsSerializable())
        return "Serializable transactions need predicate locks.";
    return scan_find_tables(query, false, tables);
}

bool scan_possible(const TableQuery *query, List **tables)
{
    const char *const obstacle = find_obstacle(query, tables);

    if (obstacle != NULL && (pgkm_scan_choice == SCAN_DIRECT || query->streamed))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("relation \"%s\" cannot be read by a direct scan", query->relation->name),
                        errdetail("%s", obstacle),
                        query->streamed ? errhint("memory => 'stream' needs one. Use memory => 'resident'.")
                                        : errhint("Set \"pg_kmeans.scan\" to auto.")));
    return obstacle == NULL;
}
