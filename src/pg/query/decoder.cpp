/*
 * decoder.cpp - reads the columns of one row into the buffer of rows.
 */
#include "pg/query/decoder.h"

#include <cmath>

#include "pg/query/vector.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

const char *table_origin_name(const TableOrigin *origin, bool with_table)
{
    const char *ctid = psprintf("(%u,%u)", ItemPointerGetBlockNumberNoCheck(&origin->ctid),
                                ItemPointerGetOffsetNumberNoCheck(&origin->ctid));

    return with_table ? psprintf("%s of %s", ctid, get_rel_name(origin->table)) : ctid;
}

/* A row as it is decoded. */
struct Row {
    const TableDecoder *decoder;
    const TableQuery *query;
    TupleTableSlot *slot;
    const TableOrigin *origin;
};

static inline bool is_null(const Row *row, int column)
{
    return row->slot->tts_isnull[row->decoder->places[column]];
}

static inline Datum value_of(const Row *row, int column)
{
    return row->slot->tts_values[row->decoder->places[column]];
}

/* NULL where there is no ctid that the caller may see. */
static const char *place_of(const Row *row)
{
    return row->decoder->with_ctid ? table_origin_name(row->origin, row->decoder->with_table) : NULL;
}

[[noreturn]] static void raise_null(const char *what, const char *place)
{
    ereport(ERROR,
            (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s must not be null", what), pgkm_detail_of_row(place),
             errhint("With nulls => 'skip' such rows take no part, with nulls => 'mean' they get the column's "
                     "mean.")));
    pg_unreachable();
}

[[noreturn]] static void raise_column(const Row *row, const char *column, PgkmRowFaultKind kind)
{
    const char *const what = psprintf("column \"%s\"", column);

    if (kind == PGKM_ROW_NULL_ELEMENT && row->query->takes_nulls)
        raise_null(what, place_of(row));
    pgkm_raise_value_fault(kind, what, place_of(row));
}

[[noreturn]] static void raise_array(const Row *row, const PgkmRowFault *fault)
{
    if (fault->kind == PGKM_ROW_NULL_ELEMENT && row->query->takes_nulls)
        raise_null(psprintf("feature %d", fault->position), place_of(row));
    pgkm_raise_row_fault(fault, place_of(row));
}

[[noreturn]] static void raise_bad(const Row *row, const char *message)
{
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s", message), pgkm_detail_of_row(place_of(row))));
    pg_unreachable();
}

/* --- which rows take part --- */

static bool passes_filter(const Row *row)
{
    const int filter = row->decoder->filter;

    return filter < 0 || (!is_null(row, filter) && DatumGetBool(value_of(row, filter)));
}

/* The weight; 0 for a row to skip. */
static double read_weight(const Row *row)
{
    const TableColumn *const column = row->query->weight;
    double weight;
    PgkmRowFault fault;

    if (column == NULL)
        return 1.0;
    if (is_null(row, row->decoder->weight))
        return 0.0;
    if (!pgkm_read_number(value_of(row, row->decoder->weight), column->type, 1, &weight, &fault))
        raise_column(row, column->name, fault.kind);
    if (weight < 0)
        raise_bad(row, psprintf("weight column \"%s\" must not be negative", column->name));
    return weight;
}

/* Opens the array or vector of a column. */
static bool open_column(const Row *row, int i, PgkmVector *vector, PgkmRowFault *fault)
{
    const TableColumn *const column = &row->query->features[i];

    fault->kind = PGKM_ROW_NULL;
    if (is_null(row, i))
        return false;
    if (column->kind == COLUMN_VECTOR || column->kind == COLUMN_HALFVEC) {
        table_vector_open(column, value_of(row, i), vector);
        return true;
    }
    return pgkm_open_vector(value_of(row, i), vector, fault);
}

/* Whether the row takes no part because all columns, the array or all its elements are NULL. For an array, *opened
 * tells whether *vector is what it holds; if not, *fault is what is wrong with it. */
static bool is_null_row(const Row *row, bool *opened, PgkmVector *vector, PgkmRowFault *fault)
{
    for (int i = 0; i < row->query->n_features; ++i) {
        if (is_null(row, i))
            continue;
        if (row->query->features[i].kind == COLUMN_NUMBER)
            return false;
        *opened = open_column(row, i, vector, fault);
        if (*opened || fault->kind != PGKM_ROW_NULL)
            return false;
    }
    return true;
}

/* Whether a row that is no NULL row lacks a value all the same. `fault` is that of its array, where that is not open.
 */
