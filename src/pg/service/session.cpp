/*
 * session.cpp - finds, starts and asks the GPU service.
 */
#include "pg/service/session.h"

#include <unistd.h>

#include "pg/service/state.h"
#include "pg/service/worker.h"
#include "pg/settings.h"
#include "service/service.h"

extern "C" {
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
}

#define SLICE_MS 10         /* between two looks */
#define START_MS 60000      /* for the driver to start */
#define LOOK_MS 1000        /* for an answer to a session that only looks */
#define LAUNCH_MS 5000      /* for a worker to begin */
#define MOST_LAUNCHES 3     /* of workers that end before they listen */
#define NO_DEVICE_MS 300000 /* before another look for a device */

/* A channel that no job uses at the moment, so that many small fits need not connect anew. */
static int spare = 0;

/* One that is being tried: an ERROR meanwhile must not lose it. */
static int tried = 0;

static void disconnect(int *channel)
{
    const int closing = *channel;

    *channel = 0;
    if (closing == 0)
        return;
    pgkm_service_disconnect(closing);
    ReleaseExternalFD();
}

static void nap(void)
{
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, SLICE_MS, PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
}

/* Waits for the answer to what was asked: as pgkm_service_ready. */
static int await_answer(int channel, int milliseconds, PgkmError *error)
{
    const TimestampTz begin = GetCurrentTimestamp();
    int ready = 0;

    while (ready == 0 && !TimestampDifferenceExceeds(begin, GetCurrentTimestamp(), milliseconds)) {
        ready = pgkm_service_ready(channel, SLICE_MS, error);
        CHECK_FOR_INTERRUPTS();
    }
    return ready;
}

/* Whether the service answers on the connection that is being tried. It is dropped if not. *why, unless empty, says why
 * this service is of no use. */
static bool answers(int milliseconds, PgkmError *why)
{
    const int ready = await_answer(tried, milliseconds, why);

    if (ready == 1)
        return true;
    if (ready == 0)
        strlcpy(why->text, "the GPU service does not answer", sizeof why->text);
    disconnect(&tried);
    return false;
}

/* Tries to connect to a service that runs already, and waits so long for its answer; *why as above. */
static bool find_service(int milliseconds, PgkmError *why)
{
    if (spare != 0) {
        tried = spare;
        spare = 0;
        if (pgkm_service_ask_again(tried) && answers(milliseconds, why))
            return true;
        disconnect(&tried);
        *why = {}; /* that service may be gone; there may be another */
    }

    const int channel = pgkm_service_connect(PGKM_SERVICE_SOCKET);

    if (channel < 0)
        return false;
    ReserveExternalFD();
    tried = channel;
    return answers(milliseconds, why);
}

/* Whether it was found a short time ago that there is no device. Then sets *settings to the reason. */
static bool no_device(ServiceState *state, PgkmSettings *settings)
{
    static char reason[sizeof state->reason];
    const TimestampTz now = GetCurrentTimestamp();
    const uint32 plugin = pgkm_service_plugin_hash(settings->plugin);

    SpinLockAcquire(&state->mutex);

    const TimestampTz since = state->plugin == plugin ? state->no_device : 0;

    memcpy(reason, state->reason, sizeof reason);
    SpinLockRelease(&state->mutex);
    if (since == 0 || TimestampDifferenceExceeds(since, now, NO_DEVICE_MS))
        return false;
    settings->no_device = reason;
    return true;
}

/* Of all sessions that miss the service, one starts it. False when that is not possible. */
static bool start_unless_started(ServiceState *state, int *launches)
{
    const TimestampTz now = GetCurrentTimestamp();

    if (*launches == MOST_LAUNCHES)
        return false;

    SpinLockAcquire(&state->mutex);

    const bool launch =
        state->pid == 0 && (state->launched == 0 || now > TimestampTzPlusMilliseconds(state->launched, LAUNCH_MS));

    if (launch)
        state->launched = now;
    SpinLockRelease(&state->mutex);
    if (!launch)
        return true;
    ++*launches;
    if (pgkm_service_launch() != NULL)
        return true;
    SpinLockAcquire(&state->mutex);
    state->launched = 0;
    SpinLockRelease(&state->mutex);
    return false;
}

/* Where the service's state is, with no channel so far; NULL: devices are reached without the service. */
static ServiceState *begin_search(PgkmSettings *settings)
{
    settings->channel = 0;
    settings->no_device = NULL;
    disconnect(&tried);
    return pgkm_service_enabled && access(settings->plugin, R_OK) == 0 ? pgkm_service_state() : NULL;
}

static void use_found(PgkmSettings *settings)
{
    settings->channel = tried;
    tried = 0;
}

void pgkm_service_acquire(PgkmSettings *settings)
{
    ServiceState *const state = begin_search(settings);
    PgkmError why = {};
    int launches = 0;

    if (state == NULL)
        return;

    const TimestampTz begin = GetCurrentTimestamp();

    while (!TimestampDifferenceExceeds(begin, GetCurrentTimestamp(), START_MS)) {
        if (find_service(START_MS, &why)) {
            use_found(settings);
            return;
        }
        if (why.text[0] != '\0' || no_device(state, settings) || !start_unless_started(state, &launches))
            return;
        nap();
    }
}

const char *pgkm_service_look(PgkmSettings *settings)
{
    static const char not_started[] = "the GPU service is not started: the first job for a GPU starts it";
    static PgkmError why;
    ServiceState *const state = begin_search(settings);

    why = {};
    if (state == NULL)
        return NULL;
    if (pgkm_service_pid() != 0 && find_service(LOOK_MS, &why)) {
        use_found(settings);
        return NULL;
    }
    if (why.text[0] != '\0')
        return why.text;
    return no_device(state, settings) ? NULL : not_started;
}

bool pgkm_service_answers(int channel)
{
    PgkmError error = {};

    return pgkm_service_ask_again(channel) && await_answer(channel, START_MS, &error) == 1;
}

void pgkm_service_release(int channel)
{
    if (channel == 0)
        return;
    disconnect(&spare);
    spare = channel;
}

int pgkm_service_pid(void)
{
    ServiceState *const state = pgkm_service_state();
    int pid = 0;

    if (state != NULL) {
        SpinLockAcquire(&state->mutex);
        pid = state->started != 0 ? state->pid : 0;
        SpinLockRelease(&state->mutex);
    }
    return pid;
}

bool pgkm_service_runs(void)
{
    return pgkm_service_enabled && pgkm_service_pid() != 0;
}
