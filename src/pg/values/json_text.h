/*
 * json_text.h - numbers as text of JSON: the shortest that read back as themselves.
 */
#ifndef PGKM_PG_JSON_TEXT_H
#define PGKM_PG_JSON_TEXT_H

#include "pg/compat.h"

extern "C" {
#include "lib/stringinfo.h"
}

void pgkm_append_double(StringInfo out, double value);
void pgkm_append_list(StringInfo out, const double *values, int64 count);

#endif
