/*
 * days.cpp - points and lengths of time as numbers: extract(epoch) / 86400, rounded as SQL rounds both.
 */
#include "pg/values/datum.h"

extern "C" {
#include "datatype/timestamp.h"
#include "utils/date.h"
#include "utils/float.h"
#include "utils/timestamp.h"
}

#define EPOCH_DAYS (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE)

/* Of microseconds: seconds are rounded once, then days. A quotient of so many bits is never near the middle between two
 * values of float64. */
static double days_of(__int128 microseconds)
{
    const bool is_exact = microseconds >= -(INT64CONST(1) << 53) && microseconds <= (INT64CONST(1) << 53);
    const double seconds =
        is_exact ? (double)microseconds / USECS_PER_SEC : (double)((__float128)microseconds / USECS_PER_SEC);

    return seconds / SECS_PER_DAY;
}

/* A year has 365.25 days and a month 30, as for extract(epoch). */
static double days_of_interval(const Interval *interval)
{
    const __int128 quarters = (__int128)(4 * 365 + 1) * (interval->month / MONTHS_PER_YEAR) +
                              (__int128)(4 * DAYS_PER_MONTH) * (interval->month % MONTHS_PER_YEAR) +
                              (__int128)4 * interval->day;

    return days_of(quarters * (USECS_PER_DAY / 4) + interval->time);
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

        *out = TIMESTAMP_NOT_FINITE(time) ? infinite(TIMESTAMP_IS_NOBEGIN(time))
                                          : days_of(time + (__int128)EPOCH_DAYS * USECS_PER_DAY);
        return true;
    }
    case TIMEOID:
        *out = days_of(DatumGetTimeADT(value));
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
