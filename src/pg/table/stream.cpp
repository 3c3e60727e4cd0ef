/*
 * stream.cpp - gives a job the rows of a table in chunks.
 *
 * Two chunks are in memory: one that the job works on, and one that is read for it meanwhile.
 */
#include "pg/table/stream.h"

#include "pg/run/memory_account.h"
#include "pg/scan/scan.h"

extern "C" {
#include "utils/memutils.h"
}

/* A chunk that the job has, and one that is read: its processes' own rows, and where these are brought together. */
#define CHUNK_COPIES 4

/* More than this for chunks saves nothing. */
#define ENOUGH_BYTES ((uint64)4 * 1024 * 1024 * 1024)

/* The share of the memory there is that chunks, and the work on them, are to take. */
#define USABLE 0.8

/* Fewer rows are no chunk. */
#define FEWEST_ROWS 256

struct ScanStream : TableStream {
    MemoryContextCallback on_reset;
    DirectScan *scan; /* NULL: it has ended */
    int64 most;       /* rows of a chunk */
    MemoryContext chunks[2];
    int64 read;     /* chunks */
    int64 passes;   /* that have ended */
    int64 rows;     /* of this one, those that take no part included */
    int64 expected; /* of each; 0: the first one has not counted them yet */
};

static void free_stream(void *stream)
{
    pgkm_stream_free(((ScanStream *)stream)->stream);
}

static Size row_bytes(const PgkmPoints *points)
{
    return pgkm_row_bytes(points->element, points->d) + (points->weights != NULL ? sizeof(double) : 0);
}

static uint64 chunk_bytes(const ScanStream *stream, int64 rows)
{
    return (uint64)rows * row_bytes(&stream->points) * CHUNK_COPIES;
}

static void connect(ScanStream *stream, int64 n, int64 most)
{
    pgkm_stream_free(stream->stream);
    stream->stream = pgkm_stream_create(n, most);
    if (stream->stream == NULL)
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
}

/* What chunks of so many rows take, with the engine's work on them. */
static double bytes_in_chunks(ScanStream *stream, const PgkmRequest *of, int64 n, int64 most)
{
    PgkmRequest request = *of;

    connect(stream, n, most);
    request.points = stream->points;
    request.stream = stream->stream;
    return (double)pgkm_request_estimate(&request) + (double)chunk_bytes(stream, most);
}

/* The most rows of a chunk that leave a reserve. Returns 0, or where there is no room for any what the fewest need. */
static uint64 choose_chunk(ScanStream *stream, const PgkmRequest *request, int64 expected)
{
    pgkm_memory_make_room(pgkm_memory_obtainable() / 2);

    const int64 n = Max(expected, (int64)FEWEST_ROWS);
    const double room = USABLE * (double)Min(pgkm_memory_available(), ENOUGH_BYTES);
    double bytes = bytes_in_chunks(stream, request, n, stream->most = n);

    while (bytes > room && stream->most > FEWEST_ROWS) {
        stream->most = Max(stream->most / 4 * 3, (int64)FEWEST_ROWS);
        bytes = bytes_in_chunks(stream, request, n, stream->most);
    }
    return bytes > room ? (uint64)(bytes / USABLE) : 0;
}

double table_bytes_in_memory(const TableCall *call, const TableQuery *query, const DirectScan *scan)
{
    const TableWants wants = table_query_wants(query);
    PgkmRequest request = call->request;

    request.points = scan_no_points(scan);
    request.points.n = scan_expected_rows(scan);
    if (request.points.d == 0 || request.points.n == 0)
        return 0;

    const Size row = row_bytes(&request.points) + table_origin_bytes(&wants);

    return (double)request.points.n * (double)row + (query->may_stream ? (double)pgkm_request_estimate(&request) : 0.0);
}

/* The next chunk that has rows that take part; NULL at the end of the pass. */
static const PgkmRows *read_chunk(ScanStream *stream, PgkmScanReport *report)
{
    MemoryContext context = stream->chunks[stream->read++ % lengthof(stream->chunks)];
    TableRows *rows;
    int32 workers = 0;

    do {
        MemoryContextReset(context);
        pgkm_progress_pass(stream->passes + 1, stream->rows, stream->expected);
        rows = scan_next(stream->scan, context, &workers);
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

static ScanStream *create(const DirectScan *scan, MemoryContext context)
{
    ScanStream *const stream = (ScanStream *)MemoryContextAllocZero(context, sizeof(ScanStream));

    stream->points = scan_no_points(scan);
    stream->on_reset.func = free_stream;
    stream->on_reset.arg = stream;
    MemoryContextRegisterResetCallback(context, &stream->on_reset);
    return stream;
}

static void feed(void *arg)
{
    ScanStream *const stream = (ScanStream *)arg;
    const PgkmRows *const chunk = read_chunk(stream, NULL);
    const PgkmPoints points = chunk == NULL ? stream->points : pgkm_rows_points(chunk);

    pgkm_stream_give(stream->stream, &points);
}

TableStream *table_stream_begin(TableCall *call, const TableQuery *query, DirectScan *scan, MemoryContext context,
                                PgkmScanReport *report)
{
    ScanStream *const stream = create(scan, context);
    const int64 expected = scan_expected_rows(scan);
    const double resident = table_bytes_in_memory(call, query, scan);
    const PgkmRows *chunk;

    if (call->memory == TABLE_MEMORY_AUTO && resident <= (double)pgkm_memory_obtainable())
        return NULL;

    const uint64 lacking = choose_chunk(stream, &call->request, expected);

    if (lacking > 0 && query->streamed)
        pgkm_raise_streamed_memory(lacking);
    if (lacking > 0) {
        call->streamed_bytes = (double)lacking < resident ? lacking : 0;
        return NULL;
    }

    pgkm_memory_expect(bytes_in_chunks(stream, &call->request, Max(expected, (int64)FEWEST_ROWS), stream->most),
                       context);

    MemoryContext caller = MemoryContextSwitchTo(context);

    stream->scan = scan;
    scan_stream(scan, stream->most);
    for (MemoryContext &chunk_context : stream->chunks)
        chunk_context = AllocSetContextCreate(context, "kmeans chunk", ALLOCSET_DEFAULT_SIZES);
    while ((chunk = read_chunk(stream, report)) != NULL)
        stream->n += chunk->n;
    if (stream->n == 0)
        table_stream_end(stream);
    connect(stream, stream->n, stream->most);
    stream->meanwhile = {stream, feed, chunk_bytes(stream, stream->most)};
    MemoryContextSwitchTo(caller);
    return stream;
}

void table_stream_end(TableStream *of)
{
    ScanStream *const stream = (ScanStream *)of;

    if (stream->scan != NULL)
        scan_end(stream->scan);
    stream->scan = NULL;
}
