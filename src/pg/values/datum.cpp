/*
 * datum.cpp - reading SQL arrays and numbers into rows.
 */
#include "pg/values/datum.h"

#include <cmath>

#include "pg/compat.h"

extern "C" {
#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
}

/* The fields of ArrayType behind its varlena header, as they lie in a packed array. */
struct ArrayHead {
    int32 ndim;
    int32 dataoffset;
    Oid elemtype;
    int32 length; /* of the first dimension */
};

static bool fail(PgkmRowFault *fault, PgkmRowFaultKind kind, int32 position)
{
    fault->kind = kind;
    fault->position = position;
    return false;
}

bool pgkm_is_feature_type(Oid element_type)
{
    switch (element_type) {
    case FLOAT4OID:
    case FLOAT8OID:
    case INT2OID:
    case INT4OID:
    case INT8OID:
    case NUMERICOID:
        return true;
    default:
        return false;
    }
}

/* The position of the first NULL, or 0: an array may have a bitmap and no NULL. */
static int32 first_null(const char *bitmap, int32 length)
{
    for (int32 i = 0; i < length; ++i)
        if ((bitmap[i / 8] & (1 << (i % 8))) == 0)
            return i + 1;
    return 0;
}

/* What makes an array with NULLs no vector: as the columns of a row, all of them NULL are a NULL row. */
static bool fail_for_nulls(PgkmRowFault *fault, const char *bitmap, int32 length)
{
    const int32 first = first_null(bitmap, length);
    bool all = first == 1;

    for (int32 i = 1; i < length && all; ++i)
        all = (bitmap[i / 8] & (1 << (i % 8))) == 0;
    return fail(fault, all ? PGKM_ROW_NULL : PGKM_ROW_NULL_ELEMENT, first);
}

/* A datum whose bytes can be read here: plain or with a one-byte header. Numerics need their
 * alignment, which a one-byte header shifts. */
static struct varlena *readable(Datum array)
{
    struct varlena *value = (struct varlena *)DatumGetPointer(array);

    if (likely(VARATT_IS_1B(value) && !VARATT_IS_1B_E(value)) || VARATT_IS_4B_U(value))
        return value;
    return pg_detoast_datum_packed(value);
}

bool pgkm_open_vector(Datum array, PgkmVector *vector, PgkmRowFault *fault)
{
    struct varlena *value = readable(array);
    /* Where the array would start if it had a four-byte header; nothing in there is aligned
     * when it has a one-byte header. */
    const char *base = VARDATA_ANY(value) - VARHDRSZ;
    ArrayHead head;

    /* The length stands behind the head that every array has: an empty one ends before it. */
    memcpy(&head, base + offsetof(ArrayType, ndim), offsetof(ArrayHead, length));
    if (head.ndim != 1)
        return fail(fault, head.ndim == 0 ? PGKM_ROW_EMPTY : PGKM_ROW_MULTIDIMENSIONAL, 0);
    memcpy(&head.length, base + sizeof(ArrayType), sizeof head.length);
    if (head.length < 1)
        return fail(fault, PGKM_ROW_EMPTY, 0);
    if (!pgkm_is_feature_type(head.elemtype))
        return fail(fault, PGKM_ROW_TYPE, 0);
    vector->element_type = head.elemtype;
    if (head.elemtype == NUMERICOID && VARATT_IS_SHORT(value))
        base = (const char *)pg_detoast_datum(value);
    if (head.dataoffset != 0) {
        const char *const bitmap = base + sizeof(ArrayType) + 2 * sizeof(int32);

        if (first_null(bitmap, head.length) != 0)
            return fail_for_nulls(fault, bitmap, head.length);
    }
    vector->length = head.length;
    vector->data = base + (head.dataoffset != 0 ? head.dataoffset : (int32)ARR_OVERHEAD_NONULLS(1));
    return true;
}

/* The field of VarBit behind its varlena header. */
bool pgkm_open_bits(Datum value, PgkmVector *vector, PgkmRowFault *fault)
{
    const struct varlena *const bits = readable(value);

    vector->element_type = BITOID;
    memcpy(&vector->length, VARDATA_ANY(bits), sizeof vector->length);
    vector->data = VARDATA_ANY(bits) + sizeof vector->length;
    return vector->length > 0 || fail(fault, PGKM_ROW_EMPTY, 0);
}

/* What is behind the last bit is 0 in a value. */
static bool copy_bits(const char *data, int32 length, char *out)
{
    const Size bytes = ((Size)length + 7) / 8;

    memcpy(out, data, bytes);
    memset(out + bytes, 0, pgkm_row_bytes(PGKM_BIT, length) - bytes);
    return true;
}

/* Tells what is wrong with a value that is not usable. */
static bool explain(double value, int32 position, PgkmRowFault *fault)
{
    if (std::isnan(value))
        return fail(fault, PGKM_ROW_NAN, position);
    return fail(fault, std::isinf(value) ? PGKM_ROW_INFINITE : PGKM_ROW_TOO_LARGE, position);
}

/* The comparison is false for NaN too. */
static inline bool usable(double value)
{
    return std::fabs(value) <= PGKM_MAX_MAGNITUDE;
}

/*
 * Copies floats from unaligned memory; false when one is not finite. Its exponent is all ones, and only then does
 * adding one to that reach the sign's bit. Four at a time, which become vector instructions.
 */
