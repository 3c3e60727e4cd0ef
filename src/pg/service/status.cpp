/*
 * status.cpp - kmeans_status(): what can compute here, and why something cannot.
 */
#include "pg/compat.h"

#include "pg/service/session.h"
#include "pg/settings.h"
#include "pg/version.h"

extern "C" {
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_status);
}

#define MAX_LINES 128

enum StatusColumn {
    STATUS_BACKEND,
    STATUS_AVAILABLE,
    STATUS_DEVICE,
    STATUS_NAME,
    STATUS_UNITS,
    STATUS_CAPABILITY,
    STATUS_MEMORY_TOTAL,
    STATUS_MEMORY_FREE,
    STATUS_DRIVER,
    STATUS_VERSION,
    STATUS_REASON,
    STATUS_SERVICE_PID,
    STATUS_JOBS,
    STATUS_JOBS_WAITING,
    STATUS_MEMORY_HELD,
    STATUS_COUNT
};

/* A row of values that are NULL until set. */
struct StatusRow {
    Datum values[STATUS_COUNT];
    bool  nulls[STATUS_COUNT];
};

static void set(StatusRow *row, StatusColumn column, Datum value)
{
    row->values[column] = value;
    row->nulls[column] = false;
}

/* Texts that are empty and numbers that are 0 are unknown: NULL. */
static void set_text(StatusRow *row, StatusColumn column, const char *text)
{
    if (text[0] != '\0')
        set(row, column, CStringGetTextDatum(text));
}

static void fill_device(StatusRow *row, const PgkmDevice *device)
{
    if (device->ordinal >= 0)
        set(row, STATUS_DEVICE, Int32GetDatum(device->ordinal));
    set_text(row, STATUS_NAME, device->name);
    if (device->units > 0)
        set(row, STATUS_UNITS, Int32GetDatum(device->units));
    if (device->capability_major > 0)
        set_text(row, STATUS_CAPABILITY, psprintf("%d.%d", device->capability_major, device->capability_minor));
    if (device->memory_total > 0) {
        set(row, STATUS_MEMORY_TOTAL, Int64GetDatum((int64) device->memory_total));
        set(row, STATUS_MEMORY_FREE, Int64GetDatum((int64) device->memory_free));
    }
    /* CUDA numbers its drivers 1000 x major + 10 x minor. */
    if (device->driver_version > 0)
        set_text(row, STATUS_DRIVER,
                 psprintf("%d.%d", device->driver_version / 1000, device->driver_version % 1000 / 10));
    set_text(row, STATUS_REASON, device->reason);
}

static void fill_service(StatusRow *row, const PgkmBackendStatus *line)
{
    if (!line->served)
        return;
    set(row, STATUS_SERVICE_PID, Int32GetDatum(pgkm_service_pid()));
    set(row, STATUS_JOBS, Int32GetDatum(line->jobs));
    set(row, STATUS_JOBS_WAITING, Int32GetDatum(line->jobs_waiting));
    set(row, STATUS_MEMORY_HELD, Int64GetDatum((int64) line->memory_held));
}

/*
 * kmeans_status() -> one row per backend and device; reason says why one is not available.
 */
Datum pgkm_kmeans_status(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const     result = (ReturnSetInfo *) fcinfo->resultinfo;
    PgkmBackendStatus *const lines = (PgkmBackendStatus *) palloc0(MAX_LINES * sizeof(PgkmBackendStatus));
    PgkmSettings             settings;

    InitMaterializedSRF(fcinfo, 0);
    pgkm_settings_fill(&settings);
    pgkm_service_acquire(&settings);

    const int32 count = pgkm_status(&settings, lines, MAX_LINES);

    pgkm_service_release(settings.channel);

    for (int32 i = 0; i < Min(count, MAX_LINES); ++i) {
        StatusRow row;

        memset(row.nulls, true, sizeof row.nulls);
        set_text(&row, STATUS_BACKEND, lines[i].backend);
        set(&row, STATUS_AVAILABLE, BoolGetDatum(lines[i].available != 0));
        fill_device(&row, &lines[i].device);
        fill_service(&row, &lines[i]);
        set_text(&row, STATUS_VERSION, PGKM_VERSION);
        tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
    }
    return (Datum) 0;
}
