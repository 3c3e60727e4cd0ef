/*
 * seal.cpp - HMAC-SHA256 under a random key in shared memory.
 */
#include "pg/shared/seal.h"

#include "pg/shared/structs.h"

extern "C" {
#include "common/cryptohash.h"
#include "common/hmac.h"
#include "miscadmin.h"
}

/* Another layout gets another name: a library of another version may be loaded beside this one. */
#define KEY_NAME "pg_kmeans seal 1"

#define KEY_BYTES 32

struct Key {
    bool usable;
    uint8 bytes[KEY_BYTES];
};

static void init_key(void *memory)
{
    Key *const key = (Key *)memory;

    key->usable = pg_strong_random(key->bytes, KEY_BYTES);
}

/* NULL when there is none. */
static const Key *find_key(void)
{
    static const Key *key = NULL;

    /* Asked again after a failure: a worker, which is a new process, may have made the key meanwhile. */
    if (key == NULL && IsUnderPostmaster)
        key = (const Key *)shared_struct(KEY_NAME, sizeof(Key), init_key);
    return key != NULL && key->usable ? key : NULL;
}

bool pgkm_can_seal(void)
{
    return find_key() != NULL;
}

void pgkm_seal(const void *bytes, Size size, char *seal)
{
    pg_hmac_ctx *const context = pg_hmac_create(PG_SHA256);

    if (context == NULL || pg_hmac_init(context, find_key()->bytes, KEY_BYTES) < 0 ||
        pg_hmac_update(context, (const uint8 *)bytes, size) < 0 ||
        pg_hmac_final(context, (uint8 *)seal, PGKM_SEAL_BYTES) < 0)
        elog(ERROR, "could not seal a state: %s", pg_hmac_error(context));
    pg_hmac_free(context);
}

bool pgkm_seal_holds(const void *bytes, Size size, const char *seal)
{
    char right[PGKM_SEAL_BYTES];
    int different = 0;

    if (!pgkm_can_seal())
        return false;
    pgkm_seal(bytes, size, right);
    /* All of them, so that the time does not tell how many are right. */
    for (int i = 0; i < PGKM_SEAL_BYTES; ++i)
        different |= right[i] ^ seal[i];
    return different == 0;
}

void pgkm_seal_install(void)
{
    if (process_shared_preload_libraries_in_progress)
        shared_struct_request(sizeof(Key));
}
