/*
 * citus.c - for test/pgtap/citus_hook.sh: a library of Citus's name that hooks the choice of paths as Citus does,
 * before all others, and does nothing with it. Without SETTING it has none of Citus's settings.
 */
#include "postgres.h"
#include "fmgr.h"
#include "optimizer/paths.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;
void _PG_init(void);

static void choose_path(PlannerInfo *root, RelOptInfo *rel, Index index, RangeTblEntry *entry)
{
    (void)root, (void)rel, (void)index, (void)entry;
}

void _PG_init(void)
{
#ifdef SETTING
    static char *setting;

    DefineCustomStringVariable("citus.node_conninfo", "", NULL, &setting, "", PGC_USERSET, GUC_SUPERUSER_ONLY, NULL,
                               NULL, NULL);
#endif
    set_rel_pathlist_hook = choose_path;
}
