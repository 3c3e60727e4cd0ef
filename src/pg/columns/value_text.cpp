/*
 * value_text.cpp - means of features as people read them, in the terms of their columns.
 */
#include "pg/columns/source.h"

#include <cmath>

/* A number without zeros at its end, and no 0 below 0. */
static const char *rounded(double value, int decimals)
{
    char *const text = psprintf("%.*f", decimals, value);
    char *end = text + strlen(text);

    if (decimals > 0) {
        while (end[-1] == '0')
            --end;
        *(end[-1] == '.' ? end - 1 : end) = '\0';
    }
    return strcmp(text, "-0") == 0 ? "0" : text;
}

static const char *share_text(double share)
{
    const double percent = 100 * share;

    return psprintf("%s %%", rounded(percent, fabs(percent) < 9.95 ? 1 : 0));
}

/* So many digits of what values differ by; one more of a value that stands alone. */
static const char *number_text(double value, double spread, int digits)
{
    const double size = spread > 0 ? spread : fabs(value);

    if (!(size > 0))
        return "0";

    const int decimals = Max((spread > 0 ? digits - 1 : digits) - (int)floor(log10(size)), 0);

    if (decimals > 12 || fabs(value) >= 1e15)
        return psprintf("%.4g", value);
    return rounded(value, decimals);
}

const char *source_value_text(const Source *source, double value, double spread, int digits)
{
    const char *text = NULL;

    if (source == NULL || source->type == NULL)
        return number_text(value, spread, digits);
    switch (source->encoding) {
    case ENCODING_CATEGORY:
        return share_text(value);
    case ENCODING_DATE:
        text = pgkm_date_text(value, strcmp(source->type, "date") != 0, strstr(source->type, "with time zone") != NULL);
        break;
    case ENCODING_INTERVAL:
        text = pgkm_interval_text(value);
        break;
    case ENCODING_NUMBER:
        if (strcmp(source->type, "boolean") == 0)
            return share_text(value);
        break;
    case ENCODING_VECTOR:
        break;
    }
    return text == NULL ? number_text(value, spread, digits) : text;
}
