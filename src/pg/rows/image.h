/*
 * image.h - rows on their way from one process of a parallel query to another.
 *
 * The state of a partial aggregate travels to the leader as a bytea through a tuple queue of 64 kB. There
 * are three ways for its rows:
 *   - a few are part of the bytea;
 *   - many unweighted rows of a worker lie in segments of its own (pg/rows/shared.cpp). The bytea names the
 *     segments, and the leader takes them over page by page, without a copy. pinned_slices.h says who owns
 *     them in between;
 *   - all others, the leader's own among them, are left in the query's shared memory area
 *     (EState.es_query_dsa). The bytea has their address.
 *
 * Who owns rows in the area: the area does, and the parallel query's segment owns the area. The leader is
 * attached to it from before its workers start until it ends the query, normally or by an error. So the
 * rows of a worker that has ended stay readable, and rows that nobody took go with the area.
 *
 * Whom to believe: some distributed planners let any role hand bytes to a deserialization function. An image
 * that names shared memory is sealed (seal.h), and nothing that it names is looked at before the seal holds.
 * Rows that are part of the bytea are checked like rows that come from a query.
 */
#ifndef PGKM_PG_ROWS_IMAGE_H
#define PGKM_PG_ROWS_IMAGE_H

#include "pg/compat.h"

#include "pg/rows/rows.h"

extern "C" {
#include "utils/dsa.h"
}

/* The head of the rows in a bytea. Only processes of one server read it. */
struct PgkmRowsImage {
    int32 element; /* a PgkmElement */
    int32 d;
    int64 n;
    int32 weighted;     /* 0 or 1 */
    int32 pid;          /* of the process that wrote it; like the rest 0 where the rows follow */
    dsa_area *area;     /* its address there */
    dsm_handle segment; /* of the parallel query, when a worker of it wrote this */
    int32 n_slices;     /* that hold the values; they follow the image, and a seal of both follows them */
    dsa_pointer shared; /* values, then weights; the seal follows. InvalidDsaPointer: not there */
    /* with neither the values and weights follow */
};

/* Bytes of the values of all rows. */
static inline Size pgkm_values_bytes(const PgkmRows *rows)
{
    return rows->n * rows->row_bytes;
}

/* Bytes of the weights of all rows; 0 when unweighted. */
static inline Size pgkm_weights_bytes(const PgkmRows *rows)
{
    return rows->weighted ? rows->n * sizeof(double) : 0;
}

/* The weights' place behind the values in shared memory. */
static inline Size pgkm_weights_offset(const PgkmRows *rows)
{
    return MAXALIGN(pgkm_values_bytes(rows));
}

/* Whether the rows lie elsewhere, in shared memory. */
static inline bool pgkm_image_names_memory(const PgkmRowsImage *image)
{
    return image->n_slices != 0 || DsaPointerIsValid(image->shared);
}

/* Bytes that the seal is for: the image and its slices. */
static inline Size pgkm_image_sealed_bytes(const PgkmRowsImage *image)
{
    return sizeof *image + image->n_slices * sizeof(SharedSlice);
}

/* Rows that another process has written, read where they lie. */
struct PgkmIncomingRows {
    PgkmRows rows;  /* not to be grown or cleared; without values where they lie in slices */
    int processes;  /* that leave rows in the same way; 1: not known */
    bool last;      /* nobody will ask for them again */
    dsa_area *area; /* holds them at `shared`; or NULL */
    dsa_pointer shared;
    SharedSlice *slices;
    int n_slices;
};

/* For a state that begins in the transition function called with `fcinfo`: if its rows are to go to another
 * process, they move to shared memory when they become many. */
void pgkm_rows_image_expect(PgkmRows *rows, FunctionCallInfo fcinfo);

/* Prepares the image that the serialization function called with `fcinfo` writes: pins the segments that
 * hold the rows, or copies many rows to the query's area where it has memory for them. Returns the bytes
 * that pgkm_rows_image_write will write; 54000 when a bytea cannot hold them. */
Size pgkm_rows_image_prepare(PgkmRows *rows, FunctionCallInfo fcinfo, PgkmRowsImage *image);

/* Writes the image, and rows that are part of it, to `place`; returns where that ends. */
char *pgkm_rows_image_write(const PgkmRows *rows, const PgkmRowsImage *image, char *place);

/* Reads what was written to these `size` bytes, in the deserialization function called with `fcinfo`. They
 * must outlive *incoming. 22P03 unless they can have been written so. */
void pgkm_rows_image_read(const char *place, Size size, FunctionCallInfo fcinfo, PgkmIncomingRows *incoming);

/* 22P03: these bytes are no state of an aggregate. */
[[noreturn]] void pgkm_raise_state(const char *detail);

/* Appends the rows to others, and gives shared memory back that will not be read again. Errors as of
 * pgkm_rows_grow; 55000 when shared memory is gone. */
void pgkm_rows_append_incoming(PgkmRows *to, PgkmIncomingRows *incoming);

#endif
