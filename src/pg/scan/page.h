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
    Snapshot      snapshot;
    TransactionId settled; /* committed before the snapshot; rows mostly share few inserters */
};

/*
 * The visible tuples of a pinned page, in order; returns their number. Locks the page
 * meanwhile. As long as it stays pinned nothing that was visible is moved or taken away, so
 * their values can be read afterwards without the lock.
 */
int scan_page_visible(ScanSight *sight, Relation relation, Buffer buffer, OffsetNumber offsets[MaxHeapTuplesPerPage]);

#endif
