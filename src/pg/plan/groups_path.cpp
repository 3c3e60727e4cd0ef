/*
 * groups_path.cpp - corrects the costs of grouping paths with our aggregates.
 *
 * The server charges a final function alike in every plan, and a state like one tuple. But the groups of a
 * hash aggregate are fitted together by all threads (pg/aggregate/batch.h), and in a parallel plan the rows
 * of all groups go from process to process. Without this hook the planner takes a parallel plan with sorted
 * groups for thousands of tenants.
 */
#include "pg/plan/plan.h"

#include "pg/aggregate/batch.h"
#include "pg/rows/rows.h"
#include "pg/settings.h"

extern "C" {
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
#include "optimizer/prep.h"

Datum pgkm_aggregate_final(PG_FUNCTION_ARGS);
Datum pgkm_gmm_final(PG_FUNCTION_ARGS);
}

static create_upper_paths_hook_type previous_hook = NULL;

/* A query's groups with our aggregates. */
struct Groups {
    PlannerInfo *root;
    RelOptInfo *input;
    RelOptInfo *output;
    Cost fits; /* of one group */
};

static bool collects_rows(Oid final_function)
{
    return OidIsValid(final_function) && (pgkm_plan_is(final_function, "pgkm_aggregate_final", pgkm_aggregate_final) ||
                                          pgkm_plan_is(final_function, "pgkm_gmm_final", pgkm_gmm_final));
}

/* What the server charges for the final functions of a group that are fits; 0: there are none. */
static Cost cost_of_fits(PlannerInfo *root)
{
    QualCost cost = {0, 0};
    ListCell *cell;

    foreach (cell, root->agginfos) {
        const Oid final_function = ((const AggInfo *)lfirst(cell))->finalfn_oid;

        if (collects_rows(final_function))
            add_function_cost(root, final_function, NULL, &cost);
    }
    return cost.per_tuple;
}

static int fit_threads(void)
{
    PgkmSettings settings;

    pgkm_settings_fill(&settings);
    return pgkm_cpu_threads(&settings);
}

static void correct(const Groups *groups, AggPath *path)
{
    const double bytes = groups->input->rows * groups->input->reltarget->width / Max(path->numGroups, 1.0);
    Cost *startup = &path->path.startup_cost, *total = &path->path.total_cost;

    if (DO_AGGSPLIT_SKIPFINAL(path->aggsplit))
        return;
    if (DO_AGGSPLIT_COMBINE(path->aggsplit) && bytes < PGKM_LARGE_PART_BYTES) {
        const Cost rows = parallel_tuple_cost * groups->input->rows;

        *startup += path->aggstrategy == AGG_HASHED ? rows : 0;
        *total += rows;
    }
    if (path->aggstrategy == AGG_HASHED && bytes < PGKM_LARGE_GROUP_BYTES) {
        const Cost alone = groups->fits * path->numGroups;
        const Cost together = alone / fit_threads();

        *startup += together;
        *total = Max(*total - alone + together, *startup);
    }
}

/* Offers hash aggregation of `input`'s cheapest path. The server may have dropped its own, whose costs were wrong. */
static void offer_hashed(const Groups *groups, RelOptInfo *input, AggSplit split, const AggClauseCosts *costs,
                         const GroupPathExtraData *extra, double n_groups)
{
    AggPath *const path =
        create_agg_path(groups->root, groups->output, input->cheapest_total_path, groups->output->reltarget, AGG_HASHED,
                        split, pgkm_group_clause(groups->root), (List *)extra->havingQual, costs, n_groups);

    correct(groups, path);
    add_path(groups->output, &path->path);
}

static void offer_all_hashed(const Groups *groups, const GroupPathExtraData *extra, double n_groups)
{
    RelOptInfo *const partial = fetch_upper_rel(groups->root, UPPERREL_PARTIAL_GROUP_AGG, groups->output->relids);
    AggClauseCosts costs = {};

    get_agg_clause_costs(groups->root, AGGSPLIT_SIMPLE, &costs);
    offer_hashed(groups, groups->input, AGGSPLIT_SIMPLE, &costs, extra, n_groups);
    if (partial->cheapest_total_path != NULL && extra->partial_costs_set)
        offer_hashed(groups, partial, AGGSPLIT_FINAL_DESERIAL, &extra->agg_final_costs, extra, n_groups);
}

/* Offers the same paths with right costs, and those that wrong costs had ruled out. */
static void correct_all(const Groups *groups, const GroupPathExtraData *extra)
{
    List *const before = groups->output->pathlist;
    double n_groups = 0;
    ListCell *cell;

    groups->output->pathlist = NIL;
    foreach (cell, before) {
        Path *const path = (Path *)lfirst(cell);

        if (IsA(path, AggPath)) {
            n_groups = ((AggPath *)path)->numGroups;
            correct(groups, (AggPath *)path);
        }
        add_path(groups->output, path);
    }
    if (n_groups > 0 && (extra->flags & GROUPING_CAN_USE_HASH) != 0)
        offer_all_hashed(groups, extra, n_groups);
}

static void choose_path(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input, RelOptInfo *output, void *extra)
{
    if (previous_hook != NULL)
        previous_hook(root, stage, input, output, extra);

    const Query *const query = root->parse;

    if (stage != UPPERREL_GROUP_AGG || query->groupClause == NIL || query->groupingSets != NIL)
        return;

    const Groups groups = {root, input, output, cost_of_fits(root)};

    if (groups.fits > 0)
        correct_all(&groups, (const GroupPathExtraData *)extra);
}

void groups_path_install(void)
{
    previous_hook = create_upper_paths_hook;
    create_upper_paths_hook = choose_path;
}
