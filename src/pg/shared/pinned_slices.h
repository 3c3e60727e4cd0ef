/*
 * pinned_slices.h - slices of shared memory on their way from a parallel worker to its leader.
 *
 * A worker may end before the leader reads what it has left. So the server has to keep the segment while
 * nobody is attached: it is pinned. Whoever pins a segment must unpin it, and the leader may fail before it
 * hears of the slice. So a list in shared memory names all pinned slices, each with the parallel query that
 * it belongs to. The leader takes them off the list one by one. What is left of a query that is over goes
 * when the leader's resources are released: at the end of its portal, subtransaction or transaction, also
 * after an error. The query's workers have ended by then.
 */
#ifndef PGKM_PG_SHARED_PINNED_SLICES_H
#define PGKM_PG_SHARED_PINNED_SLICES_H

#include "pg/shared/slice.h"

/* For _PG_init: from now on what is left of this process's queries is unpinned. In the postmaster it also
 * asks for the list's memory. */
void pinned_slices_install(void);

/* This process may lead workers that pin slices. Without this, or a call of the functions below, it never looks at the
 * list: most processes of a server that preloads the library have nothing to do with it. */
void pinned_slices_expect(void);

/* Pins slices that this process, a parallel worker, has mapped. False, with none of them pinned, when the
 * list has no place for them or names one already. */
bool pinned_slices_add(const SharedSlice *slices, int n_slices);

/* Unpins slices; they stay as long as somebody has them mapped. False, with nothing done, unless all of
 * them are pinned. */
bool pinned_slices_take(const SharedSlice *slices, int n_slices);

#endif
