/*
 * shared_view.cpp - one stretch of shared memory made of several dynamic shared memory segments.
 */
#include "pg/shared_view.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

extern "C" {
#include "miscadmin.h"
#include "storage/dsm_impl.h"
}

/* Whatever the size of a page is. */
#define SLICE_ALIGNMENT ((Size) 64 * 1024)

/* What a directory holds. */
struct Directory {
    uint32     magic;
    int32      n_slices;
    dsm_handle slices[SHARED_VIEW_SLICES];
};

#define DIRECTORY_MAGIC 0x706b6d76

/* Called while an error is being reported. */
static void hint_at_shared_memory(void *)
{
    if (geterrcode() != ERRCODE_QUERY_CANCELED)
        errhint("Provide more shared memory, or set max_parallel_workers_per_gather to 0: one process needs none.");
}

/* How many views this process has. */
static int n_views = 0;

/* With DSM_CREATE_NULL_IF_MAXSEGMENTS, NULL when the server has no more segments to give. */
static dsm_segment *create_segment(Size bytes, int flags)
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

/* What the folder's name is elsewhere than on Linux does not matter, the error comes then. */
bool pgkm_fits_shared_memory(double bytes)
{
    struct statvfs space;

    return dynamic_shared_memory_type != DSM_IMPL_POSIX || statvfs("/dev/shm", &space) != 0 ||
           bytes < (double) space.f_bavail * space.f_frsize;
}

Size shared_slice_bytes(Size total, int count)
{
    count = Min(Max(count, 1), SHARED_VIEW_SLICES - 1);
    return TYPEALIGN(SLICE_ALIGNMENT, Max(total / count + (total % count != 0), (Size) 1));
}

dsm_handle shared_slice_create(Size bytes)
{
    return dsm_segment_handle(create_segment(bytes, 0));
}

void shared_slice_drop(dsm_handle slice)
{
    dsm_segment *const segment = dsm_find_mapping(slice);

    if (segment != NULL)
        dsm_detach(segment);
}

/* A process maps a segment once, and this one may be its own. */
static dsm_segment *find_or_attach(dsm_handle handle)
{
    dsm_segment *const segment = dsm_find_mapping(handle);

    return segment == NULL ? dsm_attach(handle) : segment;
}

static bool reserve_addresses(SharedView *view, Size bytes)
{
    void *const place = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (place == MAP_FAILED)
        return false;
    view->base = (char *) place;
    view->reserved = bytes;
    return true;
}

/* At an offset among the addresses of the view: Linux maps shared memory a second time when it is
 * asked to move none of it. */
static bool map_again(const SharedView *view, dsm_segment *slice, Size offset)
{
    const Size bytes = dsm_segment_map_length(slice);

    return offset % SLICE_ALIGNMENT == 0 && offset + bytes <= view->reserved &&
           mremap(dsm_segment_address(slice), 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, view->base + offset) != MAP_FAILED;
}

static bool map_side_by_side(SharedView *view)
{
    Size offset = 0;

    if (!reserve_addresses(view, view->bytes))
        return false;
    for (int i = 0; i < view->n_slices; ++i) {
        if (!map_again(view, view->slices[i], offset))
            return false;
        offset += dsm_segment_map_length(view->slices[i]);
    }
    return true;
}

/* NULL, with nothing held, when a slice is gone or cannot be mapped. */
static SharedView *join(MemoryContext context, const dsm_handle *slices, int n_slices)
{
    SharedView *const view = (SharedView *) MemoryContextAllocZero(context, sizeof(SharedView));
    bool              complete = n_slices > 0 && n_slices <= SHARED_VIEW_SLICES;

    while (complete && view->n_slices < n_slices) {
        dsm_segment *const slice = find_or_attach(slices[view->n_slices]);

        complete = slice != NULL;
        if (complete) {
            view->slices[view->n_slices++] = slice;
            view->bytes += dsm_segment_map_length(slice);
        }
    }
    if (complete && n_slices == 1)
        view->base = (char *) dsm_segment_address(view->slices[0]);
    else if (complete)
        complete = map_side_by_side(view);
    if (complete)
        return view;
    shared_view_detach(view);
    return NULL;
}

/* From the resource owner, which would take the segments first, to the view. */
static void keep(SharedView *view, dsm_segment *directory)
{
    for (int i = 0; i < view->n_slices; ++i)
        dsm_pin_mapping(view->slices[i]);
    dsm_pin_mapping(directory);
    view->directory = directory;
    ++n_views;
}

int shared_view_count(void)
{
    return n_views;
}

