/*
 * decoder.cpp - reads the columns of one row into the buffer of rows.
 */
#include "pg/query/decoder.h"

#include <cmath>

#include "pg/columns/vector.h"

extern "C" {
#include "access/htup_details.h"
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

/* A row as it is decoded, and the array or vector of it that was opened last. */
struct Row : TableSlotRow {
    const TableQuery *query;
    const TableOrigin *origin;
    int column; /* whose array that is; -1: none */
    bool opened;
    PgkmVector vector;  /* if it is open */
    PgkmRowFault fault; /* if not */
};

/* NULL where there is no ctid that the caller may see. */
static const char *place_of(const Row *row)
{
    return row->decoder->with_ctid ? table_origin_name(row->origin, row->decoder->with_table) : NULL;
}

[[noreturn]] static void raise_null(const Row *row, const char *what)
{
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s must not be null", what),
                    pgkm_detail_of_row(place_of(row)),
                    errhint("With nulls => 'skip' such rows take no part, with nulls => 'mean' they get the column's "
                            "mean.")));
    pg_unreachable();
}

[[noreturn]] static void raise_column(const Row *row, const TableColumn *column, PgkmRowFaultKind kind)
{
    const char *const what = psprintf(column->expression == NULL ? "column \"%s\"" : "\"%s\"", column->name);

    if (kind == PGKM_ROW_NULL_ELEMENT && row->query->takes_nulls)
        raise_null(row, what);
    pgkm_raise_value_fault(kind, what, place_of(row));
}

[[noreturn]] static void raise_array(const Row *row, const PgkmRowFault *fault)
{
    if (fault->kind == PGKM_ROW_NULL_ELEMENT && row->query->takes_nulls)
        raise_null(row, psprintf("feature %d", fault->position));
    pgkm_raise_row_fault(fault, place_of(row));
}

[[noreturn]] static void raise_bad(const Row *row, const char *message)
{
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s", message), pgkm_detail_of_row(place_of(row))));
    pg_unreachable();
}

/* --- expressions --- */

static void tell_place(void *of)
{
    const Row *const row = (const Row *)of;

    if (row->decoder->with_ctid)
        errcontext("the row at ctid %s", table_origin_name(row->origin, false));
}

/* Evaluates the expressions among the columns from `first` on for the row. */
static void compute(const Row *row, int first, int count)
{
    const AttrNumber *const inputs = row->decoder->places + table_query_columns(row->query);
    ErrorContextCallback callback = {error_context_stack, tell_place, (void *)row};

    error_context_stack = &callback;
    for (int column = first; column < first + count; ++column) {
        TableComputed *const computed = row->decoder->computed[column];

        if (computed != NULL)
            computed->result = expression_value(computed->state, row->slot->tts_values, row->slot->tts_isnull, inputs);
    }
    error_context_stack = callback.previous;
}

void table_compute_features(const TableDecoder *decoder, const TupleTableSlot *slot, const TableOrigin *origin)
{
    const Row row = {{decoder, slot}, decoder->query, origin, -1, false, {}, {}};

    compute(&row, 0, decoder->query->n_features);
}

/* --- which rows take part --- */

static inline bool passes_filter(const Row *row)
{
    const int filter = row->decoder->filter;

    if (filter >= 0 && row->is_computed(filter))
        compute(row, filter, 1);
    return filter < 0 || (!row->is_null(filter) && DatumGetBool(row->value(filter)));
}

/* The weight; 0 for a row to skip. */
static double read_weight(const Row *row)
{
    const TableColumn *const column = row->query->weight;
    double weight;
    PgkmRowFault fault;

    if (row->is_null(row->decoder->weight))
        return 0.0;
    if (!pgkm_read_number(row->value(row->decoder->weight), column->type, 1, &weight, &fault))
        raise_column(row, column, fault.kind);
    if (weight < 0)
        raise_bad(row, psprintf("weight column \"%s\" must not be negative", column->name));
    return weight;
}

