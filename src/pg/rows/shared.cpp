/*
 * shared.cpp - rows in shared memory: in segments of this process, or taken over from others.
 */
#include "pg/rows/rows.h"

#include <numeric>

#include "pg/run/memory_account.h"

/* Groups of a query that have segments at a time: a server has few segments, a hash aggregate may have many groups. */
#define MOST_SHARED_GROUPS 8

/* Addresses are free; memory is taken as rows come. */
#define MOST_BYTES ((Size)1 << 40)

/* The system takes some milliseconds to provide so much, which cannot be interrupted. */
#define LARGE_SLICE_BYTES ((Size)64 * 1024 * 1024)

/* Rows that need not lie in shared memory leave at least as much of it to others. */
#define ROOM_FACTOR 2

/* The first extension is as long as the planner guesses. How many rows come beyond that nobody knows: few at first. */
static Size wanted_extension(const PgkmRows *rows)
{
    const Size before = rows->view->bytes;
    const Size expected = (Size)rows->expected * rows->row_bytes;
    const Size large = Max(LARGE_SLICE_BYTES, before / 2);

    if (expected > before)
        return Min(expected - before, large);
    return Max(rows->view->n_slices < 4 ? before / 8 : Min(before / 2, large), PGKM_LARGE_PART_BYTES);
}

static bool extend(PgkmRows *rows, Size more)
{
    SharedView *const view = rows->view;
    const Size before = view->bytes;
    const Size reserved = shared_slice_bytes(more, 1);

    pgkm_memory_reserve(reserved);
    rows->reserved += reserved;
    if (!shared_view_extend(view, more)) {
        rows->reserved -= reserved;
        pgkm_memory_release(reserved);
        return false;
    }
    rows->capacity = (int64)(view->bytes / rows->row_bytes);
    if (rows->expected > 0)
        shared_populate(view->base + before, view->bytes - before);
    return true;
}

/* By exactly what is asked for when parts of many rows come at once; else by more. */
static bool grow_view(PgkmRows *rows, int64 needed)
{
    const Size more = (Size)needed * rows->row_bytes - rows->view->bytes;

    if (rows->expected > 0) {
        const Size wanted = Max(more, wanted_extension(rows));

        if (wanted < pgkm_memory_available() / 2 && pgkm_fits_shared_memory((double)wanted * ROOM_FACTOR) &&
            extend(rows, wanted))
            return true;
    }
    return extend(rows, more);
}

/* Copies the rows to where `to` has its memory, and makes that theirs. When an error comes in between, `rows` is as
 * before. */
static void move(PgkmRows *rows, PgkmRows *to)
{
    const PgkmRows left = *rows;

    to->capacity = to->allocated = to->n = 0;
    to->reserved = 0;
    PG_TRY();
    {
        pgkm_rows_append(to, left.values, NULL, left.n);
    }
    PG_CATCH();
    {
        if (to->view != NULL)
            shared_view_detach(to->view);
        pgkm_memory_release(to->reserved);
        PG_RE_THROW();
    }
    PG_END_TRY();
    *rows = *to;
    if (left.view != NULL)
        shared_view_detach(left.view);
    else if (left.values != NULL)
        pfree(left.values);
    pgkm_memory_release(left.reserved);
}

static void leave_view(PgkmRows *rows)
{
    PgkmRows copy = *rows;

    copy.expected = rows->expected = 0;
    copy.view = NULL;
    copy.values = NULL;
    move(rows, &copy);
}

bool pgkm_rows_share(PgkmRows *rows)
{
    PgkmRows copy = *rows;

    Assert(!rows->weighted && rows->view == NULL);
    copy.view = shared_view_count() < MOST_SHARED_GROUPS ? shared_view_begin(rows->context, MOST_BYTES) : NULL;
    if (copy.view == NULL)
        return false;
    copy.values = copy.view->base;
    move(rows, &copy);
    return rows->view != NULL;
}

