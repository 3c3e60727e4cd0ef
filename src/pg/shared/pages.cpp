/*
 * pages.cpp - pages of memory: how much there is, taken, and given back.
 */
#include "pg/shared/pages.h"

#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "pg/compat.h"

extern "C" {
#include "storage/dsm_impl.h"
}

/* Looks at Linux's folder. Elsewhere the server's error comes when there is no memory. */
bool pgkm_fits_shared_memory(double bytes)
{
    struct statvfs space;

    return dynamic_shared_memory_type != DSM_IMPL_POSIX || statvfs("/dev/shm", &space) != 0 ||
           bytes < (double)space.f_bavail * space.f_frsize;
}

/* An area grows by segments, each at most as large as all before. Other processes may make one at the same moment. */
dsa_pointer shared_allocate(dsa_area *area, dsa_pointer last, Size bytes)
{
    if (!pgkm_fits_shared_memory((double)bytes + 2 * (double)pgkm_area_bytes(area, last)))
        return InvalidDsaPointer;

    return dsa_allocate_extended(area, bytes, DSA_ALLOC_NO_OOM | (bytes >= MaxAllocSize ? DSA_ALLOC_HUGE : 0));
}

#define LARGE_PAGE_BYTES ((Size)2 * 1024 * 1024)

void shared_large_pages(void *memory, Size bytes)
{
#ifdef MADV_HUGEPAGE
    static const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    char *const first = (char *)TYPEALIGN_DOWN(page, (uintptr_t)memory);
    char *const end = (char *)TYPEALIGN(page, (uintptr_t)memory + bytes);

    /* All of it: a mapping whose parts differ cannot grow in place. */
    if (bytes >= LARGE_PAGE_BYTES)
        (void)madvise(first, end - first, MADV_HUGEPAGE);
#endif
}

void shared_discard(void *memory, Size bytes, bool shared)
{
#ifdef MADV_REMOVE
    static const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    char *const first = (char *)TYPEALIGN(page, (uintptr_t)memory);
    char *const end = (char *)TYPEALIGN_DOWN(page, (uintptr_t)memory + bytes);

    if (first < end)
        (void)madvise(first, end - first, shared ? MADV_REMOVE : MADV_DONTNEED);
#endif
}
