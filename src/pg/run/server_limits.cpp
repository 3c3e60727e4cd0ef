/*
 * server_limits.cpp - what all sessions have together, in shared memory.
 *
 * A session is a process with the parallel workers that it leads: all of them count as the leader.
 */
#include "pg/run/server_limits.h"

#include "pg/compat.h"
#include "pg/progress.h"
#include "pg/settings.h"
#include "pg/shared/named.h"

extern "C" {
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/spin.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
}

/* Memory counts in whole MB. A session below the first one does without what is shared. */
#define MEGABYTE ((uint64)1024 * 1024)

/* How long a session that waits sleeps at most before it tells another server that it lives. */
#define SLEEP_MS 500

struct Session {
    int32 held;     /* MB */
    int32 promised; /* what its call may come to hold; where that is more, it counts */
    int32 limit;    /* of a process that waits, as what follows: its pg_kmeans.max_memory */
    uint32 ticket;  /* in the line; 0: it does not wait */
};

struct ServerLimits {
    slock_t mutex; /* guards all that follows but `freed` */
    int32 threads;
    int64 megabytes; /* that count of all sessions */
    uint32 tickets;  /* so many were drawn */
    int32 waiting;
    ConditionVariable freed;
    Session sessions[FLEXIBLE_ARRAY_MEMBER]; /* by the server's number of the process */
};

/* What this process has. */
static uint64 used_bytes = 0;
static int32 held_megabytes = 0; /* the whole ones of them */
static int32 own_threads = 0;
static bool has_promised = false;
static bool is_in_line = false;
static bool has_ended = false;

static Size limits_bytes(void)
{
    return offsetof(ServerLimits, sessions) + ProcGlobal->allProcCount * sizeof(Session);
}

static void init_limits(void *memory)
{
    ServerLimits *const all = (ServerLimits *)memory;

    memset(all, 0, limits_bytes());
    SpinLockInit(&all->mutex);
    ConditionVariableInit(&all->freed);
}

static void give_all_back(int, Datum);

/* NULL: nothing is counted. */
static ServerLimits *find_limits(void)
{
    static NamedStruct limits = {"pg_kmeans limits 1", init_limits, NULL, false};
    const bool is_first = !limits.tried;
    ServerLimits *const all = has_ended ? NULL : (ServerLimits *)pgkm_named_struct(&limits, limits_bytes());

    if (all != NULL && is_first)
        before_shmem_exit(give_all_back, (Datum)0);
    return all;
}

static Session *session_of(ServerLimits *all, const PGPROC *process)
{
    return &all->sessions[process - ProcGlobal->allProcs];
}

static Session *own_session(ServerLimits *all)
{
    return session_of(all, MyProc->lockGroupLeader != NULL ? MyProc->lockGroupLeader : MyProc);
}

static int32 counted(const Session *session)
{
    return Max(session->held, session->promised);
}

static int32 max_megabytes(void)
{
    return pgkm_max_memory() == 0 ? PG_INT32_MAX : (int32)(pgkm_max_memory() / MEGABYTE);
}

/* Under the lock. Whether another process came before that waits for no less: one with a smaller limit leaves the rest
 * to this one. */
static bool is_behind(ServerLimits *all, int32 limit)
{
    const uint32 ticket = session_of(all, MyProc)->ticket;
    const Session *const end = all->sessions + ProcGlobal->allProcCount;

    for (const Session *other = all->sessions; all->waiting > 0 && other < end; ++other)
        if (other->ticket != 0 && other->limit >= limit && (ticket == 0 || other->ticket < ticket))
            return true;
    return false;
}

/* REFUSED: there is no room, and the session holds something. */
enum Outcome { DONE, LATER, REFUSED };

/* Adds to what the session holds. Beside that it is promised so much, if more than 0; below 0 no promise stays. */
static Outcome try_change(ServerLimits *all, int32 held, int32 promised)
{
    const int32 limit = max_megabytes();
    Session *const mine = own_session(all);

    SpinLockAcquire(&all->mutex);

    const int32 before = counted(mine);
    const Session old = *mine;

    mine->held += held;
    if (promised != 0)
        mine->promised = promised < 0 ? 0 : old.held + promised;

    const int32 more = counted(mine) - before;
    const bool fits = more <= 0 || (all->megabytes + more <= limit && (before > 0 || !is_behind(all, limit)));
    const bool wakes = more < 0 && all->waiting > 0;

    if (fits)
        all->megabytes += more;
    else
        *mine = old;
    SpinLockRelease(&all->mutex);
    if (wakes)
        ConditionVariableBroadcast(&all->freed);
    return fits ? DONE : before > 0 ? REFUSED : LATER;
}

/* Gets this process in line, or out of it: then those behind may be served. */
static void stand_in_line(ServerLimits *all, bool in)
{
    Session *const place = session_of(all, MyProc);

    is_in_line = in;
    SpinLockAcquire(&all->mutex);
    place->ticket = in ? ++all->tickets : 0;
    place->limit = max_megabytes();
    all->waiting += in ? 1 : -1;
    SpinLockRelease(&all->mutex);
    if (!in)
        ConditionVariableBroadcast(&all->freed);
}

