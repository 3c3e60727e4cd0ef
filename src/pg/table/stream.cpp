/*
 * stream.cpp - gives a job the rows of a table in chunks.
 *
 * Two chunks are in memory: one that the job works on, and one that is read for it meanwhile.
 */
#include "pg/table/stream.h"

#include "pg/run/memory_account.h"
#include "pg/scan/scan.h"

extern "C" {
#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

/* A chunk that the job has, and one that is read: its processes' own rows, and where these are brought together. */
#define CHUNK_COPIES 4

/* More than this for chunks saves nothing. */
#define ENOUGH_BYTES ((uint64)4 * 1024 * 1024 * 1024)

/* Fewer rows are no chunk. */
#define FEWEST_ROWS 256

struct TableStream {
    MemoryContextCallback on_reset;
    ScanStream *scan;
    int32 d;
    PgkmStream *stream; /* the engine's; NULL before the rows are counted */
    PgkmElement element;
    bool weighted;
    int64 n;    /* rows that take part */
    int64 most; /* rows of a chunk */
    Size row_bytes;
    MemoryContext chunks[2];
    bool own_snapshot; /* for all passes */
    int64 read;        /* chunks */
    int64 passes;      /* that have ended */
    int64 rows;        /* of this one, those that take no part included */
    int64 expected;    /* of each; 0: the first one has not counted them yet */
};

static void free_stream(void *stream)
{
    pgkm_stream_free(((TableStream *)stream)->stream);
}

static uint64 chunk_bytes(const TableStream *stream, int64 rows)
{
    return (uint64)rows * stream->row_bytes * CHUNK_COPIES;
}

static PgkmPoints no_points(const TableStream *stream)
{
    static const double none = 0;

    return {&none, stream->element, 0, stream->d, stream->weighted ? &none : NULL};
}

static void connect(TableStream *stream, int64 n, int64 most)
{
    pgkm_stream_free(stream->stream);
    stream->stream = pgkm_stream_create(n, most);
    if (stream->stream == NULL)
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
}

/* What chunks of so many rows take, with the engine's work on them. */
static double bytes_in_chunks(TableStream *stream, const PgkmRequest *of, int64 n, int64 most)
{
    PgkmRequest request = *of;

    connect(stream, n, most);
    request.points = no_points(stream);
    request.stream = stream->stream;
    return (double)pgkm_request_estimate(&request) + (double)chunk_bytes(stream, most);
}

/* Of streamed rows k-means|| takes few passes, whatever k is. */
static PgkmRequest settled_request(const TableCall *call)
{
    PgkmRequest request = call->request;

    if (call->init_is_free)
        request.kmeans.init = PGKM_INIT_KMEANS_PARALLEL;
    return request;
}

/* The most rows of a chunk that leave a reserve. False where there is no room for any. */
static bool choose_chunk(TableStream *stream, const PgkmRequest *request, int64 expected, bool required)
{
    pgkm_memory_make_room(pgkm_memory_obtainable() / 2);

    const int64 n = Max(expected, (int64)FEWEST_ROWS);
    const double room = 0.8 * (double)Min(pgkm_memory_available(), ENOUGH_BYTES);
    double bytes = bytes_in_chunks(stream, request, n, stream->most = n);

    while (bytes > room && stream->most > FEWEST_ROWS) {
        stream->most = Max(stream->most / 4 * 3, (int64)FEWEST_ROWS);
        bytes = bytes_in_chunks(stream, request, n, stream->most);
    }
    if (bytes > room && required)
        pgkm_raise_working_memory("A fit whose rows are streamed", (uint64)bytes);
    return bytes <= room;
}

/* Whether rows in memory, with `origins` bytes beside each, and work on them, would pass the limit. */
static bool exceeds_memory(const TableStream *stream, const PgkmRequest *of, int64 expected, Size origins)
{
    PgkmRequest request = *of;

    if (pgkm_memory_obtainable() == PG_UINT64_MAX || stream->d == 0 || expected == 0)
        return false;
    request.points = no_points(stream);
    request.points.n = expected;
    return (double)expected * (double)(stream->row_bytes + origins) + (double)pgkm_request_estimate(&request) >
           (double)pgkm_memory_obtainable();
}

/* The next chunk that has rows that take part; NULL at the end of the pass. */
static const PgkmRows *read_chunk(TableStream *stream, PgkmScanReport *report)
{
    MemoryContext context = stream->chunks[stream->read++ % lengthof(stream->chunks)];
    TableRows *rows;
    int32 workers = 0;

    do {
        MemoryContextReset(context);
        pgkm_progress_pass(stream->passes + 1, stream->rows, stream->expected);
        rows = scan_stream_next(stream->scan, stream->most, context, &workers);
        if (rows == NULL)
            break;
        table_rows_shrink(rows);
        stream->rows += rows->n;
        if (report != NULL) {
            report->rows += rows->n;
            report->workers = Max(report->workers, workers);
        }
    } while (table_rows_used(rows) == 0);
    if (rows != NULL)
        return rows->used;
    ++stream->passes;
    stream->expected = stream->rows;
    stream->rows = 0;
    return NULL;
}

static Size origin_bytes(const TableQuery *query)
{
    const TableWants wants = {query->need_ctid, query->need_ctid && query->relation->has_rows_of_others,
                              query->label != NULL};

    return table_origin_bytes(&wants);
}

static TableStream *create(const TableQuery *query, const Scan *scan, MemoryContext context)
{
    TableStream *const stream = (TableStream *)MemoryContextAllocZero(context, sizeof(TableStream));

    stream->d = scan_features(scan);
    stream->element = table_columns_element(query->features, query->n_features);
    stream->weighted = query->weight != NULL;
    stream->row_bytes = stream->d * pgkm_element_size(stream->element) + (stream->weighted ? sizeof(double) : 0);
    stream->on_reset.func = free_stream;
    stream->on_reset.arg = stream;
    MemoryContextRegisterResetCallback(context, &stream->on_reset);
    return stream;
}

TableStream *table_stream_begin(TableCall *call, const TableQuery *query, List *tables, Scan *scan,
                                MemoryContext context, PgkmScanReport *report)
{
    TableStream *const stream = create(query, scan, context);
    const PgkmRequest settled = settled_request(call);
    const int64 expected = scan_expected_rows(scan);
    TableQuery rows_alone = *query; /* labels, the last column, are written by what rows are */
    const PgkmRows *chunk;

    if (call->memory == TABLE_MEMORY_AUTO && !exceeds_memory(stream, &call->request, expected, origin_bytes(query)))
        return NULL;
    if (!choose_chunk(stream, &settled, expected, query->streamed))
        return NULL;

    MemoryContext caller = MemoryContextSwitchTo(context);

    rows_alone.label = NULL;
    rows_alone.need_ctid = false;
    stream->scan = scan_stream_begin(&rows_alone, tables, scan);
    scan_abandon(scan);
    if (query->new_snapshot) {
        CommandCounterIncrement();
        PushActiveSnapshot(GetTransactionSnapshot());
        stream->own_snapshot = true;
    }
    call->request = settled;
    for (MemoryContext &chunk_context : stream->chunks)
        chunk_context = AllocSetContextCreate(context, "kmeans chunk", ALLOCSET_DEFAULT_SIZES);
    while ((chunk = read_chunk(stream, report)) != NULL)
        stream->n += chunk->n;
    if (stream->n == 0)
        table_stream_end(stream);
    connect(stream, stream->n, stream->most);
    MemoryContextSwitchTo(caller);
    return stream;
}

void table_stream_end(TableStream *stream)
{
    if (stream->own_snapshot)
        PopActiveSnapshot();
    stream->own_snapshot = false;
}

int64 table_stream_rows(const TableStream *stream)
{
    return stream->n;
}

int32 table_stream_features(const TableStream *stream)
{
    return stream->d;
}

void table_stream_request(const TableStream *stream, PgkmRequest *request)
{
    request->points = no_points(stream);
    request->stream = stream->stream;
}

static void feed(void *arg)
{
    TableStream *const stream = (TableStream *)arg;
    const PgkmRows *const chunk = read_chunk(stream, NULL);
    const PgkmPoints points = chunk == NULL ? no_points(stream) : pgkm_rows_points(chunk);

    pgkm_stream_give(stream->stream, &points);
}

PgkmMeanwhile table_stream_meanwhile(TableStream *stream)
{
    return {stream, feed, chunk_bytes(stream, stream->most)};
}
