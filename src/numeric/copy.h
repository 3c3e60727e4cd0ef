/*
 * copy.h - large copies, in plain C.
 */
#ifndef PGKM_NUMERIC_COPY_H
#define PGKM_NUMERIC_COPY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* memcpy of so many bytes, by several threads where that pays (from some MB on): memory that is touched
 * for the first time takes longer than its contents. */
void pgkm_copy(void *to, const void *from, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
