/*
 * toast.cpp - reads values that lie in a TOAST table.
 *
 * A page is locked while its chunks are listed, and stays pinned while they are copied: as long as it is pinned no
 * chunk is moved or removed, and chunks never change. The TOAST table stays locked, so that it is not truncated.
 * What cannot be read so, a damaged value among it, is left to the server and its messages.
 */
#include "pg/values/toast.h"

#include "pg/compat.h"

extern "C" {
#include "access/detoast.h"
#include "access/heapam.h"
#include "access/heaptoast.h"
#include "access/table.h"
#include "access/toast_internals.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/bufpage.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

/* To look at so many pages in vain costs no more than the index. */
#define NEAR_PAGES 4

/* A chunk of a value, and how many bytes it must have. */
struct Chunk {
    Oid id;
    int32 number;
    int32 bytes;
};

/* A tuple of a TOAST table behind its header. */
struct ChunkTuple {
    Oid id;
    int32 number;
    char data[FLEXIBLE_ARRAY_MEMBER]; /* a varlena */
};

/* What stays from value to value must outlive the memory of one. */
static MemoryContext lasting_context(const PgkmToast *toast)
{
    return toast->keeps ? GetMemoryChunkContext((void *)toast) : CurrentMemoryContext;
}

static void leave_page(PgkmToast *toast)
{
    if (BufferIsValid(toast->buffer))
        ReleaseBuffer(toast->buffer);
    toast->buffer = InvalidBuffer;
}

static void open_table(PgkmToast *toast, Oid table)
{
    MemoryContext caller = MemoryContextSwitchTo(lasting_context(toast));

    toast->relation = table_open(table, AccessShareLock);
    toast->lookup = NULL;
    toast->snapshot = get_toast_snapshot();
    toast->n_blocks = RelationGetNumberOfBlocks(toast->relation);
    toast->buffer = InvalidBuffer;
    toast->strategy = NULL;
    if (toast->keeps && !RelationUsesLocalBuffers(toast->relation) && toast->n_blocks > (BlockNumber)NBuffers / 4)
        toast->strategy = GetAccessStrategy(BAS_BULKREAD);
    if (toast->place.table != table || toast->place.block >= toast->n_blocks)
        toast->place = {table, InvalidBlockNumber, InvalidOffsetNumber, true};
    MemoryContextSwitchTo(caller);
}

void pgkm_toast_close(PgkmToast *toast)
{
    if (toast->relation == NULL)
        return;
    leave_page(toast);
    if (toast->lookup != NULL) {
        index_endscan(toast->lookup);
        toast_close_indexes(toast->indexes, toast->n_indexes, AccessShareLock);
    }
    if (toast->strategy != NULL)
        FreeAccessStrategy(toast->strategy);
    table_close(toast->relation, AccessShareLock);
    toast->relation = NULL;
}

/* Pins the page and lists its chunks, but for those of transactions that were rolled back. The page of a value that
 * lies far from the others may be needed again. */
static void open_page(PgkmToast *toast, BlockNumber block)
{
    leave_page(toast);
    toast->buffer = ReadBufferExtended(toast->relation, MAIN_FORKNUM, block, RBM_NORMAL,
                                       toast->place.near ? toast->strategy : NULL);
    toast->next = toast->n_offsets = 0;
    LockBuffer(toast->buffer, BUFFER_LOCK_SHARE);

    const Page page = BufferGetPage(toast->buffer);
    const OffsetNumber last = PageGetMaxOffsetNumber(page);
    HeapTupleData tuple;

    pgkm_check_old_snapshot(toast->snapshot, toast->relation, page);
    for (OffsetNumber offset = FirstOffsetNumber; offset <= last; ++offset)
        if (ItemIdIsNormal(PageGetItemId(page, offset)))
            __builtin_prefetch(PageGetItem(page, PageGetItemId(page, offset)));
    tuple.t_tableOid = RelationGetRelid(toast->relation);
    for (OffsetNumber offset = FirstOffsetNumber; offset <= last; ++offset) {
        const ItemId item = PageGetItemId(page, offset);

        if (!ItemIdIsNormal(item))
            continue;
        tuple.t_data = (HeapTupleHeader)PageGetItem(page, item);
        tuple.t_len = ItemIdGetLength(item);
        ItemPointerSet(&tuple.t_self, block, offset);
        if (HeapTupleSatisfiesVisibility(&tuple, toast->snapshot, toast->buffer))
            toast->offsets[toast->n_offsets++] = offset;
    }
    LockBuffer(toast->buffer, BUFFER_LOCK_UNLOCK);
}

static const ChunkTuple *chunk_fields(HeapTupleHeader tuple)
{
    return (const ChunkTuple *)((const char *)tuple + tuple->t_hoff);
}

/* The chunk's bytes if the tuple is that chunk; else NULL. */
static const char *chunk_data(HeapTupleHeader tuple, const Chunk *chunk)
{
    const ChunkTuple *const fields = chunk_fields(tuple);
    const char *const data = fields->data;

    if (fields->id != chunk->id || fields->number != chunk->number || (tuple->t_infomask & HEAP_HASNULL) != 0)
        return NULL;
    /* A small chunk may have a short header. */
    if ((!VARATT_IS_4B_U(data) && !VARATT_IS_SHORT(data)) || (int32)VARSIZE_ANY_EXHDR(data) != chunk->bytes)
        return NULL;
    return VARDATA_ANY(data);
}

/* Copies the chunk if it comes next on the page, or after chunks of other values. */
static bool take(PgkmToast *toast, const Chunk *chunk, char *to)
{
    const Page page = BufferGetPage(toast->buffer);

    for (int i = toast->next; i < toast->n_offsets; ++i) {
        const OffsetNumber offset = toast->offsets[i];
        const char *const data = chunk_data((HeapTupleHeader)PageGetItem(page, PageGetItemId(page, offset)), chunk);

        if (data == NULL)
            continue;
        memcpy(to, data, chunk->bytes);
        toast->next = i + 1;
        toast->place.block = BufferGetBlockNumber(toast->buffer);
        toast->place.offset = offset;
        return true;
    }
    return false;
}

/* To where the last value ended; false when there was none. */
static bool return_to_place(PgkmToast *toast)
{
    if (!BlockNumberIsValid(toast->place.block))
        return false;
    open_page(toast, toast->place.block);
    while (toast->next < toast->n_offsets && toast->offsets[toast->next] <= toast->place.offset)
        ++toast->next;
    return true;
}

/* Whether a value with a higher id has the last chunk of the page. Ids ascend as values are added, but they wrap, and
 * the space of old values is used again. */
static bool passed(const PgkmToast *toast, Oid id)
{
    const Page page = BufferGetPage(toast->buffer);

    if (toast->n_offsets == 0)
        return false;

    const ItemId item = PageGetItemId(page, toast->offsets[toast->n_offsets - 1]);

    return (int32)(chunk_fields((HeapTupleHeader)PageGetItem(page, item))->id - id) > 0;
}

/* Looks for the chunk where we are, and on the next pages until values are later ones. */
static bool take_ahead(PgkmToast *toast, const Chunk *chunk, char *to)
{
    /* Chunks of a value lie together even where values do not. */
    const bool likely_ahead = toast->place.near || chunk->number > 0;

    if (!BufferIsValid(toast->buffer) && !(likely_ahead && return_to_place(toast)))
        return false;
    if (take(toast, chunk, to))
        return true;

    const BlockNumber here = BufferGetBlockNumber(toast->buffer);
    const BlockNumber end = Min(toast->n_blocks, here + 1 + (chunk->number > 0 ? 1 : NEAR_PAGES));

    for (BlockNumber next = here + 1; likely_ahead && next < end && !passed(toast, chunk->id); ++next) {
        open_page(toast, next);
        if (take(toast, chunk, to))
            return true;
    }
    return false;
}

static void open_index(PgkmToast *toast)
{
    MemoryContext caller = MemoryContextSwitchTo(lasting_context(toast));
    const int valid = toast_open_indexes(toast->relation, AccessShareLock, &toast->indexes, &toast->n_indexes);

    toast->lookup = pgkm_index_beginscan(toast->relation, toast->indexes[valid], toast->snapshot, 2);
    MemoryContextSwitchTo(caller);
}

/* Starts to look up the chunks of a value from this one on. */
static void begin_lookup(PgkmToast *toast, const Chunk *chunk)
{
    if (toast->lookup == NULL)
        open_index(toast);
    ScanKeyInit(&toast->keys[0], 1, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(chunk->id));
    ScanKeyInit(&toast->keys[1], 2, BTGreaterEqualStrategyNumber, F_INT4GE, Int32GetDatum(chunk->number));
    index_rescan(toast->lookup, toast->keys, 2, NULL, 0);
}

/* Copies the chunk from where the index has it. */
static bool take_found(PgkmToast *toast, const Chunk *chunk, char *to)
{
    const BlockNumber before = toast->place.block;
    ItemPointer tid;

    while ((tid = index_getnext_tid(toast->lookup, ForwardScanDirection)) != NULL) {
        open_page(toast, ItemPointerGetBlockNumber(tid));
        if (!take(toast, chunk, to))
            continue;
        toast->place.near = !BlockNumberIsValid(before) || toast->place.block - before <= NEAR_PAGES;
        return true;
    }
    return false;
}

/* Copies a value of so many bytes. False when it cannot be read so. */
static bool read_chunks(PgkmToast *toast, Oid id, int32 bytes, char *to)
{
    Chunk chunk = {id, 0, 0};
    bool looking_up = false;
    bool found = true;

    for (; found && bytes > 0; ++chunk.number) {
        CHECK_FOR_INTERRUPTS(); /* there may be half a million of them */
        chunk.bytes = Min(bytes, (int32)TOAST_MAX_CHUNK_SIZE);
        if (!take_ahead(toast, &chunk, to)) {
            if (!looking_up)
                begin_lookup(toast, &chunk);
            looking_up = true;
            found = take_found(toast, &chunk, to);
        }
        to += chunk.bytes;
        bytes -= chunk.bytes;
    }
    if (looking_up) /* else a page of the index stays pinned */
        index_rescan(toast->lookup, toast->keys, 2, NULL, 0);
    return found;
}

/* Place for a value of so many bytes, header included. */
static struct varlena *make_room(PgkmToast *toast, Size bytes)
{
    if (!toast->keeps)
        return (struct varlena *)palloc(bytes);
    if (bytes > toast->room_bytes) {
        if (toast->room != NULL)
            pfree(toast->room);
        toast->room = NULL;
        toast->room_bytes = 0;
        toast->room = (char *)MemoryContextAlloc(lasting_context(toast), bytes);
        toast->room_bytes = bytes;
    }
    return (struct varlena *)toast->room;
}

/* As stored, perhaps compressed. */
static struct varlena *fetch(PgkmToast *toast, struct varlena *value)
{
    struct varatt_external pointer;

    VARATT_EXTERNAL_GET_POINTER(pointer, value);
    if (toast->relation != NULL && RelationGetRelid(toast->relation) != pointer.va_toastrelid)
        pgkm_toast_close(toast);
    if (toast->relation == NULL)
        open_table(toast, pointer.va_toastrelid);

    const int32 bytes = (int32)VARATT_EXTERNAL_GET_EXTSIZE(pointer);
    struct varlena *const result = make_room(toast, (Size)bytes + VARHDRSZ);

    CHECK_FOR_INTERRUPTS();
    if (!read_chunks(toast, pointer.va_valueid, bytes, (char *)result + VARHDRSZ))
        return detoast_external_attr(value);
    if (VARATT_EXTERNAL_IS_COMPRESSED(pointer))
        SET_VARSIZE_COMPRESSED(result, bytes + VARHDRSZ);
    else
        SET_VARSIZE(result, bytes + VARHDRSZ);
    return result;
}

struct varlena *pgkm_toast_read(PgkmToast *toast, struct varlena *value)
{
    if (VARATT_IS_EXTERNAL_ONDISK(value))
        value = fetch(toast, value);
    return VARATT_IS_COMPRESSED(value) || VARATT_IS_EXTERNAL(value) ? detoast_attr(value) : value;
}

struct varlena *pgkm_detoast(struct varlena *value)
{
    static PgkmToastPlace last;

    if (!VARATT_IS_EXTERNAL_ONDISK(value))
        return pg_detoast_datum_packed(value);

    PgkmToast toast;

    /* An error may leave `last` as it was: it is only a guess. */
    toast.place = last;
    toast.relation = NULL;
    toast.keeps = false;
    value = pgkm_toast_read(&toast, value);
    pgkm_toast_close(&toast);
    last = toast.place;
    return value;
}
