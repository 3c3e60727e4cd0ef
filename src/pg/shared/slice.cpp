/*
 * slice.cpp - creates, maps and drops dynamic shared memory segments.
 */
#include "pg/shared/slice.h"

#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

extern "C" {
#include "storage/dsm_impl.h"
}

/* Whatever the size of a page is. */
#define SLICE_ALIGNMENT ((Size)64 * 1024)

/* Called while an error is being reported. */
static void hint_at_shared_memory(void *)
{
    if (geterrcode() != ERRCODE_QUERY_CANCELED)
        errhint("Provide more shared memory, or set max_parallel_workers_per_gather to 0: one process needs none.");
}

dsm_segment *shared_segment_create(Size bytes, int flags)
{
    ErrorContextCallback callback;

    callback.callback = hint_at_shared_memory;
    callback.arg = NULL;
    callback.previous = error_context_stack;
    error_context_stack = &callback;

    dsm_segment *const segment = dsm_create(bytes, flags);

    error_context_stack = callback.previous;
    return segment;
}

void shared_raise_gone(void)
{
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("could not map dynamic shared memory segment")));
    pg_unreachable();
}

dsm_segment *shared_segment_attach(dsm_handle handle)
{
    dsm_segment *const segment = dsm_attach(handle);

    if (segment == NULL)
        shared_raise_gone();
    return segment;
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

Size shared_slice_bytes(Size total, int count)
{
    count = Max(count, 1);
    return TYPEALIGN(SLICE_ALIGNMENT, Max(total / count + (total % count != 0), (Size)1));
}

SharedSlice shared_slice_create(Size bytes)
{
    dsm_segment *const segment = shared_segment_create(bytes, 0);

    return {dsm_segment_handle(segment), dsm_segment_map_length(segment)};
}

void shared_slice_drop(const SharedSlice *slice)
{
    dsm_segment *const segment = dsm_find_mapping(slice->handle);

    if (segment != NULL)
        dsm_detach(segment);
}
