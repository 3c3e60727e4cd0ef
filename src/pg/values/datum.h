/*
 * datum.h - reading SQL arrays and numbers into rows.
 *
 * What is wrong with a value is reported as a PgkmRowFault, plain data, so that the hot
 * path stays small and the caller can say where the row came from before raising it.
 */
#ifndef PGKM_PG_DATUM_H
#define PGKM_PG_DATUM_H

extern "C" {
#include "postgres.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
}

#include <initializer_list>

#include "engine/api.h"

/* Larger magnitudes are refused: squared distances could overflow. */
#define PGKM_MAX_MAGNITUDE 0x1p500

enum PgkmRowFaultKind {
    PGKM_ROW_NULL,             /* no fault but a row to skip: NULL, or an array of nothing but NULLs */
    PGKM_ROW_NULL_ELEMENT,     /* 22004 */
    PGKM_ROW_NAN,              /* 22023 */
    PGKM_ROW_INFINITE,         /* 22023 */
    PGKM_ROW_TOO_LARGE,        /* 22003 */
    PGKM_ROW_EMPTY,            /* 2202E */
    PGKM_ROW_MULTIDIMENSIONAL, /* 2202E */
    PGKM_ROW_LENGTH,           /* 2202E */
    PGKM_ROW_TYPE              /* 42804 */
};

struct PgkmRowFault {
    PgkmRowFaultKind kind;
    int32 position; /* of the element, from 1 */
    int32 expected; /* PGKM_ROW_LENGTH: elements */
    int32 found;
};

/* A one-dimensional array without NULLs, or the bits of a bit string (BITOID), read in place. */
struct PgkmVector {
    Oid element_type;
    int32 length;     /* >= 1 */
    const char *data; /* unaligned, except for numeric */
};

/* True for the types whose arrays are feature vectors: real, double precision, smallint,
 * integer, bigint, numeric. */
bool pgkm_is_feature_type(Oid element_type);

/* The arithmetic of a feature type: float32 for real, bits for bit, float64 for all others. */
static inline PgkmElement pgkm_element_of(Oid element_type)
{
    if (element_type == BITOID)
        return PGKM_BIT;
    return element_type == FLOAT4OID ? PGKM_FLOAT32 : PGKM_FLOAT64;
}

/*
 * Opens an array datum of any feature type. A plain or packed array is read where it lies;
 * one that is compressed, out of line or expanded is detoasted into CurrentMemoryContext.
 * Returns false, with *fault filled, for an array that is no feature vector; for one with NULLs the element type is
 * set.
 */
bool pgkm_open_vector(Datum array, PgkmVector *vector, PgkmRowFault *fault);

/* Opens a bit or bit varying in the same way. */
bool pgkm_open_bits(Datum value, PgkmVector *vector, PgkmRowFault *fault);

/* Bit i, from 0, of a bit string, or of a row of bits (backend.h). */
static inline bool pgkm_bit_is_set(const char *bits, int32 i)
{
    return (bits[i / 8] >> (7 - i % 8) & 1) != 0;
}

/* Most arrays, at once: the elements of a real[] that lies here as it is, without NULLs, all of them finite and d in
 * number. False for any other, with whatever in `out`. */
bool pgkm_copy_plain(Datum array, int32 d, float *out);

/* Writes the values of a vector that must have d elements as `element` to `out`; false and *fault
 * when it has not, or a value is not finite or too large. */
bool pgkm_copy_row(const PgkmVector *vector, PgkmElement element, int32 d, void *out, PgkmRowFault *fault);

/* A date, timestamp, time or interval as days, those of a point in time since 1970; infinite where it is that. False
 * for another type. */
bool pgkm_plain_days(Datum value, Oid type, double *out);

/* Such days back as ISO text, to the day or the second; NULL where they lie beyond the range of timestamps. Of a point
 * in time with a time zone it is UTC. */
const char *pgkm_date_text(double days, bool has_time, bool has_zone);
const char *pgkm_interval_text(double days);

/* A number of any feature type but numeric, a boolean (1 for true) or days, as float64, whatever it is; false for
 * another type. */
static inline bool pgkm_plain_number(Datum value, Oid type, double *out)
{
    switch (type) {
    case FLOAT4OID:
        *out = DatumGetFloat4(value);
        return true;
    case FLOAT8OID:
        *out = DatumGetFloat8(value);
        return true;
    case INT2OID:
        *out = DatumGetInt16(value);
        return true;
    case INT4OID:
        *out = DatumGetInt32(value);
        return true;
    case INT8OID:
        *out = (double)DatumGetInt64(value);
        return true;
    case BOOLOID:
        *out = DatumGetBool(value) ? 1.0 : 0.0;
        return true;
    default:
        return pgkm_plain_days(value, type, out);
    }
}

/* One number of those types, of numeric or of money, the `position`th of its row (from 1), as float64. */
bool pgkm_read_number(Datum value, Oid type, int32 position, double *out, PgkmRowFault *fault);

/* The value of an argument that must not be NULL: 22004. */
Datum pgkm_required(const NullableDatum *argument, const char *name);

