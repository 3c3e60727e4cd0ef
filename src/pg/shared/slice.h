/*
 * slice.h - creates, maps and drops dynamic shared memory segments, which a view (view.h) joins to something larger.
 * Sizes are in bytes.
 */
#ifndef PGKM_PG_SHARED_SLICE_H
#define PGKM_PG_SHARED_SLICE_H

extern "C" {
#include "postgres.h"
#include "storage/dsm.h"
}

/* The first bytes of a dynamic shared memory segment. */
struct SharedSlice {
    dsm_handle handle;
    Size bytes;
};

/* Whether the system has so much shared memory left, as far as can be told. Containers often have 64 MB,
 * and to do without shared memory is better than an error. */
bool pgkm_fits_shared_memory(double bytes);

/* The length of a page of memory. */
Size shared_page_bytes(void);

/* Asks for the pages of this memory at once, which costs less than one fault at a time. Where the system
 * cannot, the faults come. */
void shared_populate(char *begin, Size bytes);

/* As dsm_create. The server's error when there is no memory, with a hint for scans. */
dsm_segment *shared_segment_create(Size bytes, int flags);

/* As dsm_attach, but 55000 when the segment is gone. */
dsm_segment *shared_segment_attach(dsm_handle handle);

/* 55000: a segment is gone. */
[[noreturn]] void shared_raise_gone(void);

/* How long each slice is when about `count` of them hold `total` bytes. */
Size shared_slice_bytes(Size total, int count);

/* Creates a slice. It stays mapped until it is dropped, or until a view of this process that has it is
 * detached. Errors as of shared_segment_create. */
SharedSlice shared_slice_create(Size bytes);

/* Unmaps the slice, unless a view has done so already. */
void shared_slice_drop(const SharedSlice *slice);

#endif
