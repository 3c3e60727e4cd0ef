/*
 * count.cpp - counts the rows of each chunk before any is read.
 */
#include "pg/scan/parallel.h"

extern "C" {
#include "access/table.h"
#include "access/tupmacs.h"
#include "miscadmin.h"
#include "storage/bufpage.h"
}

/* One block in so many may be costly. */
#define COSTLY_SHARE 8

static BlockNumber blocks_of(const ScanPlan *plan)
{
    BlockNumber blocks = 0;

    for (int i = 0; i < plan->n_relations; ++i)
        blocks += scan_plan_relations(plan)[i].n_blocks;
    return blocks;
}

/* False where pages may not lie in shared buffers (by the server's own measure): they would be read twice, which is
 * little beside TOAST tables. Also where rows have weights or a filter, which skip rows; where nobody knows at which
 * chunk a part of the scan ends; and on a standby, which cannot trust a page's flag. */
static bool worth_counting(const ScanReader *reader)
{
    const ScanPlan *plan = reader->plan;

    return plan->d > 0 && plan->most_rows == 0 && !plan->weighted && !plan->filtered &&
           (plan->mostly_toast || blocks_of(plan) <= (BlockNumber)NBuffers / 4) &&
           !reader->sight.snapshot->takenDuringRecovery;
}

void scan_counting_init(ScanCounting *counting, const ScanReader *reader)
{
    pg_atomic_init_u32(&counting->next_chunk, pg_atomic_read_u32(reader->next_chunk));
    pg_atomic_init_u32(&counting->n_costly, 0);
    pg_atomic_init_u32(&counting->given_up, worth_counting(reader) ? 0 : 1);
}

/* A row with a NULL among its features is skipped. One of each page is looked at. */
static bool lacks_features(const ScanReader *reader, HeapTupleHeader tuple)
{
    if ((tuple->t_infomask & HEAP_HASNULL) == 0)
        return false;
    for (int i = 0; i < reader->plan->n_features; ++i) {
        const int attribute = reader->access->numbers[i];

        if (attribute <= HeapTupleHeaderGetNatts(tuple) && att_isnull(attribute - 1, tuple->t_bits))
            return true;
    }
    return false;
}

static int count_block(ScanReader *reader, ScanCounting *counting, BlockNumber block)
{
    OffsetNumber offsets[MaxHeapTuplesPerPage];
    const Relation relation = reader->access->relation;
    const Buffer buffer = ReadBuffer(relation, block);
    const Page page = BufferGetPage(buffer);
    const bool costly = !reader->plan->mostly_toast && !PageIsAllVisible(page);
    const int count = scan_page_visible(&reader->sight, relation, buffer, offsets);

    if (costly && pg_atomic_fetch_add_u32(&counting->n_costly, 1) > blocks_of(reader->plan) / COSTLY_SHARE)
        pg_atomic_write_u32(&counting->given_up, 1);
    if (count > 0 && lacks_features(reader, (HeapTupleHeader)PageGetItem(page, PageGetItemId(page, offsets[0]))))
        pg_atomic_write_u32(&counting->given_up, 1);
    ReleaseBuffer(buffer);
    return count;
}

static int64 count_chunk(ScanReader *reader, ScanCounting *counting, uint32 chunk)
{
    const ScanChunk place = scan_plan_chunk(reader->plan, chunk, Max(reader->relation, 0));
    int64 count = 0;

    if (place.relation != reader->relation)
        scan_reader_open(reader, place.relation);
    for (BlockNumber block = place.begin; block < place.end && pg_atomic_read_u32(&counting->given_up) == 0; ++block) {
        CHECK_FOR_INTERRUPTS();
        count += count_block(reader, counting, block);
    }
    return count;
}

void scan_count(ScanReader *reader, ScanCounting *counting, ScanPlace *counts)
{
    while (pg_atomic_read_u32(&counting->given_up) == 0) {
        const uint32 chunk = pg_atomic_fetch_add_u32(&counting->next_chunk, 1);

        if (chunk >= reader->plan->n_chunks)
            break;
        counts[chunk].rows = counts[chunk].used = count_chunk(reader, counting, chunk);
    }
    scan_reader_close(reader);
}
