/*
 * state.cpp - finds or makes the service's struct in shared memory, with and without preloading.
 */
#include "pg/service/state.h"

#include "pg/shared/named.h"

extern "C" {
#include "common/hashfn.h"
}

static void init_state(void *memory)
{
    ServiceState *const state = (ServiceState *)memory;

    memset(state, 0, sizeof *state);
    SpinLockInit(&state->mutex);
}

ServiceState *pgkm_service_state(void)
{
    static NamedStruct state = {"pg_kmeans service 1", init_state, NULL, false};

    return (ServiceState *)pgkm_named_struct(&state, sizeof(ServiceState));
}

uint32 pgkm_service_plugin_hash(const char *path)
{
    return hash_bytes((const unsigned char *)path, (int)strlen(path));
}
