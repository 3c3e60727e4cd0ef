/*
 * status.cpp - kmeans_status(): what can compute here, and why something cannot.
 */
#include "pg/service/session.h"
#include "pg/settings.h"
#include "pg/values/composite.h"
#include "pg/version.h"

extern "C" {
PG_FUNCTION_INFO_V1(pgkm_kmeans_status);
}

#define MAX_LINES 128

/* A text that is empty is unknown: NULL. */
static PgkmValue text_value(const char *text)
{
    return text[0] != '\0' ? text : (const char *)NULL;
}

/* Numbers that are 0 are unknown, but for those of the service; and so is, where `known` is false, whether there is a
 * device. */
static void put_line(ReturnSetInfo *result, const PgkmBackendStatus *line, bool known)
{
    const PgkmDevice *const device = &line->device;
    const bool has_memory = device->memory_total > 0;
    const char *capability = NULL;
    const char *driver = NULL;

    if (device->capability_major > 0)
        capability = psprintf("%d.%d", device->capability_major, device->capability_minor);
    /* CUDA numbers its drivers 1000 x major + 10 x minor. */
    if (device->driver_version > 0)
        driver = psprintf("%d.%d", device->driver_version / 1000, device->driver_version % 1000 / 10);
    pgkm_result_put(result, {text_value(line->backend), pgkm_value_if(known, line->available != 0),
                             pgkm_value_if(device->ordinal >= 0, device->ordinal), text_value(device->name),
                             pgkm_value_if(device->units > 0, device->units), capability,
                             pgkm_value_if(has_memory, (int64)device->memory_total),
                             pgkm_value_if(has_memory, (int64)device->memory_free), driver, PGKM_VERSION,
                             text_value(device->reason), pgkm_value_if(line->served, (int32)pgkm_service_pid()),
                             pgkm_value_if(line->served, line->jobs), pgkm_value_if(line->served, line->jobs_waiting),
                             pgkm_value_if(line->served, (int64)line->memory_held)});
}

/*
 * kmeans_status() -> one row per backend and device; reason says why one is not available, or why that is not known.
 * A look starts no service.
 */
Datum pgkm_kmeans_status(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = pgkm_result_begin(fcinfo);
    PgkmBackendStatus *const lines = (PgkmBackendStatus *)palloc0(MAX_LINES * sizeof(PgkmBackendStatus));
    PgkmSettings settings;

    pgkm_settings_fill(&settings);

    const char *const unknown = pgkm_service_look(&settings);

    if (unknown != NULL)
        settings.no_device = unknown;

    const int32 count = pgkm_status(&settings, lines, MAX_LINES);

    pgkm_service_release(settings.channel);
    for (int32 i = 0; i < Min(count, MAX_LINES); ++i)
        put_line(result, &lines[i], unknown == NULL || lines[i].device.ordinal >= 0);
    return (Datum)0;
}
