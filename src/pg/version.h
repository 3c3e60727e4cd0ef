/*
 * version.h - the version of the extension's library.
 */
#ifndef PGKM_PG_VERSION_H
#define PGKM_PG_VERSION_H

#define PGKM_VERSION "1.0.0"

#endif
