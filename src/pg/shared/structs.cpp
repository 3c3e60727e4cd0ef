/*
 * structs.cpp - finds or makes small structs that all processes of the server share, by their names.
 */
#include "pg/shared/structs.h"

extern "C" {
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/resowner.h"
#if PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#endif
}

/* 17 has named segments (8b2bcf3f287c), whose callback has one more argument from 19 on. Before,
 * the main segment has some slack for small structs that nobody asked for in time. */
#if PG_VERSION_NUM >= 190000
static void (*init_named)(void *memory);

static void call_init(void *memory, void *)
{
    init_named(memory);
}

static void *find(const char *name, Size size, void (*init)(void *))
{
    bool found;

    init_named = init;
    return GetNamedDSMSegment(name, size, call_init, &found, NULL);
}
#elif PG_VERSION_NUM >= 170000
static void *find(const char *name, Size size, void (*init)(void *))
{
    bool found;

    return GetNamedDSMSegment(name, size, init, &found);
}
#else
static void *find(const char *name, Size size, void (*init)(void *))
{
    bool found;

    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);

    void *const memory = ShmemInitStruct(name, size, &found);

    if (!found)
        init(memory);
    LWLockRelease(AddinShmemInitLock);
    return memory;
}
#endif

void *shared_struct(const char *name, Size size, void (*init)(void *))
{
    void *volatile memory = NULL;
    MemoryContext context = CurrentMemoryContext;
    const ResourceOwner owner = CurrentResourceOwner;
    const uint32 holdoffs = InterruptHoldoffCount;

    /* No resource owner: the struct stays mapped, even if a transaction's resources are being released at the
     * moment. */
    CurrentResourceOwner = NULL;
    PG_TRY();
    {
        memory = find(name, size, init);
    }
    PG_CATCH();
    {
        /* The error came here with the lock still held, but has reset the holdoff of interrupts. */
        MemoryContextSwitchTo(context);
        FlushErrorState();
        InterruptHoldoffCount = holdoffs;
#if PG_VERSION_NUM < 170000
        if (LWLockHeldByMe(AddinShmemInitLock)) {
            HOLD_INTERRUPTS(); /* which the release resumes */
            LWLockRelease(AddinShmemInitLock);
        }
#else
        LWLockReleaseAll(); /* of the server's table of names; our callers hold none */
#endif
    }
    PG_END_TRY();
    CurrentResourceOwner = owner;
    return memory;
}

#if PG_VERSION_NUM < 170000
static shmem_request_hook_type next_hook = NULL;
static Size requested = 0;

static void request_memory(void)
{
    if (next_hook != NULL)
        next_hook();
    RequestAddinShmemSpace(requested);
}
#endif

void shared_struct_request(Size bytes)
{
#if PG_VERSION_NUM < 170000
    if (requested == 0) {
        next_hook = shmem_request_hook;
        shmem_request_hook = request_memory;
    }
    requested += MAXALIGN(bytes);
#else
    (void)bytes;
#endif
}