bool pgkm_rows_grow_shared(PgkmRows *rows, int64 needed)
{
    if (rows->view == NULL && rows->expected > 0 && (Size)needed * rows->row_bytes > PGKM_LARGE_PART_BYTES &&
        !pgkm_rows_share(rows))
        rows->expected = 0;
    if (rows->view == NULL)
        return false;
    if (needed <= rows->capacity || grow_view(rows, needed))
        return true;
    leave_view(rows);
    return needed <= rows->capacity;
}

/* The least bytes that are whole pages and whole rows. Behind a multiple of them other slices can be mapped. */
static Size bytes_of_unit(const PgkmRows *rows)
{
    return std::lcm(shared_page_bytes(), rows->row_bytes);
}

/* Rows that do not fill a unit, one after the other. */
struct Rest {
    char *bytes;
    Size used;
};

static void keep_rest(Rest *rest, const char *bytes, Size count)
{
    memcpy(rest->bytes + rest->used, bytes, count);
    rest->used += count;
}

/* Of the `count` bytes of a slice's rows, maps the first `whole` and keeps the rest. */
static void take_slice(PgkmRows *rows, const SharedSlice *slice, Size count, Size whole, Rest *rest)
{
    dsm_segment *const segment = shared_segment_attach(slice->handle);

    keep_rest(rest, (const char *)dsm_segment_address(segment) + whole, count - whole);
    if (whole > 0)
        shared_view_append(rows->view, segment, whole);
    else
        dsm_detach(segment);
}

/* Rows that do not fill the view's last unit leave it. */
static void cut_view(PgkmRows *rows, Size unit, Rest *rest)
{
    const Size used = rows->n * rows->row_bytes;
    const Size whole = used / unit * unit;

    keep_rest(rest, rows->values + whole, used - whole);
    shared_view_truncate(rows->view, whole);
    rows->n = rows->capacity = (int64)(whole / rows->row_bytes);
}

void pgkm_rows_count(PgkmRows *rows, Size bytes)
{
    if (bytes > rows->reserved)
        pgkm_memory_reserve(bytes - rows->reserved);
    else
        pgkm_memory_release(rows->reserved - bytes);
    rows->reserved = bytes;
}

/* What is counted for the rows, and what they have place for, becomes what the view has. */
static void count_view(PgkmRows *rows)
{
    pgkm_rows_count(rows, rows->view->bytes);
    rows->capacity = (int64)(rows->view->bytes / rows->row_bytes);
}

void pgkm_rows_trim(PgkmRows *rows)
{
    shared_view_truncate(rows->view, TYPEALIGN(shared_page_bytes(), rows->n * rows->row_bytes));
    count_view(rows);
}

bool pgkm_rows_take(PgkmRows *rows, const SharedSlice *slices, int n_slices, int64 n)
{
    const Size unit = bytes_of_unit(rows);
    const Size bytes = n * rows->row_bytes;
    const Size whole = bytes / unit * unit;
    Size offset = 0;

    /* One more slice for the rest. Segments of this process belong to other rows of it. */
    if (rows->view == NULL || whole == 0 || shared_view_room(rows->view, bytes + unit) <= n_slices ||
        dsm_find_mapping(slices[0].handle) != NULL)
        return false;

    Rest rest = {(char *)MemoryContextAllocHuge(CurrentMemoryContext, 2 * unit), 0};

    cut_view(rows, unit, &rest);
    for (int i = 0; i < n_slices && offset < bytes; ++i) {
        const Size count = Min(slices[i].bytes, bytes - offset);

        take_slice(rows, &slices[i], count, Min(count, whole - Min(whole, offset)), &rest);
        offset += count;
    }
    count_view(rows);
    rows->n = rows->capacity;
    pgkm_rows_append(rows, rest.bytes, NULL, (int64)(rest.used / rows->row_bytes));
    pfree(rest.bytes);
    return true;
}