/* "1 row", "3 rows"; palloc'd. */
const char *pgkm_counted(int64 count, const char *noun);

/* For ereport: DETAIL about the row that an error is about, where its place is known. */
int pgkm_detail_of_row(const char *ctid);

/* Raises the fault, which is not PGKM_ROW_NULL. `ctid` is the row's place as text, like "(0,1)", or NULL;
 * `noun` says what the elements are. */
[[noreturn]] void pgkm_raise_row_fault(const PgkmRowFault *fault, const char *ctid, const char *noun = "feature");

/* Raises the fault of a row that has `found` features unless they are as many as expected. */
void pgkm_check_length(int32 expected, int32 found);

/* The same of one value, for which `what` stands: its text begins with it. */
[[noreturn]] void pgkm_raise_value_fault(PgkmRowFaultKind kind, const char *what, const char *ctid);

/* For a context callback: the position of the error, if it has one, lies in this text, not in the query. */
void pgkm_error_lies_in(const char *text);

/* What a function with a vector as argument keeps in fn_extra, which begins so: the cast that makes an array of it. */
struct PgkmCallCache {
    struct PgkmCast *cast; /* NULL: none yet */
};

/* fn_extra as such a struct of `size` bytes, zero at first. */
PgkmCallCache *pgkm_call_cache(FmgrInfo *flinfo, Size size = sizeof(PgkmCallCache));

/*
 * A value of argument `number`, which SQL declares as "any" or text, as an array of a feature type. Text is read as
 * double precision[], bits as values of 0 and 1. Another type needs an implicit or assignment cast to real[] or double
 * precision[], as vector and halfvec of pgvector have. 42804 for one without. The function's fn_extra is a
 * PgkmCallCache.
 */
NullableDatum pgkm_vector_value(FmgrInfo *flinfo, int number, const NullableDatum *value);

/* Whether that argument is a bit string. */
bool pgkm_argument_is_bits(FmgrInfo *flinfo, int number);

/* Whether that argument is a row of some columns, no vector of any kind. */
bool pgkm_argument_is_row(FmgrInfo *flinfo, int number);

/* The cast of values of a type, in `context`, and a value as an array. */
struct PgkmCast *pgkm_cast_make(MemoryContext context, Oid type);
NullableDatum pgkm_cast_value(PgkmCast *cast, NullableDatum value);

/* Functions below raise the faults of a row, and return false or NULL for a row to skip. */

/* Opens a row's features, a value of argument `number`. */
bool pgkm_open_row(FmgrInfo *flinfo, int number, NullableDatum features, PgkmVector *vector);

/* The features in argument `number` as d float64 values, palloc'd; *element becomes the arithmetic of their type.
 * `fills` are d values for elements that are NULL, or NULL: then such an element is a fault. */
double *pgkm_read_row(FunctionCallInfo fcinfo, int number, int32 d, const char *noun = "feature",
                      PgkmElement *element = NULL, const double *fills = NULL);

/* The same of an array of a feature type. */
double *pgkm_read_array(NullableDatum array, int32 d, const char *noun, PgkmElement *element, const double *fills);

/* The elements of an array of this type with their NULLs, palloc'd; returns how many. */
int32 pgkm_array_elements(Datum array, Oid element_type, Datum **values, bool **nulls);

/* Reads an array some of whose elements are NULL as d float64 values; false, and *fault, when it has not d, or one
 * cannot be used. The NULLs become their `fills`, or NaN where there are none. */
bool pgkm_read_incomplete(Datum array, Oid element_type, int32 d, const double *fills, double *row,
                          PgkmRowFault *fault);

/* Opens the features in argument `features` of a transition function, and reads the weight in argument
 * `weight_number`: 1 where the call has no such argument. A row of weight NULL or 0 is skipped before its features are
 * looked at. 22023 for a weight that is negative or not finite, 22003 for one that is too large. */
bool pgkm_row_arguments(FunctionCallInfo fcinfo, int features, int weight_number, PgkmVector *vector, double *weight);

/* The extents of an array of one to three dimensions. */
struct PgkmShape {
    int dimensions = 0;
    int32 extents[3];

    PgkmShape(std::initializer_list<int32> list)
    {
        for (const int32 extent : list)
            extents[dimensions++] = extent;
    }
};

/* Values of an array of that shape. */
static inline Size pgkm_shape_count(const PgkmShape &shape)
{
    Size count = 1;

    for (int i = 0; i < shape.dimensions; ++i)
        count *= shape.extents[i];
    return count;
}

/* The values of an array in place, which are of 8 bytes; NULL unless it has this shape and no NULLs. */
const void *pgkm_array_values(Datum array, const PgkmShape &shape);

bool pgkm_all_finite(const double *values, Size count);

/* A double precision[] or bigint[] in CurrentMemoryContext, of zeros for NULL; 54000 when it exceeds the maximum size
 * of a value. */
Datum pgkm_array(const double *values, const PgkmShape &shape);
Datum pgkm_array(const int64 *values, const PgkmShape &shape);

/* A one-dimensional double precision[] of so many values, or an empty one where there are none (NULL). */
Datum pgkm_array_or_empty(const double *values, int32 length);

#endif
