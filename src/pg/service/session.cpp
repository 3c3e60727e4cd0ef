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
static int await_answer(int channel, PgkmError *error)
{
    const TimestampTz begin = GetCurrentTimestamp();
    int ready = 0;

    while (ready == 0 && !TimestampDifferenceExceeds(begin, GetCurrentTimestamp(), START_MS)) {
        ready = pgkm_service_ready(channel, SLICE_MS, error);
        CHECK_FOR_INTERRUPTS();
    }
    return ready;
}

/* Whether the service answers on the connection that is being tried. It is dropped if not. */
static bool answers(bool *refused)
{
    PgkmError error = {PGKM_OK, ""};
    const int ready = await_answer(tried, &error);

    if (ready == 1)
        return true;
    *refused = *refused || ready == 0 || error.text[0] != '\0';
    disconnect(&tried);
    return false;
}

/* Tries to connect to a service that runs already. */
static bool find_service(bool *refused)
{
    if (spare != 0) {
        tried = spare;
        spare = 0;
        if (pgkm_service_ask_again(tried) && answers(refused))
            return true;
        disconnect(&tried);
        *refused = false; /* that service may be gone; there may be another */
    }

    const int channel = pgkm_service_connect(PGKM_SERVICE_SOCKET);

    if (channel < 0)
        return false;
    ReserveExternalFD();
    tried = channel;
    return answers(refused);
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

void pgkm_service_acquire(PgkmSettings *settings)
{
    ServiceState *state;
    bool refused = false;
    int launches = 0;

    settings->channel = 0;
    settings->no_device = NULL;
    disconnect(&tried);
    if (!pgkm_service_enabled || access(settings->plugin, R_OK) != 0 || (state = pgkm_service_state()) == NULL)
        return;

    const TimestampTz begin = GetCurrentTimestamp();

    while (!TimestampDifferenceExceeds(begin, GetCurrentTimestamp(), START_MS)) {
        if (find_service(&refused)) {
            settings->channel = tried;
            tried = 0;
            return;
        }
        if (refused || no_device(state, settings) || !start_unless_started(state, &launches))
            return;
        nap();
    }
}

bool pgkm_service_answers(int channel)
{
    PgkmError error = {PGKM_OK, ""};

    return pgkm_service_ask_again(channel) && await_answer(channel, &error) == 1;
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
