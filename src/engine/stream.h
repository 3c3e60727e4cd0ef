/*
 * stream.h - rows that come to a job chunk by chunk, pass after pass, because memory does not hold them all.
 *
 * One thread gives, the job takes. A part of api.h.
 */
#ifndef PGKM_ENGINE_STREAM_H
#define PGKM_ENGINE_STREAM_H

#include "backend/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PgkmStream PgkmStream;

/* For n rows in all, of which a chunk has `most` at most. NULL when there is no memory; free allows NULL. Freed after
 * the jobs. */
PgkmStream *pgkm_stream_create(int64_t n, int64_t most);
void pgkm_stream_free(PgkmStream *stream);

/* Waits up to `milliseconds` until the job wants the next chunk; 1 when it does. It has done with all chunks then but
 * the last that it was given. */
int pgkm_stream_wait(PgkmStream *stream, int milliseconds);

/* Gives it one, which stays the caller's; a chunk without rows ends the pass. Only when it is wanted. */
void pgkm_stream_give(PgkmStream *stream, const PgkmPoints *chunk);

#ifdef __cplusplus
}
#endif
#endif