SharedView *shared_view_create(MemoryContext context, const dsm_handle *slices, int n_slices)
{
    dsm_segment *const directory = create_segment(sizeof(Directory), 0);
    Directory *const   list = (Directory *) dsm_segment_address(directory);
    SharedView *const  view = join(context, slices, n_slices);

    if (view == NULL) {
        /* A worker that was terminated has taken its slice along, and may have said so. */
        CHECK_FOR_INTERRUPTS();
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("could not map dynamic shared memory segment")));
    }
    list->magic = DIRECTORY_MAGIC;
    list->n_slices = n_slices;
    memcpy(list->slices, slices, n_slices * sizeof(dsm_handle));
    keep(view, directory);
    return view;
}

SharedView *shared_view_begin(MemoryContext context, Size most)
{
    dsm_segment *const directory = create_segment(sizeof(Directory), 0);
    Directory *const   list = (Directory *) dsm_segment_address(directory);
    SharedView *const  view = (SharedView *) MemoryContextAllocZero(context, sizeof(SharedView));

    if (!reserve_addresses(view, TYPEALIGN(SLICE_ALIGNMENT, Max(most, (Size) 1))))
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("could not map dynamic shared memory segment")));
    memset(list, 0, sizeof *list);
    list->magic = DIRECTORY_MAGIC;
    keep(view, directory);
    return view;
}

bool shared_view_extend(SharedView *view, Size bytes)
{
    Directory *const list = (Directory *) dsm_segment_address(view->directory);
    const Size       length = TYPEALIGN(SLICE_ALIGNMENT, bytes);

    if (view->n_slices == SHARED_VIEW_SLICES || length > view->reserved - view->bytes)
        return false;
    if (!pgkm_fits_shared_memory((double) length))
        return false;

    dsm_segment *const slice = create_segment(length, DSM_CREATE_NULL_IF_MAXSEGMENTS);

    if (slice == NULL)
        return false;
    if (!map_again(view, slice, view->bytes)) {
        dsm_detach(slice);
        return false;
    }
    dsm_pin_mapping(slice);
    view->slices[view->n_slices++] = slice;
    view->bytes += length;
    list->slices[list->n_slices++] = dsm_segment_handle(slice);
    return true;
}

SharedView *shared_view_attach(MemoryContext context, dsm_handle handle)
{
    dsm_segment *const directory = dsm_attach(handle);
    SharedView        *view = NULL;

    if (directory == NULL)
        return NULL;
    if (dsm_segment_map_length(directory) >= sizeof(Directory)) {
        Directory list;

        memcpy(&list, dsm_segment_address(directory), sizeof list);
        if (list.magic == DIRECTORY_MAGIC)
            view = join(context, list.slices, list.n_slices);
    }
    if (view == NULL) {
        dsm_detach(directory);
        return NULL;
    }
    keep(view, directory);
    return view;
}

/* Fresh pages cost less when they are asked for at once than one fault at a time. Where that
 * is not to be had, the faults come. */
static void populate(char *begin, Size bytes)
{
#ifdef MADV_POPULATE_WRITE
    const uintptr_t page = 4096;
    const uintptr_t first = TYPEALIGN_DOWN(page, (uintptr_t) begin);
    const uintptr_t end = TYPEALIGN(page, (uintptr_t) begin + bytes);

    (void) madvise((void *) first, end - first, MADV_POPULATE_WRITE);
#endif
}

/* False when that is not possible; part of it may be written then. */
static bool write_to_file(const dsm_segment *slice, Size offset, const char *from, Size bytes)
{
    char name[64];

    if (dynamic_shared_memory_type != DSM_IMPL_POSIX)
        return false;
    /* As dsm_impl.c names it. */
    snprintf(name, sizeof name, "/PostgreSQL.%u", dsm_segment_handle((dsm_segment *) slice));

    const int file = shm_open(name, O_RDWR, 0);

    if (file < 0)
        return false;
    while (bytes > 0) {
        const ssize_t written = pwrite(file, from, bytes, (off_t) offset);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        offset += written;
        from += written;
        bytes -= written;
    }
    close(file);
    return bytes == 0;
}

void shared_view_write(SharedView *view, Size offset, const void *source, Size bytes)
{
    const char *from = (const char *) source;
    Size        begin = 0;

    for (int i = 0; i < view->n_slices && bytes > 0; ++i) {
        const Size end = begin + dsm_segment_map_length(view->slices[i]);

        if (offset < end) {
            const Size part = Min(bytes, end - offset);

            if (!write_to_file(view->slices[i], offset - begin, from, part)) {
                populate(view->base + offset, part);
                memcpy(view->base + offset, from, part);
            }
            offset += part;
            from += part;
            bytes -= part;
        }
        begin = end;
    }
}

void shared_view_detach(SharedView *view)
{
    if (view->reserved > 0)
        (void) munmap(view->base, view->reserved);
    for (int i = 0; i < view->n_slices; ++i)
        dsm_detach(view->slices[i]);
    if (view->directory != NULL) {
        dsm_detach(view->directory);
        --n_views;
    }
    pfree(view);
}
