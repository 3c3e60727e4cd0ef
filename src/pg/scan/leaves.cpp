/*
 * leaves.cpp - lists partitions and children in the planner's order: partitions by their bounds, depth
 * first; inheritance children as find_all_inheritors lists them. The result of a fit depends on the order
 * of the rows, so both ways of reading must agree on it.
 */
#include "pg/scan/plan.h"

extern "C" {
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "partitioning/partdesc.h"
#include "utils/rel.h"
}

/* Partitions nest as deep as users make them, and no deeper than the planner can recurse. */
static List *add_partitions(List *leaves, Relation parent)
{
    const PartitionDesc parts = RelationGetPartitionDesc(parent, true);

    for (int i = 0; i < parts->nparts; ++i) {
        /* It may have been detached and dropped at this moment. */
        const Relation part = try_table_open(parts->oids[i], AccessShareLock);

        if (part == NULL)
            continue;
        if (part->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
            leaves = add_partitions(leaves, part);
        else
            leaves = lappend_oid(leaves, RelationGetRelid(part));
        table_close(part, NoLock);
    }
    return leaves;
}

List *scan_leaves(Oid relation_id)
{
    const Relation relation = table_open(relation_id, NoLock);
    List *leaves;

    if (relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
        leaves = add_partitions(NIL, relation);
    else if (relation->rd_rel->relhassubclass)
        leaves = find_all_inheritors(relation_id, AccessShareLock, NULL);
    else
        leaves = list_make1_oid(relation_id);
    table_close(relation, NoLock);
    return leaves;
}
