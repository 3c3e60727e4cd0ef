/*
 * view.cpp - maps several dynamic shared memory segments side by side, as one range of addresses.
 */
#include "pg/shared/view.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
#include "miscadmin.h"
#include "storage/dsm_impl.h"
}

/* What a directory holds. */
struct Directory {
    uint32 magic;
    int32 n_slices;
    SharedSlice slices[SHARED_VIEW_SLICES];
};

#define DIRECTORY_MAGIC 0x706b6d77

/* How many views this process has. */
static int n_views = 0;

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
    view->base = (char *)place;
    view->reserved = bytes;
    return true;
}

/* Maps a segment a second time, at an offset of the view. Linux does so when mremap is asked to move no byte. */
static bool map_again(const SharedView *view, dsm_segment *slice, Size offset, Size bytes)
{
    return offset % shared_page_bytes() == 0 && offset + bytes <= view->reserved &&
           mremap(dsm_segment_address(slice), 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, view->base + offset) !=
               MAP_FAILED;
}

static bool map_side_by_side(SharedView *view)
{
    Size offset = 0;

    if (!reserve_addresses(view, view->bytes))
        return false;
    for (int i = 0; i < view->n_slices; ++i) {
        if (!map_again(view, view->slices[i], offset, view->lengths[i]))
            return false;
        offset += view->lengths[i];
    }
    return true;
}

/* False when it is gone, or shorter. */
static bool join_slice(SharedView *view, const SharedSlice *part)
{
    dsm_segment *const slice = find_or_attach(part->handle);

    if (slice == NULL)
        return false;
    view->slices[view->n_slices] = slice;
    view->lengths[view->n_slices++] = part->bytes;
    view->bytes += part->bytes;
    return part->bytes <= dsm_segment_map_length(slice);
}

/* NULL, with nothing held, when a slice is gone or cannot be mapped. */
static SharedView *join(MemoryContext context, const SharedSlice *slices, int n_slices)
{
    SharedView *const view = (SharedView *)MemoryContextAllocZero(context, sizeof(SharedView));
    bool complete = n_slices > 0 && n_slices <= SHARED_VIEW_SLICES;

    while (complete && view->n_slices < n_slices)
        complete = join_slice(view, &slices[view->n_slices]);
    if (complete && n_slices == 1)
        view->base = (char *)dsm_segment_address(view->slices[0]);
    else if (complete)
        complete = map_side_by_side(view);
    if (complete)
        return view;
    shared_view_detach(view);
    return NULL;
}

/* The segments belong to the view from now on. The resource owner would detach them too early. */
static void keep(SharedView *view, dsm_segment *directory)
{
    for (int i = 0; i < view->n_slices; ++i)
        dsm_pin_mapping(view->slices[i]);
    dsm_pin_mapping(directory);
    view->directory = directory;
    ++n_views;
}

static Directory *directory_of(const SharedView *view)
{
    return (Directory *)dsm_segment_address(view->directory);
}

SharedSlice shared_view_slice(const SharedView *view, int index)
{
    return {dsm_segment_handle(view->slices[index]), view->lengths[index]};
}

/* Tells the directory what the view consists of. */
static void list_slices(const SharedView *view)
{
    Directory *const list = directory_of(view);

    list->magic = DIRECTORY_MAGIC;
    list->n_slices = view->n_slices;
    for (int i = 0; i < view->n_slices; ++i)
        list->slices[i] = shared_view_slice(view, i);
}

int shared_view_count(void)
{
    return n_views;
}

SharedView *shared_view_create(MemoryContext context, const SharedSlice *slices, int n_slices)
{
    dsm_segment *const directory = shared_segment_create(sizeof(Directory), 0);
    SharedView *const view = join(context, slices, n_slices);

    if (view == NULL) {
        /* A worker that was terminated has taken its slice with it. Its error comes first. */
        CHECK_FOR_INTERRUPTS();
        shared_raise_gone();
    }
    keep(view, directory);
    list_slices(view);
    return view;
}

SharedView *shared_view_begin(MemoryContext context, Size most)
{
    if (!pgkm_fits_shared_memory(sizeof(Directory)))
        return NULL;

    /* Before the addresses are reserved: they would stay so after an error. */
    dsm_segment *const directory = shared_segment_create(sizeof(Directory), DSM_CREATE_NULL_IF_MAXSEGMENTS);

    if (directory == NULL)
        return NULL;

    SharedView *const view = (SharedView *)MemoryContextAllocZero(context, sizeof(SharedView));

    if (!reserve_addresses(view, shared_slice_bytes(most, 1))) {
        pfree(view);
        dsm_detach(directory);
        return NULL;
    }
    keep(view, directory);
    list_slices(view);
    return view;
}

