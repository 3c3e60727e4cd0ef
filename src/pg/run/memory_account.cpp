/*
 * memory_account.cpp - the session's account of memory that holds rows, against pg_kmeans.memory_limit.
 */
#include "pg/run/memory_account.h"

#include "pg/run/server_limits.h"
#include "pg/settings.h"

#include "engine/api.h"

/* Of this process. */
static uint64 reserved_bytes = 0;

/* Of all processes that read rows for the session at the moment; or NULL. */
static pg_atomic_uint64 *shared_bytes = NULL;

static const PgkmReclaimHooks *reclaim_hooks = NULL;

void pgkm_memory_register_reclaim(const PgkmReclaimHooks *hooks)
{
    reclaim_hooks = hooks;
}

static uint64 total_bytes(void)
{
    return shared_bytes == NULL ? reserved_bytes + pgkm_bytes_left_behind() : pg_atomic_read_u64(shared_bytes);
}

uint64 pgkm_memory_available(void)
{
    const uint64 limit = pgkm_memory_limit();
    const uint64 total = total_bytes();

    if (limit == 0)
        return PG_UINT64_MAX;
    return limit > total ? limit - total : 0;
}

uint64 pgkm_memory_free(void)
{
    return Min(pgkm_memory_available(), pgkm_server_room());
}

uint64 pgkm_memory_obtainable(void)
{
    const uint64 available = pgkm_memory_available();
    const uint64 reclaimable = reclaim_hooks == NULL ? 0 : reclaim_hooks->reclaimable();

    return available + Min(reclaimable, PG_UINT64_MAX - available);
}

void pgkm_memory_make_room(uint64 bytes)
{
    if (pgkm_memory_obtainable() < bytes)
        return;
    while (pgkm_memory_available() < bytes && reclaim_hooks != NULL && reclaim_hooks->reclaim())
        ;
}

/* Rounded up: buffers grow up to the limit, and then by one row. */
static unsigned long long whole_kb(uint64 bytes)
{
    return (unsigned long long)(bytes / 1024 + (bytes % 1024 != 0));
}

[[noreturn]] static void raise_limit(const char *detail)
{
    const uint64 left_behind = pgkm_bytes_left_behind();

    if (left_behind != 0)
        detail =
            psprintf("%s A PCA that was cancelled holds %llu kB until its thread ends.", detail, whole_kb(left_behind));
    ereport(ERROR,
            (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("pg_kmeans needs more memory than allowed"),
             errdetail_internal("%s", detail),
             errhint("Raise \"%s\", which is %llu kB.", pgkm_memory_limit_name(), whole_kb(pgkm_memory_limit()))));
    pg_unreachable();
}

void pgkm_raise_memory_limit(uint64 least, uint64 estimate)
{
    raise_limit(estimate > least ? psprintf("The rows alone need an estimated %llu kB.", whole_kb(estimate))
                                 : psprintf("The rows alone need at least %llu kB.", whole_kb(least)));
}

void pgkm_raise_working_memory(const char *what, uint64 estimate)
{
    raise_limit(psprintf("%s needs an estimated %llu kB beside %llu kB of rows.", what, whole_kb(estimate),
                         whole_kb(reserved_bytes)));
}

void pgkm_raise_streamed_memory(uint64 estimate)
{
    raise_limit(psprintf("A fit whose rows are streamed needs an estimated %llu kB.", whole_kb(estimate)));
}

/* The session's loaded rows go before it is refused, or waits. */
static void hold_of_server(int64 change)
{
    while (!pgkm_server_hold(change))
        if (reclaim_hooks == NULL || !reclaim_hooks->reclaim())
            pgkm_server_raise((uint64)change);
}

static void reserve(uint64 bytes, uint64 estimate)
{
    if (unlikely(bytes > pgkm_memory_available()))
        pgkm_memory_make_room(bytes);
    if (unlikely(bytes > pgkm_memory_available()))
        pgkm_raise_memory_limit(total_bytes() + bytes, estimate);
    hold_of_server((int64)bytes);
    reserved_bytes += bytes;
    if (shared_bytes != NULL)
        pg_atomic_fetch_add_u64(shared_bytes, (int64)bytes);
}

static void release(uint64 bytes)
{
    reserved_bytes -= bytes;
    hold_of_server(-(int64)bytes);
    if (shared_bytes != NULL)
        pg_atomic_fetch_sub_u64(shared_bytes, (int64)bytes);
}

void pgkm_memory_hold(uint64 *held, int64 change, uint64 estimate)
{
    if (change >= 0)
        reserve((uint64)change, estimate);
    else
        release((uint64)-change);
    *held += change;
}

void pgkm_memory_hold_work(uint64 *held, int64 change)
{
    hold_of_server(change);
    *held += change;
}

void pgkm_memory_expect(double bytes, MemoryContext context)
{
    const uint64 most = pgkm_memory_limit(); /* what is more is refused by that */
    const uint64 expected = bytes < (double)most ? (uint64)bytes : most;

    if (pgkm_max_memory() == 0 || pgkm_server_has_promised() || expected == 0)
        return;

    MemoryContextCallback *const on_reset =
        (MemoryContextCallback *)MemoryContextAllocZero(context, sizeof(MemoryContextCallback));

    while (!pgkm_server_promise(expected))
        if (reclaim_hooks == NULL || !reclaim_hooks->reclaim())
            pgkm_server_raise(expected);
    on_reset->func = [](void *) { pgkm_server_drop_promise(); };
    MemoryContextRegisterResetCallback(context, on_reset);
}

void pgkm_memory_share(pg_atomic_uint64 *total)
{
    shared_bytes = total;
    if (total != NULL)
        pg_atomic_fetch_add_u64(total, (int64)(reserved_bytes + pgkm_bytes_left_behind()));
}
