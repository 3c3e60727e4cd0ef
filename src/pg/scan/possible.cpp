/*
 * possible.cpp - finds out whether a relation can be read directly, and why not.
 */
#include "pg/scan/scan.h"

#include "pg/compat.h"
#include "pg/scan/plan.h"
#include "pg/settings.h"

extern "C" {
#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"
}

static bool (*other_hooks)(void) = NULL;

void scan_set_other_hooks(bool (*others)(void))
{
    other_hooks = others;
}

static bool may_read_column(Oid table, const char *name, Oid user)
{
    const AttrNumber number = get_attnum(table, name);

    return number != InvalidAttrNumber && pg_attribute_aclcheck(table, number, user, ACL_SELECT) == ACLCHECK_OK;
}

/* What the executor checks of this SELECT: a privilege on the table, or one on each column. */
static bool privileged(const TableQuery *query)
{
    const Oid user = GetUserId();
    const Oid table = query->relation->id;
    const char *name;

    if (pg_class_aclcheck(table, user, ACL_SELECT) == ACLCHECK_OK)
        return true;
    /* Column grants do not reach ctid. */
    if (query->need_ctid)
        return false;
    for (int i = 0; (name = table_query_column(query, i)) != NULL; ++i)
        if (!may_read_column(table, name, user))
            return false;
    return true;
}

static const char *relation_obstacle(const Relation relation)
{
    if (relation->rd_rel->relkind != RELKIND_RELATION && relation->rd_rel->relkind != RELKIND_MATVIEW)
        return "Its rows are not all in tables.";
    if (relation->rd_tableam != GetHeapamTableAmRoutine())
        return "Its access method is not heap.";
    if (RELATION_IS_OTHER_TEMP(relation))
        return "A temporary table of another session belongs to it.";
    if (RecoveryInProgress() && !RelationIsPermanent(relation))
        return "It is unlogged, and a standby has no rows of it.";
    if (!RelationIsScannable(relation))
        return "It has not been populated.";
    return NULL;
}

static const char *column_obstacle(const Relation relation, const char *name)
{
    const AttrNumber number = get_attnum(RelationGetRelid(relation), name);

    if (number < 1 || number > RelationGetNumberOfAttributes(relation))
        return "System columns are not read directly.";
    if (pgkm_is_virtual(TupleDescAttr(RelationGetDescr(relation), number - 1)))
        return "Virtual columns are computed by the executor.";
    return NULL;
}

static const char *leaf_obstacle(const TableQuery *query, Oid leaf)
{
    const Relation relation = table_open(leaf, NoLock);
    const char *obstacle = relation_obstacle(relation);
    const char *name;

    for (int i = 0; obstacle == NULL && (name = table_query_column(query, i)) != NULL; ++i)
        obstacle = column_obstacle(relation, name);
    table_close(relation, NoLock);
    return obstacle;
}

/* Why the query cannot be read directly, for a DETAIL; NULL when it can, from *leaves. */
static const char *find_obstacle(const TableQuery *query, List **leaves)
{
    const Oid id = query->relation->id;
    const char relkind = get_rel_relkind(id);
    const char *obstacle = NULL;
    ListCell *cell;

    if (relkind != RELKIND_RELATION && relkind != RELKIND_PARTITIONED_TABLE && relkind != RELKIND_MATVIEW)
        return "It is not a table or materialized view.";
    if (IsolationIsSerializable())
        return "Serializable transactions need predicate locks.";
    if (check_enable_rls(id, InvalidOid, true) == RLS_ENABLED)
        return "Row security applies to it.";
    /* It may replace scans (of a sharded or compressed table) or guard them. */
    if ((other_hooks != NULL && other_hooks()) || ExecutorCheckPerms_hook != NULL)
        return "Another extension takes part in reading tables.";
    if (query->features[0].kind == COLUMN_VECTOR &&
        scan_vector_layout(table_column_type(query->relation, query->features[0].name)) == SCAN_UNKNOWN)
        return "The storage of its vector type is not known.";
    *leaves = scan_leaves(id);
    foreach (cell, *leaves) {
        obstacle = leaf_obstacle(query, lfirst_oid(cell));
        if (obstacle != NULL)
            break;
    }
    return obstacle;
}

bool scan_possible(const TableQuery *query, List **leaves)
{
    const ScanChoice choice = pgkm_scan_choice();

    if (choice == SCAN_EXECUTOR || !privileged(query))
        return false;

    const char *obstacle = find_obstacle(query, leaves);

    if (obstacle != NULL && choice == SCAN_DIRECT)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("relation \"%s\" cannot be read by a direct scan", query->relation->name),
                        errdetail("%s", obstacle), errhint("Set \"pg_kmeans.scan\" to auto.")));
    return obstacle == NULL;
}
