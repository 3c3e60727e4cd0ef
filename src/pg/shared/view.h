/*
 * view.h - one stretch of shared memory made of several dynamic shared memory segments.
 *
 * The system provides the memory of a segment when it is created, and takes its time: of one large
 * segment in one process, while the others wait. So every process that has rows to leave creates a
 * slice, at the same time, and each maps all slices side by side as if they were one. A directory, a
 * small segment that lists them, stands for the whole in other processes: its handle is the view's.
 *
 * All slices but the last are as long as shared_slice_bytes says, or cut to whole pages, so that pages
 * meet at their edges.
 */
#ifndef PGKM_PG_SHARED_VIEW_H
#define PGKM_PG_SHARED_VIEW_H

#include "pg/shared/slice.h"

#define SHARED_VIEW_SLICES 256 /* at most */

struct SharedView {
    char        *base;
    Size         bytes;
    Size         reserved; /* of addresses from base on; 0: they are the only slice's */
    dsm_segment *directory;
    int          n_slices;
    dsm_segment *slices[SHARED_VIEW_SLICES];
    Size         lengths[SHARED_VIEW_SLICES]; /* of the slices in the view */
    SharedView  *next; /* for a list of its owner's */
};

/* The slices (which other processes may have created) as one view, with a directory. A view is
 * allocated in `context` and stays mapped until it is detached. */
SharedView *shared_view_create(MemoryContext context, const SharedSlice *slices, int n_slices);

/* The view that a directory describes; NULL when it is gone. */
SharedView *shared_view_attach(MemoryContext context, dsm_handle directory);

/* Whether the directory still describes the view as it was attached. */
bool shared_view_is_current(const SharedView *view);

/* A view without slices yet, of up to `most` bytes; NULL when there are no addresses, or no segments, for it. */
SharedView *shared_view_begin(MemoryContext context, Size most);

/* Lets it grow by one slice of so many bytes or a little more; false when it has no place for that. */
bool shared_view_extend(SharedView *view, Size bytes);

/* Slices that the view can still be extended by, when they are of so many bytes together. */
int shared_view_room(const SharedView *view, Size bytes);

/* Adds the first `bytes`, whole pages, of a segment that this process has mapped and that nobody else
 * in it detaches: the view does from now on. Only where there is room. */
void shared_view_append(SharedView *view, dsm_segment *slice, Size bytes);

/* Cuts the view to so many bytes, whole pages: memory behind them goes back to the system. */
void shared_view_truncate(SharedView *view, Size bytes);

/* The view's slice number `index`, for other processes. */
SharedSlice shared_view_slice(const SharedView *view, int index);

/* Copies bytes to an offset of the view: through the slices' files where the server's shared memory
 * has files, which spares this process the mapping of every page. Other processes may write beside it. */
void shared_view_write(SharedView *view, Size offset, const void *from, Size bytes);

/* How many views this process has. */
int shared_view_count(void);

void shared_view_detach(SharedView *view);

#endif
