/*
 * pinned_slices.cpp - slices of shared memory on their way from a parallel worker to its leader.
 */
#include "pg/shared/pinned_slices.h"

#include "pg/compat.h"
#include "pg/shared/structs.h"

extern "C" {
#include "access/parallel.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "postmaster/bgworker.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/resowner.h"
}

/* Another layout gets another name: a library of another version may be loaded beside this one. */
#define LIST_NAME "pg_kmeans pinned slices 2"

#define TRANCHE_NAME "pg_kmeans pinned slices"

/* Enough for the workers of a few parallel queries at a time. Rows of others are copied. */
#define MOST_PINNED 512

struct PinnedSlice {
    dsm_handle slice;
    dsm_handle query; /* the parallel query's own segment */
    int leader;
};

struct PinnedSlices {
    LWLock lock; /* guards the places */
    int tranche;
    pg_atomic_uint32 n; /* changed under the lock */
    PinnedSlice places[MOST_PINNED];
};

static void init_list(void *memory)
{
    PinnedSlices *const list = (PinnedSlices *)memory;

    memset(list, 0, sizeof *list);
    list->tranche = pgkm_new_tranche(TRANCHE_NAME);
    LWLockInitialize(&list->lock, list->tranche);
    pg_atomic_init_u32(&list->n, 0);
}

/* NULL until this process has asked for it, or where there is no room for it. */
static PinnedSlices *known = NULL;

/* NULL when there is no room for it. */
static PinnedSlices *pinned(void)
{
    static bool tried = false;

    if (!tried && IsUnderPostmaster) {
        tried = true;
        known = (PinnedSlices *)shared_struct(LIST_NAME, sizeof(PinnedSlices), init_list);
        if (known != NULL)
            pgkm_register_tranche(known->tranche, TRANCHE_NAME);
    }
    return known;
}

/* Under the lock. */
static int find(const PinnedSlices *list, dsm_handle slice)
{
    const int n = (int)pg_atomic_read_u32(&((PinnedSlices *)list)->n);

    for (int i = 0; i < n; ++i)
        if (list->places[i].slice == slice)
            return i;
    return -1;
}

/* Under the lock. */
static void remove_place(PinnedSlices *list, int place)
{
    const uint32 last = pg_atomic_read_u32(&list->n) - 1;

    list->places[place] = list->places[last];
    pg_atomic_write_u32(&list->n, last);
}

static bool enlist(PinnedSlices *list, const SharedSlice *slices, int n_slices)
{
    const dsm_handle query = DatumGetUInt32(MyBgworkerEntry->bgw_main_arg);
    const int leader = MyProc->lockGroupLeader->pid;
    bool possible;

    LWLockAcquire(&list->lock, LW_EXCLUSIVE);

    const uint32 n = pg_atomic_read_u32(&list->n);

    possible = n + n_slices <= MOST_PINNED;
    for (int i = 0; i < n_slices && possible; ++i)
        possible = find(list, slices[i].handle) < 0;
    for (int i = 0; i < n_slices && possible; ++i)
        list->places[n + i] = {slices[i].handle, query, leader};
    if (possible)
        pg_atomic_write_u32(&list->n, n + n_slices);
    LWLockRelease(&list->lock);
    return possible;
}

bool pinned_slices_add(const SharedSlice *slices, int n_slices)
{
    PinnedSlices *const list = pinned();

    if (list == NULL || !IsParallelWorker() || MyProc->lockGroupLeader == NULL)
        return false;

    /* A slice in the list is pinned, for whoever finds it there later. So nothing may come in between. */
    HOLD_INTERRUPTS();

    const bool possible = enlist(list, slices, n_slices);

    for (int i = 0; i < n_slices && possible; ++i)
        dsm_pin_segment(dsm_find_mapping(slices[i].handle));
    RESUME_INTERRUPTS();
    return possible;
}

bool pinned_slices_take(const SharedSlice *slices, int n_slices)
{
    PinnedSlices *const list = pinned();
    bool all = list != NULL;

    if (!all)
        return false;
    HOLD_INTERRUPTS();
    LWLockAcquire(&list->lock, LW_EXCLUSIVE);
    for (int i = 0; i < n_slices && all; ++i)
        all = find(list, slices[i].handle) >= 0;
    for (int i = 0; i < n_slices && all; ++i)
        remove_place(list, find(list, slices[i].handle));
    LWLockRelease(&list->lock);
    for (int i = 0; i < n_slices && all; ++i)
        dsm_unpin_segment(slices[i].handle);
    RESUME_INTERRUPTS();
    return all;
}

/* The slices of this process's queries that are over. */
static int abandoned(PinnedSlices *list, SharedSlice *slices)
{
    PinnedSlice places[MOST_PINNED];
    int n_slices = 0;

    LWLockAcquire(&list->lock, LW_SHARED);

    const int n = (int)pg_atomic_read_u32(&list->n);

    memcpy(places, list->places, n * sizeof(PinnedSlice));
    LWLockRelease(&list->lock);
    for (int i = 0; i < n; ++i)
        if (places[i].leader == MyProcPid && dsm_find_mapping(places[i].query) == NULL)
            slices[n_slices++] = {places[i].slice, 0};
    return n_slices;
}

/* Called when resources are released, also of a transaction that fails. */
static void drop_abandoned(ResourceReleasePhase phase, bool, bool, void *)
{
    SharedSlice slices[MOST_PINNED];

    if (phase != RESOURCE_RELEASE_AFTER_LOCKS || known == NULL || IsParallelWorker())
        return;
    if (pg_atomic_read_u32(&known->n) > 0)
        (void)pinned_slices_take(slices, abandoned(known, slices));
}

void pinned_slices_expect(void)
{
    (void)pinned();
}

void pinned_slices_install(void)
{
    RegisterResourceReleaseCallback(drop_abandoned, NULL);
    if (process_shared_preload_libraries_in_progress)
        shared_struct_request(sizeof(PinnedSlices));
}
