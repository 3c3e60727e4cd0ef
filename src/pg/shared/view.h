/*
 * view.h - one range of addresses made of several dynamic shared memory segments.
 *
 * The system takes its time to provide the memory of a segment. If one process creates a large one, the
 * others wait. So every process that has rows to leave creates a slice, all at the same time, and each
 * process maps all slices side by side as if they were one. A directory stands for the whole: a small
 * segment that lists the slices. Its handle is the view's name in other processes.
 *
 * All slices but the last are as long as shared_slice_bytes says, or cut to whole pages, so that pages meet
 * at their edges. Sizes and offsets are in bytes.
 */
#ifndef PGKM_PG_SHARED_VIEW_H
#define PGKM_PG_SHARED_VIEW_H

#include "pg/shared/slice.h"

#define SHARED_VIEW_SLICES 256 /* at most */

struct SharedView {
    char *base;
    Size bytes;
    Size reserved; /* of addresses from base on; 0: they are the only slice's */
    dsm_segment *directory;
    int n_slices;
    dsm_segment *slices[SHARED_VIEW_SLICES];
    Size lengths[SHARED_VIEW_SLICES]; /* of the slices in the view */
};

/* A view of slices that any process may have created, with a new directory. The struct lies in `context`;
 * the view stays mapped until it is detached. 55000 when a slice is gone; the server's error when there is
 * no memory. */
SharedView *shared_view_create(MemoryContext context, const SharedSlice *slices, int n_slices);

/* The view that a directory describes; NULL when it is gone. */
SharedView *shared_view_attach(MemoryContext context, dsm_handle directory);

/* Whether the directory still describes the view as it was attached. */
bool shared_view_is_current(const SharedView *view);

/* A view without slices yet, of up to `most` bytes; NULL when there are no addresses, or no segments, for it. */
SharedView *shared_view_begin(MemoryContext context, Size most);

/* Adds a slice of so many bytes or a little more; false when the view has no place for it. */
bool shared_view_extend(SharedView *view, Size bytes);

/* How many slices of `bytes` together the view still has place for. */
int shared_view_room(const SharedView *view, Size bytes);

/* Adds the first `bytes`, whole pages, of a segment that this process has mapped. From now on the view
 * detaches it, and nobody else in this process does. Only where there is room; 53200 when it cannot be
 * mapped there. */
void shared_view_append(SharedView *view, dsm_segment *slice, Size bytes);

/* Cuts the view to so many bytes, whole pages. The memory behind them goes back to the system. */
void shared_view_truncate(SharedView *view, Size bytes);

/* The view's slice number `index`, for other processes. */
SharedSlice shared_view_slice(const SharedView *view, int index);

/* Copies bytes to an offset of the view. Where the server's shared memory has files it writes to these, so
 * that this process need not map every page. Other processes may write beside it. */
void shared_view_write(SharedView *view, Size offset, const void *from, Size bytes);

/* How many views this process has. */
int shared_view_count(void);

/* Unmaps the view and frees the struct. */
void shared_view_detach(SharedView *view);

#endif
