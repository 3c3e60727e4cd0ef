/*
 * citus.c - for test/pgtap/citus_hook.sh: a library of Citus's name that hooks the choice of paths as Citus does,
 * before all others, and does nothing with it.
 */
#include "postgres.h"
#include "fmgr.h"
#include "optimizer/paths.h"

PG_MODULE_MAGIC;
void _PG_init(void);

static void choose_path(PlannerInfo *root, RelOptInfo *rel, Index index, RangeTblEntry *entry)
{
    (void)root, (void)rel, (void)index, (void)entry;
}

void _PG_init(void)
{
    set_rel_pathlist_hook = choose_path;
}
