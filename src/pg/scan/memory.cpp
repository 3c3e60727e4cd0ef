/*
 * memory.cpp - tells before a scan whether its rows will pass pg_kmeans.memory_limit.
 *
 * A table that cannot fit is refused at once, not when the limit is reached. Statistics may be old, so only
 * a table far beyond the limit is refused.
 */
#include "pg/scan/plan.h"

#include "pg/run/memory_account.h"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_statistic.h"
#include "optimizer/plancat.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

/* Estimates of so many times the limit leave no doubt. */
#define CERTAIN_FACTOR 2.0

struct ScanEstimate {
    double bytes;
    double certain; /* of them those of tables that have statistics */
};

/* The share of a column's values that are NULL, by the statistics; false when it has none. */
static bool null_fraction(Oid table, const char *column, double *fraction)
{
    const HeapTuple tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table),
                                            Int16GetDatum(get_attnum(table, column)), BoolGetDatum(false));

    if (!HeapTupleIsValid(tuple))
        return false;
    *fraction = ((Form_pg_statistic)GETSTRUCT(tuple))->stanullfrac;
    ReleaseSysCache(tuple);
    return true;
}

/* A row without any of its features is skipped, and so is one without a weight, or that the filter leaves
 * out. How many these are nobody knows. */
static void add_table(const ScanPlan *plan, const ScanRelation *table, ScanEstimate *estimate)
{
    const Relation relation = table_open(table->id, NoLock);
    BlockNumber blocks;
    double rows;
    double all_visible;
    double missing = 1;
    bool known = plan->query.weight == NULL && plan->query.filter == NULL;

    estimate_rel_size(relation, NULL, &blocks, &rows, &all_visible);
    table_close(relation, NoLock);
    for (int i = 0; i < plan->query.n_features; ++i) {
        double fraction = 0;

        known = null_fraction(table->id, plan->columns[i].name, &fraction) && known;
        missing = Min(missing, fraction);
    }

    const double bytes =
        rows * ((1 - missing) * scan_features_bytes(plan) + missing * sizeof(int64) + table_origin_bytes(&plan->wants));

    estimate->bytes += bytes;
    estimate->certain += known ? bytes : 0;
}

void scan_plan_memory(ScanPlan *plan)
{
    const double row = Max(scan_features_bytes(plan), (double)sizeof(int64)) + table_origin_bytes(&plan->wants);
    ScanEstimate estimate = {0, 0};

    if (plan->d == 0 || (double)plan->expected_rows * row <= (double)pgkm_memory_available())
        return;
    for (int i = 0; i < plan->n_relations; ++i)
        add_table(plan, &plan->relations[i], &estimate);
    plan->estimate = (uint64)estimate.bytes;
    if (estimate.certain > CERTAIN_FACTOR * (double)pgkm_memory_obtainable())
        pgkm_raise_memory_limit(0, plan->estimate);
}
