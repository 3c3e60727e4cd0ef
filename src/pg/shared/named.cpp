/*
 * named.cpp - finds or makes a struct in shared memory, with and without preloading.
 */
#include "pg/shared/named.h"

extern "C" {
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#if PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#endif
}

/* 17 has named segments (8b2bcf3f287c), whose init has one more argument in 19. Before, the main segment has some slack
 * for small structs that nobody asked for in time. */
static void *find_or_make(const NamedStruct *of, Size bytes)
{
    bool found;

#if PG_VERSION_NUM >= 190000
    return GetNamedDSMSegment(
        of->name, bytes, [](void *memory, void *own) { ((const NamedStruct *)own)->init(memory); }, &found, (void *)of);
#elif PG_VERSION_NUM >= 170000
    return GetNamedDSMSegment(of->name, bytes, of->init, &found);
#else
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);

    void *const memory = ShmemInitStruct(of->name, bytes, &found);

    if (!found)
        of->init(memory);
    LWLockRelease(AddinShmemInitLock);
    return memory;
#endif
}

void *pgkm_named_struct(NamedStruct *of, Size bytes)
{
    const MemoryContext context = CurrentMemoryContext;
    const uint32 holdoffs = InterruptHoldoffCount;

    if (of->tried || !IsUnderPostmaster)
        return of->found;
    of->tried = true;
    PG_TRY();
    {
        of->found = find_or_make(of, bytes);
    }
    PG_CATCH();
    {
        /* The extension works without it. The error came here with a lock of the server's still held, and no caller
         * holds another, but has reset the holdoff of interrupts. */
        MemoryContextSwitchTo(context);
        FlushErrorState();
        LWLockReleaseAll();
        InterruptHoldoffCount = holdoffs;
    }
    PG_END_TRY();
    return of->found;
}