static bool copy_floats(const char *data, int32 count, char *out)
{
    const uint32 exponent = 0x7f800000;
    const uint32 one = 0x00800000;
    uint32 reached[4] = {0, 0, 0, 0};
    int32 i = 0;

    for (; i + 4 <= count; i += 4) {
        uint32 bits[4];

        memcpy(bits, data + i * sizeof(float), sizeof bits);
        memcpy(out + i * sizeof(float), bits, sizeof bits);
        for (int j = 0; j < 4; ++j)
            reached[j] |= (bits[j] & exponent) + one;
    }
    for (; i < count; ++i) {
        uint32 bits;

        memcpy(&bits, data + i * sizeof(float), sizeof bits);
        memcpy(out + i * sizeof(float), &bits, sizeof bits);
        reached[0] |= (bits & exponent) + one;
    }
    return ((reached[0] | reached[1] | reached[2] | reached[3]) & 0x80000000) == 0;
}

bool pgkm_copy_plain(Datum array, int32 d, float *out)
{
    const struct varlena *const value = (const struct varlena *)DatumGetPointer(array);
    const char *const base = VARDATA_ANY(value) - VARHDRSZ;
    ArrayHead head;

    if (!(VARATT_IS_1B(value) && !VARATT_IS_1B_E(value)) && !VARATT_IS_4B_U(value))
        return false;
    memcpy(&head, base + offsetof(ArrayType, ndim), sizeof head);
    return head.ndim == 1 && head.dataoffset == 0 && head.elemtype == FLOAT4OID && head.length == d &&
           copy_floats(base + ARR_OVERHEAD_NONULLS(1), d, (char *)out);
}

static bool copy_float4(const char *data, int32 length, float *out, PgkmRowFault *fault)
{
    if (likely(copy_floats(data, length, (char *)out)))
        return true;
    for (int32 i = 0;; ++i)
        if (!std::isfinite(out[i]))
            return explain(out[i], i + 1, fault);
}

/* Values of any fixed-length type as float64. */
template <typename Source>
static bool copy_as_float8(const char *data, int32 length, double *out, PgkmRowFault *fault)
{
    bool all = true;

    for (int32 i = 0; i < length; ++i) {
        Source value;

        memcpy(&value, data + i * sizeof(Source), sizeof(Source));
        out[i] = (double)value;
        all &= usable(out[i]);
    }
    if (likely(all))
        return true;
    for (int32 i = 0;; ++i)
        if (!usable(out[i]))
            return explain(out[i], i + 1, fault);
}

static bool read_numeric(Datum value, int32 position, double *out, PgkmRowFault *fault)
{
    *out = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value));
    if (likely(usable(*out)))
        return true;
    /* Infinite may be the value, or only its nearest float64. */
    if (std::isinf(*out) && !numeric_is_inf(DatumGetNumeric(value)))
        return fail(fault, PGKM_ROW_TOO_LARGE, position);
    return explain(*out, position, fault);
}

static bool copy_numeric(const char *data, int32 length, double *out, PgkmRowFault *fault)
{
    const char *next = data;

    for (int32 i = 0; i < length; ++i) {
        if (!read_numeric(PointerGetDatum(next), i + 1, &out[i], fault))
            return false;
        next = att_addlength_pointer(next, -1, next);
        next = (const char *)att_align_nominal(next, TYPALIGN_INT);
    }
    return true;
}

static bool copy_float8(const PgkmVector *vector, double *out, PgkmRowFault *fault)
{
    switch (vector->element_type) {
    case FLOAT4OID:
        return copy_as_float8<float>(vector->data, vector->length, out, fault);
    case FLOAT8OID:
        return copy_as_float8<double>(vector->data, vector->length, out, fault);
    case INT2OID:
        return copy_as_float8<int16>(vector->data, vector->length, out, fault);
    case INT4OID:
        return copy_as_float8<int32>(vector->data, vector->length, out, fault);
    case INT8OID:
        return copy_as_float8<int64>(vector->data, vector->length, out, fault);
    case BITOID:
        for (int32 i = 0; i < vector->length; ++i)
            out[i] = pgkm_bit_is_set(vector->data, i) ? 1 : 0;
        return true;
    case BOOLOID: /* columns that lie side by side: there are no arrays */
        return copy_as_float8<bool>(vector->data, vector->length, out, fault);
    default:
        return copy_numeric(vector->data, vector->length, out, fault);
    }
}

bool pgkm_copy_row(const PgkmVector *vector, PgkmElement element, int32 d, void *out, PgkmRowFault *fault)
{
    if (unlikely(vector->length != d)) {
        fault->expected = d;
        fault->found = vector->length;
        return fail(fault, PGKM_ROW_LENGTH, 0);
    }
    if (element == PGKM_FLOAT64)
        return copy_float8(vector, (double *)out, fault);
    /* Only real[] has float32 arithmetic, and only bits are bits. */
    if (pgkm_element_of(vector->element_type) != element)
        return fail(fault, PGKM_ROW_TYPE, 0);
    if (element == PGKM_BIT)
        return copy_bits(vector->data, vector->length, (char *)out);
    return copy_float4(vector->data, vector->length, (float *)out, fault);
}

bool pgkm_read_number(Datum value, Oid type, int32 position, double *out, PgkmRowFault *fault)
{
    if (type == NUMERICOID)
        return read_numeric(value, position, out, fault);
    if (type == MONEYOID)
        return read_numeric(DirectFunctionCall1(cash_numeric, value), position, out, fault);
    if (!pgkm_plain_number(value, type, out))
        return fail(fault, PGKM_ROW_TYPE, position);
    return likely(usable(*out)) || explain(*out, position, fault);
}
