/*
 * cancel_after.c - for test/pgtap/deep/late_cancels.sh: a cancel that comes after so much processor time of the
 * session's process, and how much more of it was used until it took effect. The machine's load does not show in either.
 */
#include "postgres.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/latch.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(cancel_after);
PG_FUNCTION_INFO_V1(since_cancel);

static timer_t timer;
static volatile double struck; /* 0: not yet */

static double processor_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
}

/* What the server does where a cancel comes in. */
static void strike(int signal)
{
    int saved = errno;

    struck = processor_ms();
    QueryCancelPending = true;
    InterruptPending = true;
    SetLatch(MyLatch);
    errno = saved;
}

static void set_timer(double ms)
{
    struct itimerspec once = {{0, 0}, {(time_t)(ms / 1e3), (long)(1e6 * (ms - 1e3 * (time_t)(ms / 1e3)))}};

    if (timer_settime(timer, 0, &once, NULL) != 0)
        elog(ERROR, "timer_settime: %m");
}

/* cancel_after(ms float8) -> void */
Datum cancel_after(PG_FUNCTION_ARGS)
{
    static bool made = false;

    if (!made) {
        struct sigaction action = {.sa_handler = strike, .sa_flags = SA_RESTART};
        struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 3};

        event._sigev_un._tid = syscall(SYS_gettid);
        if (sigaction(SIGRTMIN + 3, &action, NULL) != 0 || timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) != 0)
            elog(ERROR, "timer_create: %m");
        made = true;
    }
    struck = 0;
    set_timer(PG_GETARG_FLOAT8(0));
    PG_RETURN_VOID();
}

/* since_cancel() -> float8: milliseconds; NULL if none has come. */
Datum since_cancel(PG_FUNCTION_ARGS)
{
    double now = processor_ms();

    set_timer(0);
    if (struck == 0)
        PG_RETURN_NULL();
    PG_RETURN_FLOAT8(now - struck);
}