/* Opens the array or vector of a column; row->fault tells why it cannot be. */
static bool open_column(Row *row, int i)
{
    const TableColumn *const column = &row->query->features[i];

    if (row->column == i)
        return row->opened;
    row->column = i;
    row->fault.kind = PGKM_ROW_NULL;
    if (row->is_null(i))
        return row->opened = false;
    if (column->kind == COLUMN_BITS)
        return row->opened = pgkm_open_bits(row->value(i), &row->vector, &row->fault);
    if (column->kind != COLUMN_VECTOR && column->kind != COLUMN_HALFVEC)
        return row->opened = pgkm_open_vector(row->value(i), &row->vector, &row->fault);
    table_vector_open(column, row->value(i), &row->vector);
    return row->opened = true;
}

static inline bool is_single(const Row *row, int i)
{
    return column_is_single(&row->query->features[i]);
}

/* Whether the row takes no part because all columns, the array or all its elements are NULL. */
static inline bool is_null_row(Row *row)
{
    for (int i = 0; i < row->query->n_features; ++i)
        if (!row->is_null(i) && (is_single(row, i) || open_column(row, i) || row->fault.kind != PGKM_ROW_NULL))
            return false;
    return true;
}

/* Whether an array has NULLs among its elements. */
static bool is_incomplete(Row *row, int i)
{
    return !open_column(row, i) && row->fault.kind == PGKM_ROW_NULL_ELEMENT;
}

/* Whether a row that is no NULL row lacks a value all the same. */
static bool lacks_value(Row *row)
{
    for (int i = 0; i < row->query->n_features; ++i)
        if (row->is_null(i) || (!is_single(row, i) && is_incomplete(row, i)))
            return true;
    return false;
}

/* --- features --- */

static inline char *write_value(PgkmElement element, double value, char *out)
{
    if (element == PGKM_FLOAT32)
        *(float *)out = (float)value;
    else
        *(double *)out = value;
    return out + pgkm_row_bytes(element, 1);
}

/* The number of a column, or the code of its level. */
static char *write_column(const Row *row, int i, PgkmElement element, char *out)
{
    const TableColumn *const column = &row->query->features[i];
    PgkmRowFault fault;
    double value;

    if (column->kind == COLUMN_CATEGORY)
        return write_value(element, levels_code(row->decoder->levels, i, {row->value(i), row->is_null(i)}), out);
    fault.kind = PGKM_ROW_NULL_ELEMENT;
    if (unlikely(row->is_null(i)) && table_keeps_nulls(row->query->nulls))
        return write_value(element, get_float8_nan(), out); /* until all rows are read */
    if (unlikely(row->is_null(i) || !pgkm_read_number(row->value(i), column->type, i + 1, &value, &fault)))
        raise_column(row, column, fault.kind);
    return write_value(element, value, out);
}

/* An array some of whose elements are NULL. */
static char *write_incomplete(const Row *row, int i, int32 width, PgkmElement element, char *out)
{
    double *const values = (double *)palloc(width * sizeof(double));
    PgkmRowFault fault;

    if (!pgkm_read_incomplete(row->value(i), row->query->features[i].type, width, NULL, values, &fault))
        raise_array(row, &fault);
    for (int j = 0; j < width; ++j)
        out = write_value(element, values[j], out);
    return out;
}

[[noreturn]] static void raise_unopened(const Row *row, int i)
{
    if (row->fault.kind == PGKM_ROW_NULL)
        raise_column(row, &row->query->features[i], PGKM_ROW_NULL_ELEMENT);
    raise_array(row, &row->fault);
}

