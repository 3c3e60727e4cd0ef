/*
 * state.cpp - finds or makes the service's struct in shared memory, with and without preloading.
 */
#include "pg/service/state.h"

extern "C" {
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#if PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#endif
}

/* Another layout gets another name: a library of another version may be loaded beside this one. */
#define STATE_NAME "pg_kmeans service 1"

/* 19 has one more argument. */
#if PG_VERSION_NUM >= 190000
static void init_state(void *memory, void *)
#else
static void init_state(void *memory)
#endif
{
    ServiceState *const state = (ServiceState *)memory;

    memset(state, 0, sizeof *state);
    SpinLockInit(&state->mutex);
}

/* 17 has named segments (8b2bcf3f287c). Before, the main segment has some slack for small structs that nobody asked for
 * in time. */
static void *find_or_make(void)
{
    bool found;

#if PG_VERSION_NUM >= 190000
    return GetNamedDSMSegment(STATE_NAME, sizeof(ServiceState), init_state, &found, NULL);
#elif PG_VERSION_NUM >= 170000
    return GetNamedDSMSegment(STATE_NAME, sizeof(ServiceState), init_state, &found);
#else
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);

    void *const memory = ShmemInitStruct(STATE_NAME, sizeof(ServiceState), &found);

    if (!found)
        init_state(memory);
    LWLockRelease(AddinShmemInitLock);
    return memory;
#endif
}

ServiceState *pgkm_service_state(void)
{
    static ServiceState *volatile state = NULL;
    static bool tried = false;
    const MemoryContext context = CurrentMemoryContext;
    const uint32 holdoffs = InterruptHoldoffCount;

    if (tried || !IsUnderPostmaster)
        return state;
    tried = true;
    PG_TRY();
    {
        state = (ServiceState *)find_or_make();
    }
    PG_CATCH();
    {
        /* Without room for it the extension works without a service. The error came here with a lock of the server's
         * still held, and no caller holds another, but has reset the holdoff of interrupts. */
        MemoryContextSwitchTo(context);
        FlushErrorState();
        LWLockReleaseAll();
        InterruptHoldoffCount = holdoffs;
    }
    PG_END_TRY();
    return state;
}

uint32 pgkm_service_plugin_hash(const char *path)
{
    return hash_bytes((const unsigned char *)path, (int)strlen(path));
}
