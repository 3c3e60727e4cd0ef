/*
 * statistics.cpp - pg_stat_kmeans and pg_stat_kmeans_reset().
 */
#include "pg/shared/statistics.h"

#include "pg/shared/named.h"
#include "pg/values/composite.h"

extern "C" {
#include "storage/spin.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(pgkm_statistics);
PG_FUNCTION_INFO_V1(pgkm_statistics_reset);
}

/* More than there are functions that fit, times backends. */
#define MOST_LINES 128

struct Line {
    char function[32];
    char backend[8]; /* empty: none */
    int64 fits;      /* since the reset, as what follows */
    int64 rows;
    double seconds;
};

struct Statistics {
    slock_t mutex; /* guards all of it */
    TimestampTz reset;
    int n;
    Line lines[MOST_LINES]; /* the first n are in use */
};

static void init_statistics(void *memory)
{
    Statistics *const statistics = (Statistics *)memory;

    memset(statistics, 0, sizeof *statistics);
    SpinLockInit(&statistics->mutex);
    statistics->reset = GetCurrentTimestamp();
}

static Statistics *find_statistics(void)
{
    static NamedStruct statistics = {"pg_kmeans statistics 1", init_statistics, NULL, false};

    return (Statistics *)pgkm_named_struct(&statistics, sizeof(Statistics));
}

/* Under the lock: the line, which the first fit makes; NULL where there is no room. */
static Line *find_line(Statistics *statistics, const char *function, const char *backend)
{
    Line *line = statistics->lines;

    for (; line < statistics->lines + statistics->n; ++line)
        if (strcmp(line->function, function) == 0 && strcmp(line->backend, backend) == 0)
            return line;
    if (statistics->n == MOST_LINES)
        return NULL;
    *line = {};
    strlcpy(line->function, function, sizeof line->function);
    strlcpy(line->backend, backend, sizeof line->backend);
    ++statistics->n;
    return line;
}

void pgkm_statistics_add(const char *function, const char *backend, int64 fits, int64 rows, double seconds)
{
    Statistics *const statistics = find_statistics();

    if (statistics == NULL)
        return;
    SpinLockAcquire(&statistics->mutex);
    if (Line *const line = find_line(statistics, function, backend == NULL ? "" : backend)) {
        line->fits += fits;
        line->rows += rows;
        line->seconds += seconds;
    }
    SpinLockRelease(&statistics->mutex);
}

/* pgkm_statistics() -> setof (function, backend, fits, rows, seconds, stats_reset) */
Datum pgkm_statistics(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = pgkm_result_begin(fcinfo);
    Statistics *const statistics = find_statistics();
    Statistics *const copy = (Statistics *)palloc0(sizeof(Statistics));

    if (statistics != NULL) {
        SpinLockAcquire(&statistics->mutex);
        memcpy(copy, statistics, sizeof *copy);
        SpinLockRelease(&statistics->mutex);
    }
    for (const Line *line = copy->lines; line < copy->lines + copy->n; ++line)
        pgkm_result_put(result, {line->function, pgkm_value_if(line->backend[0] != '\0', line->backend), line->fits,
                                 line->rows, line->seconds, (int64)copy->reset});
    return (Datum)0;
}

/* pg_stat_kmeans_reset() -> void */
Datum pgkm_statistics_reset(PG_FUNCTION_ARGS)
{
    Statistics *const statistics = find_statistics();
    const TimestampTz now = GetCurrentTimestamp();

    (void)fcinfo;
    if (statistics != NULL) {
        SpinLockAcquire(&statistics->mutex);
        statistics->reset = now;
        statistics->n = 0;
        SpinLockRelease(&statistics->mutex);
    }
    PG_RETURN_VOID();
}
