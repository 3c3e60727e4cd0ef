/*
 * slice.h - dynamic shared memory segments as parts of something larger.
 */
#ifndef PGKM_PG_SHARED_SLICE_H
#define PGKM_PG_SHARED_SLICE_H

extern "C" {
#include "postgres.h"
#include "storage/dsm.h"
}

/* A dynamic shared memory segment, of which so many bytes from its start on are meant. */
struct SharedSlice {
    dsm_handle handle;
    Size       bytes;
};

/* Whether the system has so much shared memory left, as far as can be told: containers often have
 * 64 MB, and to do without is better than an error. */
bool pgkm_fits_shared_memory(double bytes);

/* The length of a page of memory. */
Size shared_page_bytes(void);

/* Fresh pages cost less when they are asked for at once than one fault at a time. Where that is
 * not to be had, the faults come. */
void shared_populate(char *begin, Size bytes);

/* As dsm_create, with a hint for scans in the server's error when there is no memory. */
dsm_segment *shared_segment_create(Size bytes, int flags);

/* As dsm_attach, but 55000 when the segment is gone. */
dsm_segment *shared_segment_attach(dsm_handle handle);

/* 55000: a segment is gone. */
[[noreturn]] void shared_raise_gone(void);

/* The length of slices that are to hold `total` bytes in about `count` parts. */
Size shared_slice_bytes(Size total, int count);

/* A new slice, mapped until it is dropped or a view of this process that has it is detached.
 * Raises the server's error when there is no memory, with a hint for scans. */
SharedSlice shared_slice_create(Size bytes);

/* This process needs the slice no more, unless a view has seen to that already. */
void shared_slice_drop(const SharedSlice *slice);

#endif
