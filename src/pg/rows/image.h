/*
 * image.h - rows on their way from one process of a parallel query to another.
 *
 * A partial aggregate's state travels to the leader as a bytea through a tuple queue of 64 kB.
 * Small states go that way as they are. A worker collects the unweighted rows of larger ones in
 * segments of its own (pg/rows/shared.cpp), which the leader takes over page by page: only their names
 * travel, and no row is copied (pinned_slices.h says who owns them meanwhile). Other rows, the leader's
 * part among them, are left in the query's own shared memory area (EState.es_query_dsa) and their
 * address travels.
 *
 * Who owns those: the area does, and the parallel query's segment owns the area. The leader
 * is attached to it from before its workers start until it ends the query, by its normal
 * end or by an error; so a worker that has ended leaves its rows readable, and when the
 * leader goes, whatever was never taken goes with the area.
 *
 * Whom to believe: some distributed planners let any role hand bytes to a deserialization function.
 * An image that names shared memory is sealed (seal.h), and nothing that it names is looked at before
 * its seal holds; one that carries its rows has them checked like rows that come from a query.
 */
#ifndef PGKM_PG_ROWS_IMAGE_H
#define PGKM_PG_ROWS_IMAGE_H

#include "pg/compat.h"

#include "pg/rows/rows.h"

extern "C" {
#include "utils/dsa.h"
}

/* Rows as they are written into a bytea: only processes of one server read it. */
struct PgkmRowsImage {
    int32       element; /* a PgkmElement */
    int32       d;
    int64       n;
    int32       weighted; /* 0 or 1 */
    int32       pid;     /* who wrote it; like the rest 0 where the rows follow */
    dsa_area   *area;    /* its address there */
    dsm_handle  segment; /* of the parallel query, when that process is a worker of it */
    int32       n_slices; /* that hold the values; they follow the image, and a seal of both follows them */
    dsa_pointer shared;  /* values, then weights; the seal follows. InvalidDsaPointer: not there */
    /* with neither the values and weights follow */
};

static inline Size pgkm_values_bytes(const PgkmRows *rows)
{
    return rows->n * rows->row_bytes;
}

static inline Size pgkm_weights_bytes(const PgkmRows *rows)
{
    return rows->weighted ? rows->n * sizeof(double) : 0;
}

/* The weights' place behind the values in shared memory. */
static inline Size pgkm_weights_offset(const PgkmRows *rows)
{
    return MAXALIGN(pgkm_values_bytes(rows));
}

static inline bool pgkm_image_names_memory(const PgkmRowsImage *image)
{
    return image->n_slices != 0 || DsaPointerIsValid(image->shared);
}

/* What a seal is for: the image and its slices. */
static inline Size pgkm_image_sealed_bytes(const PgkmRowsImage *image)
{
    return sizeof *image + image->n_slices * sizeof(SharedSlice);
}

/* Rows that are read where they lie. */
struct PgkmRowsView {
    PgkmRows     rows;      /* not to be grown or cleared; without values where they lie in slices */
    int          processes; /* that leave rows in the same way; 1: not known */
    bool         last;      /* nobody will ask for them again */
    dsa_area    *area;      /* holds them at `shared`; or NULL */
    dsa_pointer  shared;
    SharedSlice *slices;
    int          n_slices;
};

/* Lets the rows of a state that is begun in the transition function called with `fcinfo` lie in shared
 * memory, when they become many, if they are to go to another process. */
void pgkm_rows_image_expect(PgkmRows *rows, FunctionCallInfo fcinfo);

/*
 * Prepares rows to be written by the serialization function called with `fcinfo`: segments that hold
 * them are pinned, other large ones copied to shared memory where the query has an area and there is
 * room. Returns the bytes
 * that pgkm_rows_image_write will write; 54000 when that is more than a bytea holds.
 */
Size pgkm_rows_image_prepare(PgkmRows *rows, FunctionCallInfo fcinfo, PgkmRowsImage *image);
char *pgkm_rows_image_write(const PgkmRows *rows, const PgkmRowsImage *image, char *place);

/* In the deserialization function called with `fcinfo`: what was written at `place`, which must
 * outlive the view. 22P03 unless these `size` bytes can have been written so. */
void pgkm_rows_image_view(const char *place, Size size, FunctionCallInfo fcinfo, PgkmRowsView *view);

/* 22P03: bytes that are no state of an aggregate. */
[[noreturn]] void pgkm_raise_state(const char *detail);

/* Appends the view's rows to others, and gives shared memory back that will not be read again. */
void pgkm_rows_view_append(PgkmRows *to, PgkmRowsView *view);

#endif