static bool lacks_value(const Row *row, bool opened, const PgkmRowFault *fault)
{
    for (int i = 0; i < row->query->n_features; ++i)
        if (is_null(row, i))
            return true;
    return row->query->features[0].kind != COLUMN_NUMBER && !opened && fault->kind == PGKM_ROW_NULL_ELEMENT;
}

/* --- features --- */

/* The first row decides d for all. */
static PgkmRows *used_rows(const Row *row, TableRows *rows, int32 d)
{
    if (rows->used == NULL)
        rows->used = pgkm_rows_create(rows->context, row->decoder->element, d, row->query->weight != NULL);
    return rows->used;
}

static void write_missing(PgkmElement element, char *out)
{
    if (element == PGKM_FLOAT32)
        *(float *)out = get_float4_nan();
    else
        *(double *)out = get_float8_nan();
}

/* A number; false and *fault for one that must not be. */
static inline bool write_number(Datum value, Oid type, int number, PgkmElement element, char *out, PgkmRowFault *fault)
{
    double read;

    if (!pgkm_read_number(value, type, number, &read, fault))
        return false;
    if (element == PGKM_FLOAT32)
        *(float *)out = (float)read;
    else
        *(double *)out = read;
    return true;
}

/* The number of a column. */
static inline void write_column(const Row *row, int i, PgkmElement element, char *out)
{
    const TableColumn *const column = &row->query->features[i];
    PgkmRowFault fault;

    fault.kind = PGKM_ROW_NULL_ELEMENT;
    if (unlikely(is_null(row, i) || !write_number(value_of(row, i), column->type, i + 1, element, out, &fault)))
        raise_column(row, column->name, fault.kind);
}

/* Most rows: reals none of which is NULL, infinite or NaN. What has been written of others does not count. */
static inline bool write_reals(const Row *row, float *out)
{
    const int count = row->query->n_features;
    bool bad = false;

    for (int i = 0; i < count; ++i) {
        out[i] = DatumGetFloat4(value_of(row, i));
        bad |= is_null(row, i) | !std::isfinite(out[i]);
    }
    return !bad;
}

static void append_numbers(const Row *row, TableRows *rows)
{
    const int count = row->query->n_features;
    PgkmRows *const used = used_rows(row, rows, count);
    char *out = (char *)pgkm_rows_next(used);

    if (used->element == PGKM_FLOAT32 && likely(write_reals(row, (float *)out)))
        return;
    for (int i = 0; i < count; ++i, out += pgkm_element_size(used->element))
        if (unlikely(is_null(row, i)) && row->query->nulls == TABLE_NULLS_MEAN)
            write_missing(used->element, out);
        else
            write_column(row, i, used->element, out);
}

static void append_array(const Row *row, const PgkmVector *vector, TableRows *rows)
{
    PgkmRows *const used = used_rows(row, rows, vector->length);
    PgkmRowFault fault;

    if (!pgkm_copy_row(vector, used->element, used->d, pgkm_rows_next(used), &fault))
        raise_array(row, &fault);
}

/* An array some of whose elements are NULL. */
static void append_incomplete_array(const Row *row, TableRows *rows)
{
    const Oid type = row->query->features[0].type;
    Datum *values;
    bool *nulls;
    const int32 d = pgkm_array_elements(value_of(row, 0), type, &values, &nulls);
    PgkmRows *const used = used_rows(row, rows, d);
    PgkmRowFault fault = {PGKM_ROW_LENGTH, 0, used->d, d};

    if (d != used->d)
        raise_array(row, &fault);

    char *out = (char *)pgkm_rows_next(used);

    for (int i = 0; i < d; ++i, out += pgkm_element_size(used->element))
        if (nulls[i])
            write_missing(used->element, out);
        else if (!write_number(values[i], type, i + 1, used->element, out, &fault))
            raise_array(row, &fault);
}

/* Opens the array of a column in a row that takes part. */
static void open_array(const Row *row, int i, PgkmVector *vector)
{
    PgkmRowFault fault;

    if (open_column(row, i, vector, &fault))
        return;
    if (fault.kind == PGKM_ROW_NULL)
        raise_column(row, row->query->features[i].name, PGKM_ROW_NULL_ELEMENT);
    raise_array(row, &fault);
}

