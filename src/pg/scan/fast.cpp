/*
 * fast.cpp - reads features where they lie in the tuple, with a weight and a label beside them.
 *
 * A tuple with anything unusual in it, such as a NULL or a value that is not finite, is left to slow.cpp,
 * which can read it or says what is wrong.
 */
#include "pg/scan/access.h"

#include "pg/compat.h"
#include "pg/values/datum.h"
#include "pg/values/toast.h"

extern "C" {
#include "access/tupmacs.h"
#include "catalog/pg_type.h"
}

/* The bits of attributes 1 to last are all set. */
static bool none_null(HeapTupleHeader tuple, AttrNumber last)
{
    const uint8 *bits = tuple->t_bits;

    for (int i = 0; i < last / 8; ++i)
        if (bits[i] != 0xff)
            return false;

    const uint8 rest = (uint8)((1 << (last % 8)) - 1);

    return rest == 0 || (bits[last / 8] & rest) == rest;
}

/* A tuple with fewer attributes than its table lacks columns that were added later. In one with NULLs before or
 * among the features they lie elsewhere. */
static inline bool none_absent(const ScanAccess *access, HeapTupleHeader tuple)
{
    return likely(HeapTupleHeaderGetNatts(tuple) >= access->last_feature) &&
           ((tuple->t_infomask & HEAP_HASNULL) == 0 || none_null(tuple, access->last_feature));
}

static inline bool copy_values(const PgkmVector *vector, PgkmElement element, char *out)
{
    PgkmRowFault fault;

    if (vector->element_type == FLOAT4OID && element == PGKM_FLOAT32)
        return pgkm_copy_floats(vector->data, vector->length, out);
    return pgkm_copy_vector(vector, element, out, &fault);
}

static inline bool read_runs(const ScanAccess *access, HeapTupleHeader tuple, PgkmRows *used)
{
    const char *const data = (const char *)tuple + tuple->t_hoff;
    char *const row = (char *)pgkm_rows_next(used);
    const Size element_size = pgkm_element_size(used->element);

    if (!none_absent(access, tuple))
        return false;
    for (int i = 0; i < access->n_runs; ++i) {
        const ScanRun *const run = &access->runs[i];
        PgkmVector vector;

        vector.element_type = run->type;
        vector.length = run->count;
        vector.data = data + run->offset;
        if (!copy_values(&vector, used->element, row + run->first * element_size))
            return false;
    }
    return true;
}

/* pgvector's types hold no NaN and nothing infinite, but we do not rely on it. */
static bool read_pgvector(ScanLayout layout, struct varlena *value, PgkmRows *used)
{
    const char *const data = VARDATA_ANY(value) + sizeof(ScanVectorHead);
    float *const row = (float *)pgkm_rows_next(used);
    ScanVectorHead head;

    if (!scan_vector_fits(layout, VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value), &head) || head.count != used->d)
        return false;
    if (layout == SCAN_HALFVEC)
        return scan_halves_to_floats(data, used->d, row);
    return pgkm_copy_floats(data, used->d, (char *)row);
}

/* One column of the tuple. */
static inline Datum column_value(const ScanAccess *access, HeapTupleHeader tuple, int column, bool *absent)
{
    HeapTupleData whole;

    whole.t_data = tuple;
    return heap_getattr(&whole, access->numbers[column], access->desc, absent);
}

/* The array or vector where it lies; NULL when it is absent. */
static inline struct varlena *find_varlena(const ScanAccess *access, HeapTupleHeader tuple)
{
    if (access->varlena_fixed && none_absent(access, tuple)) {
        char *const data = (char *)tuple + tuple->t_hoff;
        char *const at = data + access->varlena_offset;

        return (struct varlena *)(data + att_align_pointer(access->varlena_offset, access->varlena_align, -1, at));
    }

    bool absent;
    const Datum value = column_value(access, tuple, 0, &absent);

    return absent ? NULL : (struct varlena *)DatumGetPointer(value);
}

static inline bool read_varlena(const ScanAccess *access, HeapTupleHeader tuple, PgkmRows *used)
{
    struct varlena *value = find_varlena(access, tuple);
    const ScanLayout layout = scan_plan_columns(access->plan)[0].layout;
    PgkmVector vector;
    PgkmRowFault fault;

    if (value == NULL)
        return false;
    if (VARATT_IS_1B_E(value) || VARATT_IS_4B_C(value))
        value = pgkm_toast_read(access->toast, value);
    if (layout != SCAN_ARRAY)
        return read_pgvector(layout, value, used);
    return pgkm_open_vector(PointerGetDatum(value), &vector, &fault) && vector.length == used->d &&
           copy_values(&vector, used->element, (char *)pgkm_rows_next(used));
}

/* Where the row takes part by its weight. */
static inline bool read_weight(const ScanAccess *access, HeapTupleHeader tuple, double *weight)
{
    const int column = access->shape.weight;
    PgkmRowFault fault;
    bool absent;
    const Datum value = column_value(access, tuple, column, &absent);

    return !absent && pgkm_read_number(value, scan_plan_columns(access->plan)[column].column.type, 1, weight, &fault) &&
           *weight > 0;
}

/* A row that does not is skipped the slow way. */
static inline bool passes_filter(const ScanAccess *access, HeapTupleHeader tuple)
{
    bool absent;
    const Datum value = column_value(access, tuple, access->shape.filter, &absent);

    return !absent && DatumGetBool(value);
}

static inline int32 read_label(const ScanAccess *access, HeapTupleHeader tuple)
{
    const int column = access->shape.label;
    bool absent;
    const Datum value = column_value(access, tuple, column, &absent);

    return absent ? TABLE_LABEL_NULL
                  : table_row_label(scan_int8(value, scan_plan_columns(access->plan)[column].column.type));
}

bool scan_read_fast(const ScanAccess *access, HeapTupleHeader tuple, PgkmRows *used, TableOrigin *origin)
{
    if (access->shape.filter >= 0 && !passes_filter(access, tuple))
        return false;
    if (!(access->fast == SCAN_RUNS ? read_runs(access, tuple, used) : read_varlena(access, tuple, used)))
        return false;
    if (access->shape.weight >= 0 && !read_weight(access, tuple, &used->weights[used->n]))
        return false;
    if (access->query.need_direction && pgkm_rows_next_is_zero(used))
        return false;
    if (access->shape.label >= 0)
        origin->label = read_label(access, tuple);
    ++used->n;
    return true;
}