/* 0: the time is over. */
static long milliseconds_left(TimestampTz begin)
{
    if (pgkm_queue_timeout == 0)
        return SLEEP_MS;
    return Min(SLEEP_MS, TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
                                                         TimestampTzPlusMilliseconds(begin, pgkm_queue_timeout)));
}

static Outcome wait_to_change(ServerLimits *all, int32 held, int32 promised)
{
    const TimestampTz begin = GetCurrentTimestamp();
    const uint32 event = pgkm_wait_event("KmeansMemory");
    volatile Outcome outcome = LATER;

    stand_in_line(all, true);
    PG_TRY();
    {
        ConditionVariablePrepareToSleep(&all->freed);
        for (long left = SLEEP_MS; left > 0; left = milliseconds_left(begin)) {
            outcome = try_change(all, held, promised);
            if (outcome != LATER)
                break;
            pgkm_progress_waiting();
            (void)ConditionVariableTimedSleep(&all->freed, milliseconds_left(begin), event);
        }
    }
    PG_FINALLY();
    {
        ConditionVariableCancelSleep();
        stand_in_line(all, false);
    }
    PG_END_TRY();
    return outcome;
}

static bool change(int32 held, int32 promised)
{
    ServerLimits *const all = find_limits();
    Outcome outcome = all == NULL ? DONE : try_change(all, held, promised);

    if (outcome == LATER)
        outcome = wait_to_change(all, held, promised);
    return outcome == DONE;
}

bool pgkm_server_hold(int64 bytes)
{
    const int32 to = (int32)((used_bytes + bytes) / MEGABYTE);

    if (to != held_megabytes && !change(to - held_megabytes, 0))
        return false;
    held_megabytes = to;
    used_bytes += bytes;
    return true;
}

bool pgkm_server_promise(uint64 bytes)
{
    has_promised = change(0, (int32)((bytes + MEGABYTE - 1) / MEGABYTE));
    return has_promised;
}

bool pgkm_server_has_promised(void)
{
    return has_promised;
}

void pgkm_server_drop_promise(void)
{
    if (has_promised)
        (void)change(0, -1);
    has_promised = false;
}

uint64 pgkm_server_room(void)
{
    ServerLimits *const all = pgkm_max_memory() == 0 ? NULL : find_limits();

    if (all == NULL)
        return PG_UINT64_MAX;
    SpinLockAcquire(&all->mutex);

    const Session mine = *own_session(all);
    const int64 room = max_megabytes() - all->megabytes + counted(&mine) - mine.held;

    SpinLockRelease(&all->mutex);
    return (uint64)Max(room, 0) * MEGABYTE + MEGABYTE - 1 - used_bytes % MEGABYTE;
}

void pgkm_server_raise(uint64 bytes)
{
    ServerLimits *const all = find_limits();
    ServerLimits *const copy = (ServerLimits *)palloc0(limits_bytes());
    StringInfoData holders;

    if (all != NULL) {
        SpinLockAcquire(&all->mutex);
        memcpy(copy, all, limits_bytes());
        SpinLockRelease(&all->mutex);
    }
    initStringInfo(&holders);
    for (uint32 i = 0; i < ProcGlobal->allProcCount; ++i)
        if (counted(&copy->sessions[i]) > 0)
            appendStringInfo(&holders, "%s process %d holds %d MB", holders.len == 0 ? " Of these," : ",",
                             ProcGlobal->allProcs[i].pid, counted(&copy->sessions[i]));
    ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("no memory is left of \"pg_kmeans.max_memory\""),
                    errdetail_internal("The call needs %d MB more, and all sessions may hold %d MB.%s%s",
                                       (int)((bytes + MEGABYTE - 1) / MEGABYTE), max_megabytes(), holders.data,
                                       holders.len == 0 ? "" : "."),
                    counted(own_session(copy)) > 0
                        ? errhint("A session that holds memory does not wait for more. Try again later, or raise "
                                  "\"pg_kmeans.max_memory\".")
                        : errhint("Try again later, or raise \"pg_kmeans.queue_timeout\", which is %d ms.",
                                  pgkm_queue_timeout)));
    pg_unreachable();
}

int32 pgkm_server_threads(int32 change)
{
    const int32 limit = pgkm_max_threads();
    ServerLimits *const all = find_limits();

    if (all == NULL || change == 0)
        return change;
    SpinLockAcquire(&all->mutex);

    const int32 taken = change < 0 || limit == 0 ? change : Max(Min(change, limit - all->threads), 1);

    all->threads += taken;
    SpinLockRelease(&all->mutex);
    own_threads += taken;
    return taken;
}

/* A FATAL error ends the process without resetting memory contexts, or before it does. */
static void give_all_back(int, Datum)
{
    ServerLimits *const all = find_limits();

    if (is_in_line)
        stand_in_line(all, false);
    (void)pgkm_server_threads(-own_threads);
    (void)try_change(all, -held_megabytes, has_promised ? -1 : 0);
    has_ended = true;
}
