/*
 * json_text.cpp - numbers as text.
 */
#include "pg/values/json_text.h"

extern "C" {
#include "common/shortest_dec.h"
}

void pgkm_append_double(StringInfo out, double value)
{
    char buffer[DOUBLE_SHORTEST_DECIMAL_LEN];

    double_to_shortest_decimal_buf(value, buffer);
    appendStringInfoString(out, buffer);
}

void pgkm_append_list(StringInfo out, const double *values, int64 count)
{
    appendStringInfoChar(out, '[');
    for (int64 i = 0; i < count; ++i) {
        if (i > 0)
            appendStringInfoChar(out, ',');
        pgkm_append_double(out, values[i]);
    }
    appendStringInfoChar(out, ']');
}