/* The array or vector of a column. */
static inline char *write_array(Row *row, int i, int32 width, PgkmElement element, char *out)
{
    if (unlikely(!open_column(row, i))) {
        if (is_incomplete(row, i) && table_keeps_nulls(row->query->nulls))
            return write_incomplete(row, i, width, element, out);
        raise_unopened(row, i);
    }
    if (unlikely(!pgkm_copy_row(&row->vector, element, width, out, &row->fault)))
        raise_array(row, &row->fault);
    return out + pgkm_row_bytes(element, width);
}

/* How many values the column has in this row. */
static int32 width_of(Row *row, int i)
{
    Datum *values;
    bool *nulls;

    if (is_single(row, i))
        return 1;
    if (open_column(row, i))
        return row->vector.length;
    if (!is_incomplete(row, i) || !table_keeps_nulls(row->query->nulls))
        raise_unopened(row, i);
    return pgkm_array_elements(row->value(i), row->query->features[i].type, &values, &nulls);
}

/* The first row decides how long each array is, and d for all. */
static void set_widths(Row *row, TableRows *rows)
{
    const int count = row->query->n_features;
    int64 d = 0;

    rows->widths = (int32 *)MemoryContextAlloc(rows->context, count * sizeof(int32));
    for (int i = 0; i < count; ++i)
        d += rows->widths[i] = width_of(row, i);
    if (d > (int64)MaxArraySize)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("columns have %lld values in a row, of at most %d", (long long)d, (int)MaxArraySize)));
    rows->used = pgkm_rows_create(rows->context, row->decoder->element, (int32)d, row->query->weight != NULL);
}

static void write_features(Row *row, TableRows *rows)
{
    if (unlikely(rows->used == NULL))
        set_widths(row, rows);

    const PgkmElement element = rows->used->element;
    char *out = (char *)pgkm_rows_next(rows->used);

    for (int i = 0; i < row->query->n_features; ++i)
        out =
            is_single(row, i) ? write_column(row, i, element, out) : write_array(row, i, rows->widths[i], element, out);
}

/* Whether the row that comes next has zeros alone; the level of a category is a 1. */
static bool is_zero(const Row *row, const PgkmRows *used)
{
    const double *const codes = (const double *)(used->values + used->n * used->row_bytes);

    if (row->decoder->levels == NULL)
        return pgkm_rows_next_is_zero(used);
    for (int i = 0; i < row->query->n_features; ++i)
        if (row->query->features[i].kind == COLUMN_CATEGORY ? codes[i] >= 0 : codes[i] != 0)
            return false;
    return true;
}

/* `written`: its features are there already. False when the row takes no part in the fit. */
static bool append(Row *row, TableRows *rows, bool written)
{
    const TableQuery *const query = row->query;

    if (!passes_filter(row) || (query->labelled && row->is_null(row->decoder->label)))
        return false;
    /* Of a row without a weight nothing is computed, for it may be why it has none. */
    if (row->decoder->computed != NULL && !row->decoder->is_simple) {
        if (query->weight != NULL && read_weight(row) == 0.0)
            return false;
        compute(row, 0, query->n_features);
    }
    if (!written && (is_null_row(row) || (query->nulls == TABLE_NULLS_SKIP && lacks_value(row))))
        return false;

    const double weight = query->weight == NULL ? 1.0 : read_weight(row);

    if (weight == 0.0)
        return false;
    if (!written)
        write_features(row, rows);
    if (query->need_direction && is_zero(row, rows->used))
        raise_bad(row, "features are a zero vector, which has no direction for metric cosine");
    if (rows->used->weighted)
        rows->used->weights[rows->used->n] = weight;
    ++rows->used->n;
    return true;
}

/* --- origins --- */

static int64 read_label(const Row *row)
{
    const int column = row->decoder->label;

    if (row->is_null(column))
        return TABLE_LABEL_NULL;

    const Datum value = row->value(column);
    const Oid type = row->query->label->type;
    const int64 label = type == INT2OID   ? DatumGetInt16(value)
                        : type == INT4OID ? DatumGetInt32(value)
                                          : DatumGetInt64(value);

    /* The least label stands for a NULL, unless rows with a NULL take no part. */
    return row->query->labelled ? label : Max(label, TABLE_LABEL_NULL + 1);
}

