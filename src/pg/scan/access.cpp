/*
 * access.cpp - finds out where a table's tuples hold the columns of the plan.
 */
#include "pg/scan/access.h"

#include "pg/compat.h"

extern "C" {
#include "access/tupmacs.h"
#include "utils/lsyscache.h"
}

/* The query as pg/query/row.h needs it, made from the names and types of the plan. */
static void set_query(TableQuery *query, const ScanPlan *plan)
{
    ScanColumn *columns = scan_plan_columns(plan);
    TableColumn *features = (TableColumn *)palloc(plan->n_columns * sizeof(TableColumn));

    for (int i = 0; i < plan->n_columns; ++i) {
        features[i] = columns[i].column;
        features[i].name = NameStr(columns[i].name);
    }
    query->features = features;
    query->n_features = plan->n_features;
    query->weight = plan->weighted ? &features[plan->n_features] : NULL;
    query->need_direction = plan->need_direction;
    query->takes_nulls = plan->takes_nulls;
    query->label = plan->labelled ? features[plan->n_features + plan->weighted].name : NULL;
    query->filter = plan->filtered ? &features[plan->n_columns - 1] : NULL;
    query->nulls = plan->nulls;
}

ScanAccess *scan_access_create(const ScanPlan *plan)
{
    ScanAccess *const access = (ScanAccess *)palloc0(sizeof(ScanAccess));
    int next = plan->n_features;

    access->plan = plan;
    access->toast = (PgkmToast *)palloc0(sizeof(PgkmToast));
    access->toast->keeps = true;
    set_query(&access->query, plan);
    access->shape.query = &access->query;
    access->shape.weight = plan->weighted ? next++ : -1;
    access->shape.label = plan->labelled ? next++ : -1;
    access->shape.filter = plan->filtered ? next++ : -1;
    access->shape.ctid = plan->with_ctid ? next++ : -1;
    access->shape.table = plan->with_table ? next++ : -1;
    access->values = (Datum *)palloc0(next * sizeof(Datum));
    access->nulls = (bool *)palloc0(next * sizeof(bool));
    access->numbers = (AttrNumber *)palloc(plan->n_columns * sizeof(AttrNumber));
    access->runs = (ScanRun *)palloc(plan->n_features * sizeof(ScanRun));
    return access;
}

/* Sets *offset to where attribute `number` starts in a tuple without NULLs before it, not yet aligned for itself.
 * False when that varies from tuple to tuple. */
static bool fixed_offset(TupleDesc desc, AttrNumber number, uint32 *offset)
{
    *offset = 0;
    for (AttrNumber i = 1; i < number; ++i) {
        const Form_pg_attribute attribute = TupleDescAttr(desc, i - 1);

        if (attribute->attlen <= 0)
            return false;
        *offset = att_align_nominal(*offset, attribute->attalign) + attribute->attlen;
    }
    return true;
}

/* Appends feature i to the last run, or starts another one. */
static void add_to_runs(ScanAccess *access, int32 i, uint32 offset, int16 length, Oid type)
{
    ScanRun *const last = &access->runs[access->n_runs - 1];

    if (access->n_runs > 0 && last->type == type && last->offset + last->count * (uint32)length == offset) {
        ++last->count;
        return;
    }

    ScanRun *const run = &access->runs[access->n_runs++];

    run->offset = offset;
    run->first = i;
    run->count = 1;
    run->type = type;
}

static ScanFast find_fast(ScanAccess *access)
{
    const ScanPlan *plan = access->plan;
    const ScanColumn *columns = scan_plan_columns(plan);

    access->n_runs = 0;
    access->last_feature = 0;
    if (plan->mixed)
        return SCAN_SLOW;
    for (int32 i = 0; i < plan->n_features; ++i) {
        const AttrNumber number = access->numbers[i];
        const Form_pg_attribute attribute = TupleDescAttr(access->desc, number - 1);
        uint32 offset;
        const bool fixed = fixed_offset(access->desc, number, &offset);

        access->last_feature = Max(access->last_feature, number);
        if (columns[i].layout != SCAN_NUMBER) {
            access->varlena_fixed = fixed;
            access->varlena_offset = offset;
            access->varlena_align = attribute->attalign;
            return SCAN_VARLENA;
        }
        if (!fixed || attribute->attlen <= 0) /* numeric */
            return SCAN_SLOW;
        add_to_runs(access, i, att_align_nominal(offset, attribute->attalign), attribute->attlen,
                    columns[i].column.type);
    }
    return SCAN_RUNS;
}

void scan_access_open(ScanAccess *access, Relation relation)
{
    const ScanColumn *columns = scan_plan_columns(access->plan);

    access->relation = relation;
    access->desc = RelationGetDescr(relation);
    access->last = 0;
    for (int i = 0; i < access->plan->n_columns; ++i) {
        access->numbers[i] = get_attnum(RelationGetRelid(relation), NameStr(columns[i].name));
        if (access->numbers[i] < 1 || access->numbers[i] > access->desc->natts)
            elog(ERROR, "column \"%s\" is missing in relation \"%s\"", NameStr(columns[i].name),
                 RelationGetRelationName(relation));
        access->last = Max(access->last, access->numbers[i]);
    }
    if (access->last > access->attributes_capacity) {
        MemoryContext owner = MemoryContextSwitchTo(GetMemoryChunkContext(access));

        access->attributes = (Datum *)palloc(access->last * sizeof(Datum));
        access->absent = (bool *)palloc(access->last * sizeof(bool));
        access->attributes_capacity = access->last;
        MemoryContextSwitchTo(owner);
    }
    access->fast = find_fast(access);
}
