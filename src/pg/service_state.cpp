/*
 * service_state.cpp - the service's few words in shared memory, with and without preloading.
 */
#include "pg/service_state.h"

extern "C" {
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#if PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#endif
}

/* Another layout gets another name: a library of another version may be loaded beside this one. */
#define STATE_NAME "pg_kmeans service 1"

static void init_state(void *memory)
{
    ServiceState *const state = (ServiceState *)memory;

    memset(state, 0, sizeof *state);
    SpinLockInit(&state->mutex);
}

/* 17 has named segments (8b2bcf3f287c), whose callback has one more argument from 19 on. Before,
 * the main segment has some slack for small structs that nobody asked for in time. */
#if PG_VERSION_NUM >= 190000
static void init_named(void *memory, void *)
{
    init_state(memory);
}

static ServiceState *find_state(void)
{
    bool found;

    return (ServiceState *)GetNamedDSMSegment(STATE_NAME, sizeof(ServiceState), init_named, &found, NULL);
}
#elif PG_VERSION_NUM >= 170000
static ServiceState *find_state(void)
{
    bool found;

    return (ServiceState *)GetNamedDSMSegment(STATE_NAME, sizeof(ServiceState), init_state, &found);
}
#else
static ServiceState *find_state(void)
{
    bool found;

    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);

    ServiceState *const state = (ServiceState *)ShmemInitStruct(STATE_NAME, sizeof(ServiceState), &found);

    if (!found)
        init_state(state);
    LWLockRelease(AddinShmemInitLock);
    return state;
}
#endif

ServiceState *pgkm_service_state(void)
{
    static ServiceState *volatile state = NULL;
    static bool tried = false;
    MemoryContext context = CurrentMemoryContext;
    const uint32 holdoffs = InterruptHoldoffCount;

    if (tried || !IsUnderPostmaster)
        return state;
    tried = true;
    PG_TRY();
    {
        state = find_state();
    }
    PG_CATCH();
    {
        /* No room: the extension works without a service. The error's way here has left the
         * lock held, and its holdoff of interrupts forgotten. */
        MemoryContextSwitchTo(context);
        FlushErrorState();
        InterruptHoldoffCount = holdoffs;
#if PG_VERSION_NUM < 170000
        if (LWLockHeldByMe(AddinShmemInitLock)) {
            HOLD_INTERRUPTS(); /* which the release resumes */
            LWLockRelease(AddinShmemInitLock);
        }
#endif
    }
    PG_END_TRY();
    return state;
}

uint32 pgkm_service_plugin_hash(const char *path)
{
    return hash_bytes((const unsigned char *) path, (int) strlen(path));
}

#if PG_VERSION_NUM < 170000
static shmem_request_hook_type next_hook = NULL;

static void request_memory(void)
{
    if (next_hook != NULL)
        next_hook();
    RequestAddinShmemSpace(MAXALIGN(sizeof(ServiceState)));
}
#endif

void pgkm_service_request_memory(void)
{
#if PG_VERSION_NUM < 170000
    next_hook = shmem_request_hook;
    shmem_request_hook = request_memory;
#endif
}
