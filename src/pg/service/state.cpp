/*
 * state.cpp - finds or makes the service's struct in shared memory, with and without preloading.
 */
#include "pg/service/state.h"

#include "pg/shared/structs.h"

extern "C" {
#include "common/hashfn.h"
#include "miscadmin.h"
}

/* Another layout gets another name: a library of another version may be loaded beside this one. */
#define STATE_NAME "pg_kmeans service 1"

static void init_state(void *memory)
{
    ServiceState *const state = (ServiceState *)memory;

    memset(state, 0, sizeof *state);
    SpinLockInit(&state->mutex);
}

ServiceState *pgkm_service_state(void)
{
    static ServiceState *state = NULL;
    static bool tried = false;

    if (tried || !IsUnderPostmaster)
        return state;
    tried = true;
    /* Without room for it the extension works without a service. */
    state = (ServiceState *)shared_struct(STATE_NAME, sizeof(ServiceState), init_state);
    return state;
}

uint32 pgkm_service_plugin_hash(const char *path)
{
    return hash_bytes((const unsigned char *)path, (int)strlen(path));
}

void pgkm_service_request_memory(void)
{
    shared_struct_request(sizeof(ServiceState));
}