static TablePlain plain_kind(const TableQuery *query, PgkmElement element)
{
    if (table_columns_are_single(query->features, query->n_features))
        return element == PGKM_FLOAT32 ? DECODE_REALS : DECODE_NUMBERS;
    return query->n_features == 1 && query->features[0].kind == COLUMN_ARRAY && element == PGKM_FLOAT32
               ? DECODE_REAL_ARRAY
               : DECODE_OTHERS;
}

void table_decoder_init(TableDecoder *decoder, const TableQuery *query)
{
    int next = query->n_features;

    memset(decoder, 0, sizeof *decoder);
    decoder->query = query;
    decoder->weight = query->weight == NULL ? -1 : next++;
    decoder->filter = query->filter == NULL ? -1 : next++;
    decoder->label = query->label == NULL ? -1 : next++;
    /* A caller who may read only some columns is not told where a bad row is. */
    decoder->with_ctid = query->need_ctid || table_may_read_ctid(query->relation);
    decoder->with_table = decoder->with_ctid && query->relation->has_rows_of_others;
    decoder->element = table_columns_element(query->features, query->n_features);
    decoder->plain = plain_kind(query, decoder->element);
    decoder->is_simple = next == query->n_features && !query->need_direction;
    decoder->ctid = decoder->table = -1;
}

static TableComputed *begin_computed(const TableQuery *query, int column)
{
    TableComputed *const computed = (TableComputed *)palloc(sizeof(TableComputed));

    *computed = {expression_begin(table_query_column(query, column)->expression, query->inputs), {0, true}};
    return computed;
}

void table_decoder_begin(TableDecoder *decoder, const char *given)
{
    const TableQuery *const query = decoder->query;
    const int count = table_query_columns(query);

    for (int i = 0; i < count; ++i)
        if (table_query_name(query, i) == NULL) {
            if (decoder->computed == NULL)
                decoder->computed = (TableComputed **)palloc0(count * sizeof(TableComputed *));
            decoder->computed[i] = begin_computed(query, i);
        }

    if (!table_columns_have_categories(query->features, query->n_features))
        return;
    decoder->levels = given != NULL ? levels_read(query->features, query->n_features, given)
                                    : levels_create(query->features, query->n_features, query->levels);
}

void table_decoder_end_levels(const TableDecoder *decoder, TableRows *rows)
{
    const TableQuery *const query = decoder->query;

    if (decoder->levels == NULL || rows->used == NULL)
        return;

    MemoryContext caller = MemoryContextSwitchTo(rows->context);
    const LevelsFound *const found = levels_join(query->features, &decoder->levels, 1);

    MemoryContextSwitchTo(caller);
    table_rows_expand(rows, found);
}

void table_decode_origin(const TableDecoder *decoder, TupleTableSlot *slot, TableOrigin *origin)
{
    slot_getsomeattrs(slot, decoder->last);
    origin->ctid = decoder->ctid < 0 ? slot->tts_tid : *(ItemPointer)DatumGetPointer(slot->tts_values[decoder->ctid]);
    origin->table = decoder->table >= 0             ? DatumGetObjectId(slot->tts_values[decoder->table])
                    : OidIsValid(decoder->relation) ? decoder->relation
                                                    : slot->tts_tableOid;
}

void table_decode_with_care(const TableDecoder *decoder, const TupleTableSlot *slot, TableOrigin *origin,
                            TableRows *rows, bool written)
{
    Row row;

    row.decoder = decoder;
    row.query = decoder->query;
    row.slot = slot;
    row.origin = origin;
    row.column = -1;
    origin->label = rows->wants.label ? read_label(&row) : 0;
    table_rows_add(rows, origin, append(&row, rows, written));
}