int shared_view_room(const SharedView *view, Size bytes)
{
    return bytes > view->reserved - view->bytes ? 0 : SHARED_VIEW_SLICES - view->n_slices;
}

/* Behind the others. False, with nothing done, when it cannot be mapped there. */
static bool add_slice(SharedView *view, dsm_segment *slice, Size bytes)
{
    if (!map_again(view, slice, view->bytes, bytes))
        return false;
    dsm_pin_mapping(slice);
    view->slices[view->n_slices] = slice;
    view->lengths[view->n_slices++] = bytes;
    view->bytes += bytes;
    list_slices(view);
    return true;
}

bool shared_view_extend(SharedView *view, Size bytes)
{
    const Size length = shared_slice_bytes(bytes, 1);

    if (shared_view_room(view, length) == 0 || !pgkm_fits_shared_memory((double)length))
        return false;

    dsm_segment *const slice = shared_segment_create(length, DSM_CREATE_NULL_IF_MAXSEGMENTS);

    if (slice == NULL)
        return false;
    if (add_slice(view, slice, length))
        return true;
    dsm_detach(slice);
    return false;
}

void shared_view_append(SharedView *view, dsm_segment *slice, Size bytes)
{
    if (!add_slice(view, slice, bytes))
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("could not map dynamic shared memory segment")));
}

/* Addresses go back to being reserved. */
static void unmap(const SharedView *view, Size begin, Size end)
{
    if (begin < end)
        (void)mmap(view->base + begin, end - begin, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
                   -1, 0);
}

void shared_view_truncate(SharedView *view, Size bytes)
{
    unmap(view, bytes, view->bytes);
    while (view->n_slices > 0 && view->bytes - view->lengths[view->n_slices - 1] >= bytes) {
        view->bytes -= view->lengths[--view->n_slices];
        dsm_detach(view->slices[view->n_slices]);
    }
    if (view->bytes > bytes) {
        dsm_segment *const last = view->slices[view->n_slices - 1];
        Size *const length = &view->lengths[view->n_slices - 1];

        *length -= view->bytes - bytes;
        view->bytes = bytes;
        (void)madvise((char *)dsm_segment_address(last) + *length, dsm_segment_map_length(last) - *length, MADV_REMOVE);
    }
    list_slices(view);
}

SharedView *shared_view_attach(MemoryContext context, dsm_handle handle)
{
    dsm_segment *const directory = dsm_attach(handle);
    SharedView *view = NULL;

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

bool shared_view_is_current(const SharedView *view)
{
    const Directory *const list = directory_of(view);
    bool same = list->n_slices == view->n_slices;

    for (int i = 0; same && i < view->n_slices; ++i) {
        const SharedSlice slice = shared_view_slice(view, i);

        same = list->slices[i].handle == slice.handle && list->slices[i].bytes == slice.bytes;
    }
    return same;
}

/* False when that is not possible; part of it may be written then. */
static bool write_to_file(const dsm_segment *slice, Size offset, const char *from, Size bytes)
{
    char name[64];

    if (dynamic_shared_memory_type != DSM_IMPL_POSIX)
        return false;
    /* As dsm_impl.c names it. */
    snprintf(name, sizeof name, "/PostgreSQL.%u", dsm_segment_handle((dsm_segment *)slice));

    const int file = shm_open(name, O_RDWR, 0);

    if (file < 0)
        return false;
    while (bytes > 0) {
        const ssize_t written = pwrite(file, from, bytes, (off_t)offset);

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
    const char *from = (const char *)source;
    Size begin = 0;

    for (int i = 0; i < view->n_slices && bytes > 0; ++i) {
        const Size end = begin + view->lengths[i];

        if (offset < end) {
            const Size part = Min(bytes, end - offset);

            if (!write_to_file(view->slices[i], offset - begin, from, part)) {
                shared_populate(view->base + offset, part);
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
        (void)munmap(view->base, view->reserved);
    for (int i = 0; i < view->n_slices; ++i)
        dsm_detach(view->slices[i]);
    if (view->directory != NULL) {
        dsm_detach(view->directory);
        --n_views;
    }
    pfree(view);
}
