/*
 * toast.h - reads values that lie in a TOAST table.
 *
 * The server looks up every value in the TOAST table's index. But the values of rows that follow each other mostly
 * follow each other there, too. So a value is sought behind the one before, on the same page and the next ones; only
 * where it is not there, the index is asked. A chunk counts as found by its value's id and its number, and if the
 * server would take it, too. So the order of the pages is a guess that costs time when it is wrong, and no more.
 */
#ifndef PGKM_PG_VALUES_TOAST_H
#define PGKM_PG_VALUES_TOAST_H

extern "C" {
#include "postgres.h"
#include "access/htup_details.h"
#include "access/genam.h"
#include "access/skey.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
}

/* The chunk that was read last. */
struct PgkmToastPlace {
    Oid table; /* the TOAST table; InvalidOid: none was read */
    BlockNumber block;
    OffsetNumber offset;
    bool near; /* the value was not far behind the one before */
};

/* A TOAST table that is being read. Before its first use all zero, and `keeps` set. Then it lies in memory of its own
 * and not on the stack. */
struct PgkmToast {
    PgkmToastPlace place;
    Relation relation;    /* NULL: none is open, and nothing below is set */
    IndexScanDesc lookup; /* in the index; NULL: not needed yet */
    ScanKeyData keys[2];  /* of the lookup */
    Relation *indexes;    /* set with it */
    int n_indexes;
    Snapshot snapshot;
    BlockNumber n_blocks;
    Buffer buffer; /* the page at which we are, pinned; or InvalidBuffer */
    int next;      /* of the offsets */
    int n_offsets;
    OffsetNumber offsets[MaxHeapTuplesPerPage]; /* of the page's chunks */
    BufferAccessStrategy strategy;              /* for large tables */
    bool keeps;                                 /* room, open tables and pins from value to value */
    char *room;                                 /* of the value */
    Size room_bytes;
};

/* The value of a TOAST pointer or of a compressed datum: plain, or with a one-byte header. It lasts until the
 * next call or until the current memory context is reset. Keeps the TOAST table open and a page pinned. */
struct varlena *pgkm_toast_read(PgkmToast *toast, struct varlena *value);

/* Closes what is open. After an error there is nothing to close; the struct must not be used again. */
void pgkm_toast_close(PgkmToast *toast);

/* The same for single values: nothing stays open. In the current memory context. */
struct varlena *pgkm_detoast(struct varlena *value);

#endif
