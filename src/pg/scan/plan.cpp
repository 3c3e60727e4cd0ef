/*
 * plan.cpp - lists the tables of a relation, and makes the flat plan of a query's scan.
 */
#include "pg/scan/plan.h"

extern "C" {
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "partitioning/partdesc.h"
#include "storage/bufmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/rel.h"
}

/* Blocks, where there are no more chunks than SCAN_CHUNKS. */
#define SMALLEST_CHUNK 4

/* --- tables: in the planner's order, partitions by their bounds, depth first; inheritance children as
 * find_all_inheritors lists them. The result of a fit depends on the order of the rows, so both ways of reading must
 * agree on it. --- */

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

/* --- columns and chunks --- */

static void set_column(ScanColumn *target, const TableQuery *query, const char *name, TableColumnKind kind, Oid type)
{
    namestrcpy(&target->name, name);
    target->column.name = NULL;
    target->column.kind = kind;
    target->column.type = type;
    target->layout = kind == COLUMN_NUMBER  ? SCAN_NUMBER
                     : kind == COLUMN_ARRAY ? SCAN_ARRAY
                                            : scan_vector_layout(table_column_type(query->relation, name));
}

static void set_columns(ScanPlan *plan, const TableQuery *query)
{
    ScanColumn *column = scan_plan_columns(plan);

    plan->element = table_columns_element(query->features, query->n_features);
    for (int i = 0; i < query->n_features; ++i, ++column) {
        const TableColumn *feature = &query->features[i];

        set_column(column, query, feature->name, feature->kind, feature->type);
    }
    if (plan->weighted)
        set_column(column++, query, query->weight->name, COLUMN_NUMBER, query->weight->type);
    if (plan->labelled)
        set_column(column++, query, query->label, COLUMN_NUMBER, table_column_type(query->relation, query->label));
    if (plan->filtered)
        set_column(column, query, query->filter->name, COLUMN_NUMBER, query->filter->type);
    plan->mixed = table_columns_are_mixed(query->features, query->n_features);
    plan->d = query->features[0].kind == COLUMN_NUMBER && !plan->mixed ? query->n_features : 0;
}

static BlockNumber toast_blocks(const Relation relation)
{
    const Oid id = relation->rd_rel->reltoastrelid;

    if (!OidIsValid(id))
        return 0;

    const Relation toast = table_open(id, AccessShareLock);
    const BlockNumber blocks = RelationGetNumberOfBlocks(toast);

    table_close(toast, AccessShareLock);
    return blocks;
}

static void set_relations(ScanPlan *plan, List *leaves, uint32 chunks)
{
    ScanRelation *target = scan_plan_relations(plan);
    uint64 blocks = 0;
    ListCell *cell;

    foreach (cell, leaves) {
        const Relation relation = table_open(lfirst_oid(cell), NoLock);

        target->id = lfirst_oid(cell);
        /* What is added behind them from now on the snapshot does not see. */
        target->n_blocks = RelationGetNumberOfBlocks(relation);
        target->toast_blocks = toast_blocks(relation);
        blocks += target->n_blocks;
        ++target;
        /* Its pages lie in the memory of this process. */
        plan->temporary = plan->temporary || RelationUsesLocalBuffers(relation);
        table_close(relation, NoLock);
    }

    plan->chunk_blocks = (BlockNumber)Max(blocks / chunks, (uint64)(chunks > SCAN_CHUNKS ? 1 : SMALLEST_CHUNK));
    plan->n_chunks = 0;
    for (int i = 0; i < plan->n_relations; ++i) {
        ScanRelation *const relation = &scan_plan_relations(plan)[i];

        relation->first_chunk = plan->n_chunks;
        plan->n_chunks += relation->n_blocks / plan->chunk_blocks + (relation->n_blocks % plan->chunk_blocks != 0);
    }
}

ScanPlan *scan_plan_make(const TableQuery *query, List *leaves, uint32 chunks)
{
    const int n_columns =
        query->n_features + (query->weight != NULL) + (query->label != NULL) + (query->filter != NULL);
    const Size bytes = MAXALIGN(sizeof(ScanPlan)) + MAXALIGN(list_length(leaves) * sizeof(ScanRelation)) +
                       n_columns * sizeof(ScanColumn);
    ScanPlan *const plan = (ScanPlan *)palloc0(bytes);

    plan->bytes = bytes;
    plan->n_features = query->n_features;
    plan->n_columns = n_columns;
    plan->n_relations = list_length(leaves);
    plan->weighted = query->weight != NULL;
    plan->labelled = query->label != NULL;
    plan->filtered = query->filter != NULL;
    plan->nulls = query->nulls;
    plan->need_direction = query->need_direction;
    plan->takes_nulls = query->takes_nulls;
    /* A caller who may read only some columns is not told where a bad row is. */
    plan->with_ctid =
        query->need_ctid || pg_class_aclcheck(query->relation->id, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
    plan->with_table = plan->with_ctid && query->relation->has_rows_of_others;
    plan->wants.ctid = query->need_ctid;
    plan->wants.table = query->need_ctid && plan->with_table;
    plan->wants.label = plan->labelled;
    set_columns(plan, query);
    set_relations(plan, leaves, chunks);
    return plan;
}

int32 *scan_plan_widths(const ScanPlan *plan, MemoryContext context)
{
    int32 *const widths = (int32 *)MemoryContextAlloc(context, plan->n_features * sizeof(int32));

    for (int i = 0; i < plan->n_features; ++i)
        widths[i] = scan_plan_columns(plan)[i].width;
    return widths;
}

ScanChunk scan_plan_chunk(const ScanPlan *plan, uint32 chunk, int32 hint)
{
    const ScanRelation *relations = scan_plan_relations(plan);
    ScanChunk place;

    /* The next table's first chunk is this one's end; an empty table has none. */
    while (hint + 1 < plan->n_relations && chunk >= relations[hint + 1].first_chunk)
        ++hint;
    place.relation = hint;
    place.begin = (chunk - relations[hint].first_chunk) * plan->chunk_blocks;
    /* Near the largest table the sum would not fit. */
    place.end = place.begin + Min(plan->chunk_blocks, relations[hint].n_blocks - place.begin);
    return place;
}
