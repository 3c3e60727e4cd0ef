/*
 * shared_view.h - one stretch of shared memory made of several dynamic shared memory segments.
 *
 * The system provides the memory of a segment when it is created, and takes its time: of one large
 * segment in one process, while the others wait. So every process that has rows to leave creates a
 * slice, at the same time, and each maps all slices side by side as if they were one. A directory, a
 * small segment that lists them, stands for the whole in other processes: its handle is the view's.
 *
 * All slices but the last are as long as shared_slice_bytes says, so that pages meet at their edges.
 */
#ifndef PGKM_PG_SHARED_VIEW_H
#define PGKM_PG_SHARED_VIEW_H

extern "C" {
#include "postgres.h"
#include "storage/dsm.h"
}

#define SHARED_VIEW_SLICES 64 /* at most */

/* Whether the system has so much shared memory left, as far as can be told: containers often have
 * 64 MB, and to do without is better than an error. */
bool pgkm_fits_shared_memory(double bytes);

struct SharedView {
    char        *base;
    Size         bytes;
    Size         reserved; /* of addresses from base on; 0: they are the only slice's */
    dsm_segment *directory;
    int          n_slices;
    dsm_segment *slices[SHARED_VIEW_SLICES];
    SharedView  *next; /* for a list of its owner's */
};

/* The length of slices that are to hold `total` bytes in about `count` parts (of at most
 * SHARED_VIEW_SLICES - 1, which leaves one to be added). */
Size shared_slice_bytes(Size total, int count);

/* A new slice, mapped until it is dropped or a view of this process that has it is detached.
 * Raises the server's error when there is no memory, with a hint for scans. */
dsm_handle shared_slice_create(Size bytes);

/* This process needs the slice no more, unless a view has seen to that already. */
void shared_slice_drop(dsm_handle slice);

/* The slices (which other processes may have created) as one view, with a directory. A view is
 * allocated in `context` and stays mapped until it is detached. */
SharedView *shared_view_create(MemoryContext context, const dsm_handle *slices, int n_slices);

/* The view that a directory describes; NULL when it is gone. */
SharedView *shared_view_attach(MemoryContext context, dsm_handle directory);

/* A view without slices yet, of up to `most` bytes. */
SharedView *shared_view_begin(MemoryContext context, Size most);

/* Lets it grow by one slice of so many bytes or a little more; false when it has no place for that. */
bool shared_view_extend(SharedView *view, Size bytes);

/* Copies bytes to an offset of the view: through the slices' files where the server's shared memory
 * has files, which spares this process the mapping of every page. Other processes may write beside it. */
void shared_view_write(SharedView *view, Size offset, const void *from, Size bytes);

/* How many views this process has. */
int shared_view_count(void);

void shared_view_detach(SharedView *view);

#endif
