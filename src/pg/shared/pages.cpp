/*
 * pages.cpp - pages of memory: how much there is, asked for at once, and given back.
 */
#include "pg/shared/pages.h"

#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

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

Size shared_page_bytes(void)
{
    static Size bytes = 0;

    if (bytes == 0)
        bytes = (Size)sysconf(_SC_PAGESIZE);
    return bytes;
}

void shared_populate(char *begin, Size bytes)
{
#ifdef MADV_POPULATE_WRITE
    const uintptr_t page = shared_page_bytes();
    const uintptr_t first = TYPEALIGN_DOWN(page, (uintptr_t)begin);
    const uintptr_t end = TYPEALIGN(page, (uintptr_t)begin + bytes);

    (void)madvise((void *)first, end - first, MADV_POPULATE_WRITE);
#endif
}

void shared_discard(void *memory, Size bytes, bool shared)
{
#ifdef MADV_REMOVE
    char *const first = (char *)TYPEALIGN(shared_page_bytes(), (uintptr_t)memory);
    char *const end = (char *)TYPEALIGN_DOWN(shared_page_bytes(), (uintptr_t)memory + bytes);

    if (first < end)
        (void)madvise(first, end - first, shared ? MADV_REMOVE : MADV_DONTNEED);
#endif
}