/* The first row decides how long each array is. */
static void set_widths(const Row *row, TableRows *rows)
{
    const int count = row->query->n_features;
    int64 d = 0;

    rows->widths = (int32 *)MemoryContextAlloc(rows->context, count * sizeof(int32));
    for (int i = 0; i < count; ++i) {
        PgkmVector vector;

        vector.length = 1;
        if (row->query->features[i].kind != COLUMN_NUMBER)
            open_array(row, i, &vector);
        d += rows->widths[i] = vector.length;
    }
    if (d > (int64)MaxArraySize)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("columns have %lld values in a row, of at most %d", (long long)d, (int)MaxArraySize)));
    used_rows(row, rows, (int32)d);
}

/* Arrays beside other columns. */
static void append_mixed(const Row *row, TableRows *rows)
{
    if (rows->used == NULL)
        set_widths(row, rows);

    const PgkmElement element = rows->used->element;
    char *out = (char *)pgkm_rows_next(rows->used);

    for (int i = 0; i < row->query->n_features; out += rows->widths[i++] * pgkm_element_size(element)) {
        PgkmVector vector;
        PgkmRowFault fault;

        if (row->query->features[i].kind == COLUMN_NUMBER) {
            write_column(row, i, element, out);
            continue;
        }
        open_array(row, i, &vector);
        if (!pgkm_copy_row(&vector, element, rows->widths[i], out, &fault))
            raise_array(row, &fault);
    }
}

/* False when the row takes no part in the fit. */
static bool append(const Row *row, TableRows *rows)
{
    const TableQuery *const query = row->query;
    PgkmVector vector;
    PgkmRowFault fault;
    bool opened = false;

    if (!passes_filter(row) || is_null_row(row, &opened, &vector, &fault))
        return false;
    if (query->nulls == TABLE_NULLS_SKIP && lacks_value(row, opened, &fault))
        return false;

    const double weight = read_weight(row);

    if (weight == 0.0)
        return false;
    if (row->decoder->mixed)
        append_mixed(row, rows);
    else if (query->features[0].kind == COLUMN_NUMBER)
        append_numbers(row, rows);
    else if (opened)
        append_array(row, &vector, rows);
    else if (query->nulls == TABLE_NULLS_MEAN && fault.kind == PGKM_ROW_NULL_ELEMENT)
        append_incomplete_array(row, rows);
    else
        raise_array(row, &fault);
    if (query->need_direction && pgkm_rows_next_is_zero(rows->used))
        raise_bad(row, "features are a zero vector, which has no direction for metric cosine");
    if (rows->used->weighted)
        rows->used->weights[rows->used->n] = weight;
    ++rows->used->n;
    return true;
}

/* --- origins --- */

static int32 read_label(const Row *row)
{
    const int column = row->decoder->label;

    if (is_null(row, column))
        return TABLE_LABEL_NULL;

    const Datum value = value_of(row, column);
    const Oid type = row->decoder->label_type;
    const int64 label = type == INT2OID   ? DatumGetInt16(value)
                        : type == INT4OID ? DatumGetInt32(value)
                                          : DatumGetInt64(value);

    return label < 0 || label > PG_INT32_MAX ? TABLE_LABEL_OTHER : (int32)label;
}

void table_decoder_init(TableDecoder *decoder, const TableQuery *query)
{
    int next = query->n_features;

    memset(decoder, 0, sizeof *decoder);
    decoder->query = query;
    decoder->weight = query->weight == NULL ? -1 : next++;
    decoder->filter = query->filter == NULL ? -1 : next++;
    decoder->label = query->label == NULL ? -1 : next++;
    decoder->label_type = query->label == NULL ? InvalidOid : table_column_type(query->relation, query->label);
    /* A caller who may read only some columns is not told where a bad row is. */
    decoder->with_ctid = query->need_ctid || table_may_read_ctid(query->relation);
    decoder->with_table = decoder->with_ctid && query->relation->has_rows_of_others;
    decoder->mixed = table_columns_are_mixed(query->features, query->n_features);
    decoder->element = table_columns_element(query->features, query->n_features);
    decoder->ctid = decoder->table = -1;
}

void table_decode(const TableDecoder *decoder, TupleTableSlot *slot, TableRows *rows, TableOrigin *origin)
{
    const Row row = {decoder, decoder->query, slot, origin};

    slot_getsomeattrs(slot, decoder->last);
    origin->ctid = decoder->ctid < 0 ? slot->tts_tid : *(ItemPointer)DatumGetPointer(slot->tts_values[decoder->ctid]);
    origin->table = decoder->table < 0 ? slot->tts_tableOid : DatumGetObjectId(slot->tts_values[decoder->table]);
    origin->label = decoder->label < 0 ? 0 : read_label(&row);
    table_rows_add(rows, origin, append(&row, rows));
}
