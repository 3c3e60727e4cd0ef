/*
 * page.cpp - finds the tuples of a heap page that a snapshot sees.
 */
#include "pg/scan/page.h"

#include "pg/compat.h"

extern "C" {
#include "access/heapam.h"
#include "access/transam.h"
#include "storage/bufpage.h"
#include "utils/snapmgr.h"
}

/* The common case without a call: the tuple's hint bits say that a transaction inserted it which is over for the
 * snapshot, and that nobody has deleted or locked it. All else is for the server. */
static inline bool plainly_visible(ScanSight *sight, const HeapTupleHeaderData *tuple)
{
    const uint16 hints = HEAP_XMIN_COMMITTED | HEAP_XMAX_INVALID;

    if ((tuple->t_infomask & hints) != hints)
        return false;

    const TransactionId inserter = HeapTupleHeaderGetRawXmin(tuple);

    if (likely(inserter == sight->settled) || HeapTupleHeaderXminFrozen(tuple))
        return true;
    if (XidInMVCCSnapshot(inserter, sight->snapshot))
        return false;
    sight->settled = inserter;
    return true;
}

static bool visible(ScanSight *sight, Relation relation, Buffer buffer, Page page, ItemId item, OffsetNumber offset)
{
    HeapTupleData tuple;

    tuple.t_data = (HeapTupleHeader)PageGetItem(page, item);
    if (likely(plainly_visible(sight, tuple.t_data)))
        return true;
    tuple.t_tableOid = RelationGetRelid(relation);
    tuple.t_len = ItemIdGetLength(item);
    ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(buffer), offset);
    return HeapTupleSatisfiesVisibility(&tuple, sight->snapshot, buffer);
}

int scan_page_visible(ScanSight *sight, Relation relation, Buffer buffer, OffsetNumber offsets[MaxHeapTuplesPerPage])
{
    int count = 0;

    LockBuffer(buffer, BUFFER_LOCK_SHARE);

    const Page page = BufferGetPage(buffer);
    const OffsetNumber last = PageGetMaxOffsetNumber(page);
    /* On a standby the flag may be set before the transactions that it speaks of are over for its snapshots. */
    const bool all = PageIsAllVisible(page) && !sight->snapshot->takenDuringRecovery;

    pgkm_check_old_snapshot(sight->snapshot, relation, page);
    for (OffsetNumber offset = FirstOffsetNumber; offset <= last; ++offset) {
        const ItemId item = PageGetItemId(page, offset);

        if (ItemIdIsNormal(item) && (all || visible(sight, relation, buffer, page, item, offset)))
            offsets[count++] = offset;
    }
    LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
    return count;
}
