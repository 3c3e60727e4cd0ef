/*
 * pinned_slices.h - slices of shared memory on their way from a parallel worker to its leader.
 *
 * A worker may end before the leader reads what it has left, so the server has to keep the segment
 * without anybody attached: it is pinned. Whoever pins must see to the end of that, and the leader may
 * fail before it hears of the slice. So all pinned slices stand in a list in shared memory, with the
 * parallel query that they belong to. The leader takes them off it one by one, and whatever is left of
 * a query that is over goes when the leader's resources are released: at the end of its portal, of a
 * subtransaction or of the transaction, after errors too, by when the query's workers have ended.
 */
#ifndef PGKM_PG_PINNED_SLICES_H
#define PGKM_PG_PINNED_SLICES_H

#include "pg/shared/view.h"

/* For _PG_init: sees to the slices of this process's queries from now on. In the postmaster it also
 * asks for the list's room. */
void pinned_slices_install(void);

/* Pins slices that this process, a parallel worker, has mapped. False, with none of them pinned, when
 * there is no place for them or one is pinned already. */
bool pinned_slices_add(const SharedSlice *slices, int n_slices);

/* Unpins slices; they stay as long as somebody has them mapped. False, with nothing done, unless all of
 * them are pinned. */
bool pinned_slices_take(const SharedSlice *slices, int n_slices);

#endif
