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

static bool (*other_hooks)(Oid relation) = NULL;

void scan_set_other_hooks(bool (*others)(Oid relation))
{
    other_hooks = others;
}

static bool may_read_column(Oid table, const char *name, Oid user)
{
    const AttrNumber number = get_attnum(table, name);

    return number != InvalidAttrNumber && pg_attribute_aclcheck(table, number, user, ACL_SELECT) == ACLCHECK_OK;
}

/* What the executor checks of this SELECT: a privilege on the table, or one on each column. */
bool scan_is_privileged(const TableQuery *query)
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

static const char others_take_part[] = "Another extension takes part in reading tables.";

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
    const char *obstacle = other_hooks != NULL && other_hooks(leaf) ? others_take_part : relation_obstacle(relation);
    const char *name;

    for (int i = 0; obstacle == NULL && (name = table_query_column(query, i)) != NULL; ++i)
        obstacle = column_obstacle(relation, name);
    table_close(relation, NoLock);
    return obstacle;
}

const char *scan_query_obstacle(const TableQuery *query)
{
    const Oid id = query->relation->id;

    if (IsolationIsSerializable())
        return "Serializable transactions need predicate locks.";
    if (check_enable_rls(id, InvalidOid, true) == RLS_ENABLED)
        return "Row security applies to it.";
    if (ExecutorCheckPerms_hook != NULL)
        return others_take_part;
    for (int i = 0; i < query->n_features; ++i)
        if (query->features[i].kind == COLUMN_VECTOR &&
            scan_vector_layout(table_column_type(query->relation, query->features[i].name)) == SCAN_UNKNOWN)
            return "The storage of its vector type is not known.";
    return NULL;
}

const char *scan_parts_obstacle(const TableQuery *query, List *leaves)
{
    /* Another extension may replace scans, of a sharded or compressed table. */
    const bool replaced = other_hooks != NULL && other_hooks(query->relation->id);
    const char *obstacle = replaced ? others_take_part : scan_query_obstacle(query);
    ListCell *cell;

    foreach (cell, leaves) {
        if (obstacle != NULL)
            break;
        obstacle = leaf_obstacle(query, lfirst_oid(cell));
    }
    return obstacle;
}

/* Why the query cannot be read directly, for a DETAIL; NULL when it can, from *leaves. */
static const char *find_obstacle(const TableQuery *query, List **leaves)
{
    const char relkind = get_rel_relkind(query->relation->id);
    const char *obstacle;

    if (relkind != RELKIND_RELATION && relkind != RELKIND_PARTITIONED_TABLE && relkind != RELKIND_MATVIEW)
        return "It is not a table or materialized view.";
    obstacle = scan_parts_obstacle(query, NIL);
    if (obstacle != NULL)
        return obstacle;
    *leaves = scan_leaves(query->relation->id);
    return scan_parts_obstacle(query, *leaves);
}

bool scan_possible(const TableQuery *query, List **leaves)
{
    const int choice = pgkm_scan_choice;

    if ((choice == SCAN_EXECUTOR && !query->streamed) || !scan_is_privileged(query))
        return false;

    const char *const obstacle =
        choice == SCAN_EXECUTOR ? "The setting \"pg_kmeans.scan\" is executor." : find_obstacle(query, leaves);

    if (obstacle != NULL && (choice == SCAN_DIRECT || query->streamed))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("relation \"%s\" cannot be read by a direct scan", query->relation->name),
                        errdetail("%s", obstacle),
                        query->streamed ? errhint("memory => 'stream' needs one. Use memory => 'resident'.")
                                        : errhint("Set \"pg_kmeans.scan\" to auto.")));
    return obstacle == NULL;
}
