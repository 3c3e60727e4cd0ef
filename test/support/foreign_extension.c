/*
 * foreign_extension.c - what other extensions bring: one that takes part in the choice of paths, looks at each relation
 * and adds nothing, or puts a path of its own in the place of all others; and access methods of tables.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "fmgr.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void _PG_init(void);

PG_FUNCTION_INFO_V1(like_heap);
PG_FUNCTION_INFO_V1(without_ranges);
PG_FUNCTION_INFO_V1(of_servers);

/* An access method of its own, which does what heap does. */
Datum like_heap(PG_FUNCTION_ARGS)
{
    static TableAmRoutine routine;

    routine = *GetHeapamTableAmRoutine();
    PG_RETURN_POINTER(&routine);
}

/* One without the callbacks that are optional. */
Datum without_ranges(PG_FUNCTION_ARGS)
{
    static TableAmRoutine routine;

    routine = *GetHeapamTableAmRoutine();
    routine.scan_set_tidrange = NULL;
    routine.scan_getnextslot_tidrange = NULL;
    PG_RETURN_POINTER(&routine);
}

static bool next_of_servers(TableScanDesc scan, ScanDirection direction, TupleTableSlot *slot)
{
    if (!GetHeapamTableAmRoutine()->scan_getnextslot(scan, direction, slot))
        return false;
    ItemPointerSetBlockNumber(&slot->tts_tid, ItemPointerGetBlockNumber(&slot->tts_tid) % 3);
    return true;
}

/* Rows of several servers, say: they come server by server, and have the same places there. */
Datum of_servers(PG_FUNCTION_ARGS)
{
    static TableAmRoutine routine;

    routine = *GetHeapamTableAmRoutine();
    routine.scan_set_tidrange = NULL;
    routine.scan_getnextslot_tidrange = NULL;
    routine.scan_getnextslot = next_of_servers;
    PG_RETURN_POINTER(&routine);
}

static bool adds = false;
static set_rel_pathlist_hook_type previous = NULL;

/* To keep a table's rows before it returns them is a plan that no scan of the table stands for. */
static void choose(PlannerInfo *root, RelOptInfo *rel, Index index, RangeTblEntry *rte)
{
    if (previous != NULL)
        previous(root, rel, index, rte);
    if (!adds || rte->rtekind != RTE_RELATION || rel->pathlist == NIL)
        return;
#if PG_VERSION_NUM >= 190000
    MaterialPath *const path = create_material_path(rel, linitial(rel->pathlist), true);
#else
    MaterialPath *const path = create_material_path(rel, linitial(rel->pathlist));
#endif

    rel->pathlist = list_make1(path);
}

void _PG_init(void)
{
    DefineCustomBoolVariable("stranger.adds", "Whether it adds a path.", NULL, &adds, false, PGC_USERSET, 0, NULL, NULL,
                             NULL);
    previous = set_rel_pathlist_hook;
    set_rel_pathlist_hook = choose;
}
