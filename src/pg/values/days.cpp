/*
 * days.cpp - points and lengths of time as numbers: extract(epoch) / 86400, rounded as SQL rounds both; and back as
 * text.
 */
#include "pg/values/datum.h"

#include <cmath>

extern "C" {
#include "miscadmin.h"
#include "datatype/timestamp.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
}

#define EPOCH_DAYS (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE)

/* Seconds are rounded once, by the server's arithmetic where they are too many for float64, then days. */
static double days_of(int64 seconds, int64 microseconds)
{
    const int64 most = (INT64CONST(1) << 53) / USECS_PER_SEC - 1;

    if (seconds >= -most && seconds <= most)
        return (double)(seconds * USECS_PER_SEC + microseconds) / USECS_PER_SEC / SECS_PER_DAY;

    const Datum whole = NumericGetDatum(int64_to_numeric(seconds));
    const Datum part = NumericGetDatum(int64_div_fast_to_numeric(microseconds, 6));

    return DatumGetFloat8(DirectFunctionCall1(numeric_float8, DirectFunctionCall2(numeric_add, whole, part))) /
           SECS_PER_DAY;
}

/* A year has 365.25 days and a month 30, as for extract(epoch). */
static double days_of_interval(const Interval *interval)
{
    const int64 quarters = (int64)(4 * 365 + 1) * (interval->month / MONTHS_PER_YEAR) +
                           (int64)(4 * DAYS_PER_MONTH) * (interval->month % MONTHS_PER_YEAR) + (int64)4 * interval->day;

    return days_of(quarters * (SECS_PER_DAY / 4) + interval->time / USECS_PER_SEC, interval->time % USECS_PER_SEC);
}

static double infinite(bool negative)
{
    return negative ? -get_float8_infinity() : get_float8_infinity();
}

bool pgkm_plain_days(Datum value, Oid type, double *out)
{
    switch (type) {
    case DATEOID: {
        const DateADT date = DatumGetDateADT(value);

        *out = DATE_NOT_FINITE(date) ? infinite(DATE_IS_NOBEGIN(date)) : (double)date + EPOCH_DAYS;
        return true;
    }
    case TIMESTAMPOID:
    case TIMESTAMPTZOID: {
        const Timestamp time = DatumGetTimestamp(value);

        *out = TIMESTAMP_NOT_FINITE(time)
                   ? infinite(TIMESTAMP_IS_NOBEGIN(time))
                   : days_of(time / USECS_PER_SEC + (int64)EPOCH_DAYS * SECS_PER_DAY, time % USECS_PER_SEC);
        return true;
    }
    case TIMEOID:
        *out = days_of(0, DatumGetTimeADT(value));
        return true;
    case INTERVALOID: {
        const Interval *const interval = DatumGetIntervalP(value);

#ifdef INTERVAL_NOT_FINITE
        if (INTERVAL_NOT_FINITE(interval)) {
            *out = infinite(INTERVAL_IS_NOBEGIN(interval));
            return true;
        }
#endif
        *out = days_of_interval(interval);
        return true;
    }
    default:
        return false;
    }
}

const char *pgkm_date_text(double days, bool has_time, bool has_zone)
{
    const double seconds =
        rint(has_time ? days * SECS_PER_DAY : rint(days) * SECS_PER_DAY) - (double)EPOCH_DAYS * SECS_PER_DAY;
    char *const text = (char *)palloc(MAXDATELEN + 1);
    struct pg_tm tm;
    fsec_t fraction;

    if (!(fabs(seconds) < (double)PG_INT64_MAX / 2 / USECS_PER_SEC))
        return NULL;

    const Timestamp time = (Timestamp)seconds * USECS_PER_SEC;

    if (!IS_VALID_TIMESTAMP(time) || timestamp2tm(time, NULL, &tm, &fraction, NULL, NULL) != 0)
        return NULL;
    tm.tm_isdst = 0;
    if (has_time)
        EncodeDateTime(&tm, 0, has_zone, 0, NULL, USE_ISO_DATES, text);
    else
        EncodeDateOnly(&tm, USE_ISO_DATES, text);
    return text;
}

const char *pgkm_interval_text(double days)
{
    const double seconds = rint(fabs(days) * SECS_PER_DAY);

    if (!(seconds < 1e15))
        return NULL;

    const int64 whole = (int64)seconds / SECS_PER_DAY;
    const int rest = (int)((int64)seconds % SECS_PER_DAY);
    const char *const sign = days < 0 && seconds > 0 ? "-" : "";
    const char *const time =
        psprintf("%02d:%02d:%02d", rest / SECS_PER_HOUR, rest / SECS_PER_MINUTE % 60, rest % SECS_PER_MINUTE);

    if (whole == 0)
        return psprintf("%s%s", sign, time);
    return psprintf("%s%lld day%s%s", sign, (long long)whole, whole == 1 ? "" : "s",
                    rest == 0 ? "" : psprintf(" %s%s", sign, time));
}
