/*
 * page.h - which tuples of a heap page a snapshot sees.
 */
#ifndef PGKM_PG_SCAN_PAGE_H
#define PGKM_PG_SCAN_PAGE_H

extern "C" {
#include "postgres.h"
#include "access/htup_details.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
}

struct ScanSight {
    Snapshot snapshot;
    TransactionId settled; /* one that committed before the snapshot; rows mostly share few inserters */
};

/*
 * Sets offsets to the visible tuples of a pinned page, in order, and returns their number. Locks the page
 * while it looks. As long as the page stays pinned, no visible tuple is moved or removed, so their values
 * can be read afterwards without the lock.
 */
int scan_page_visible(ScanSight *sight, Relation relation, Buffer buffer, OffsetNumber offsets[MaxHeapTuplesPerPage]);

#endif
