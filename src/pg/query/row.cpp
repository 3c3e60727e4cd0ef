/*
 * row.cpp - reads the columns of one row into the buffer of rows.
 */
#include "pg/query/row.h"

extern "C" {
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

/* NULL where there is no ctid that the caller may see. */
static const char *place_of(const TableRowShape *shape, const TableOrigin *origin)
{
    return shape->ctid < 0 ? NULL : table_origin_name(origin, shape->table >= 0);
}

[[noreturn]] static void raise_null(const char *what, const char *place)
{
    ereport(ERROR,
            (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s must not be null", what), pgkm_detail_of_row(place),
             errhint("With nulls => 'skip' such rows take no part, with nulls => 'mean' they get the column's "
                     "mean.")));
    pg_unreachable();
}

[[noreturn]] static void raise_column(const TableRowShape *shape, const char *column, PgkmRowFaultKind kind,
                                      const char *place)
{
    const char *const what = psprintf("column \"%s\"", column);

    if (kind == PGKM_ROW_NULL_ELEMENT && shape->query->takes_nulls)
        raise_null(what, place);
    pgkm_raise_value_fault(kind, what, place);
}

[[noreturn]] static void raise_array(const TableRowShape *shape, const PgkmRowFault *fault, const char *place)
{
    if (fault->kind == PGKM_ROW_NULL_ELEMENT && shape->query->takes_nulls)
        raise_null(psprintf("feature %d", fault->position), place);
    pgkm_raise_row_fault(fault, place);
}

[[noreturn]] static void raise_negative_weight(const char *column, const char *place)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("weight column \"%s\" must not be negative", column), pgkm_detail_of_row(place)));
    pg_unreachable();
}

[[noreturn]] static void raise_no_direction(const char *place)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("features are a zero vector, which has no direction for metric cosine"),
                    pgkm_detail_of_row(place)));
    pg_unreachable();
}

void table_row_origin(const TableRowShape *shape, const Datum *values, const bool *nulls, TableOrigin *origin)
{
    memset(origin, 0, sizeof *origin);
    if (shape->ctid >= 0)
        origin->ctid = *(ItemPointer)DatumGetPointer(values[shape->ctid]);
    if (shape->table >= 0)
        origin->table = DatumGetObjectId(values[shape->table]);
    if (shape->label >= 0)
        origin->label = nulls[shape->label] ? TABLE_LABEL_NULL : table_row_label(DatumGetInt64(values[shape->label]));
}

static bool passes_filter(const TableRowShape *shape, const Datum *values, const bool *nulls)
{
    return shape->filter < 0 || (!nulls[shape->filter] && DatumGetBool(values[shape->filter]));
}

/* The weight; 0 for a row to skip. */
static double read_weight(const TableRowShape *shape, const Datum *values, const bool *nulls, const TableOrigin *origin)
{
    const TableColumn *const column = shape->query->weight;
    double weight;
    PgkmRowFault fault;

    if (column == NULL)
        return 1.0;
    if (nulls[shape->weight])
        return 0.0;
    if (!pgkm_read_number(values[shape->weight], column->type, 1, &weight, &fault))
        raise_column(shape, column->name, fault.kind, place_of(shape, origin));
    if (weight < 0)
        raise_negative_weight(column->name, place_of(shape, origin));
    return weight;
}

/* Whether the row takes no part because all columns, the array or all its elements are NULL. For an array, *opened
 * tells whether *vector is what it holds; if not, *fault is what is wrong with it. */
static bool is_null_row(const TableRowShape *shape, const Datum *values, const bool *nulls, bool *opened,
                        PgkmVector *vector, PgkmRowFault *fault)
{
    bool is_null = true;

    for (int i = 0; i < shape->query->n_features && is_null; ++i) {
        if (nulls[i])
            continue;
        if (shape->query->features[i].kind == COLUMN_NUMBER)
            return false;
        *opened = pgkm_open_vector(values[i], vector, fault);
        is_null = !*opened && fault->kind == PGKM_ROW_NULL;
    }
    return is_null;
}

/* Whether a row that is no NULL row lacks a value all the same. `fault` is that of its array, where that is not open.
 */
static bool lacks_value(const TableRowShape *shape, const bool *nulls, bool opened, const PgkmRowFault *fault)
{
    for (int i = 0; i < shape->query->n_features; ++i)
        if (nulls[i])
            return true;
    return shape->query->features[0].kind != COLUMN_NUMBER && !opened && fault->kind == PGKM_ROW_NULL_ELEMENT;
}

/* The first row decides d for all. */
static PgkmRows *used_rows(const TableRowShape *shape, TableRows *rows, int32 d)
{
    const TableQuery *const query = shape->query;

    if (rows->used == NULL)
        rows->used = pgkm_rows_create(rows->context, table_columns_element(query->features, query->n_features), d,
                                      query->weight != NULL);
    return rows->used;
}

static void write_missing(PgkmElement element, void *out)
{
    if (element == PGKM_FLOAT32)
        *(float *)out = get_float4_nan();
    else
        *(double *)out = get_float8_nan();
}

/* The number of a column; false and *fault for one that must not be. */
static bool read_value(const TableColumn *column, Datum value, bool isnull, int number, PgkmElement element, char *out,
                       PgkmRowFault *fault)
{
    double read = 0;

    fault->kind = PGKM_ROW_NULL_ELEMENT;
    if (isnull || !pgkm_read_number(value, column->type, number, &read, fault))
        return false;
    if (element == PGKM_FLOAT32)
        *(float *)out = (float)read;
    else
        *(double *)out = read;
    return true;
}

/* An array some of whose elements are NULL. */
static void append_incomplete_array(const TableRowShape *shape, Datum array, const TableOrigin *origin, TableRows *rows)
{
    const TableColumn *const column = &shape->query->features[0];
    Datum *values;
    bool *nulls;
    const int32 d = pgkm_array_elements(array, column->type, &values, &nulls);
    PgkmRowFault fault = {PGKM_ROW_LENGTH, 0, 0, 0};
    PgkmRows *const used = used_rows(shape, rows, d);

    fault.expected = used->d;
    fault.found = d;
    if (d != used->d)
        raise_array(shape, &fault, place_of(shape, origin));

    char *out = (char *)pgkm_rows_next(used);

    for (int i = 0; i < d; ++i, out += pgkm_element_size(used->element))
        if (nulls[i])
            write_missing(used->element, out);
        else if (!read_value(column, values[i], false, i + 1, used->element, out, &fault))
            raise_array(shape, &fault, place_of(shape, origin));
}

static void append_array(const TableRowShape *shape, const PgkmVector *vector, const TableOrigin *origin,
                         TableRows *rows)
{
    PgkmRows *const used = used_rows(shape, rows, vector->length);
    PgkmRowFault fault;

    if (!pgkm_copy_row(vector, used->element, used->d, pgkm_rows_next(used), &fault))
        raise_array(shape, &fault, place_of(shape, origin));
}

/* Opens the array of a column in a row that takes part. */
static void open_array(const TableRowShape *shape, int column, const Datum *values, const bool *nulls,
                       const TableOrigin *origin, PgkmVector *vector)
{
    PgkmRowFault fault;

    fault.kind = PGKM_ROW_NULL;
    if (!nulls[column] && pgkm_open_vector(values[column], vector, &fault))
        return;
    if (fault.kind == PGKM_ROW_NULL)
        raise_column(shape, shape->query->features[column].name, PGKM_ROW_NULL_ELEMENT, place_of(shape, origin));
    raise_array(shape, &fault, place_of(shape, origin));
}

/* Arrays beside other columns. The first row decides how long each is. */
static void append_mixed(const TableRowShape *shape, const Datum *values, const bool *nulls, const TableOrigin *origin,
                         TableRows *rows)
{
    const TableColumn *const columns = shape->query->features;
    const int count = shape->query->n_features;
    PgkmVector vector;

    if (rows->used == NULL) {
        int64 d = 0;

        rows->widths = (int32 *)MemoryContextAlloc(rows->context, count * sizeof(int32));
        for (int i = 0; i < count; ++i) {
            vector.length = 1;
            if (columns[i].kind != COLUMN_NUMBER)
                open_array(shape, i, values, nulls, origin, &vector);
            d += rows->widths[i] = vector.length;
        }
        if (d > (int64)MaxArraySize)
            ereport(ERROR,
                    (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                     errmsg("columns have %lld values in a row, of at most %d", (long long)d, (int)MaxArraySize)));
        used_rows(shape, rows, (int32)d);
    }

    const PgkmElement element = rows->used->element;
    char *out = (char *)pgkm_rows_next(rows->used);
    PgkmRowFault fault;

    for (int i = 0; i < count; out += rows->widths[i++] * pgkm_element_size(element)) {
        if (columns[i].kind == COLUMN_NUMBER) {
            if (!read_value(&columns[i], values[i], nulls[i], i + 1, element, out, &fault))
                raise_column(shape, columns[i].name, fault.kind, place_of(shape, origin));
            continue;
        }
        open_array(shape, i, values, nulls, origin, &vector);
        if (!pgkm_copy_row(&vector, element, rows->widths[i], out, &fault))
            raise_array(shape, &fault, place_of(shape, origin));
    }
}

static void append_numbers(const TableRowShape *shape, const Datum *values, const bool *nulls,
                           const TableOrigin *origin, TableRows *rows)
{
    const TableColumn *const columns = shape->query->features;
    const int count = shape->query->n_features;

    PgkmRows *const used = used_rows(shape, rows, count);
    void *const row = pgkm_rows_next(used);
    const PgkmElement element = used->element;
    PgkmRowFault fault;

    for (int i = 0; i < count; ++i) {
        char *const out = (char *)row + i * pgkm_element_size(element);

        if (nulls[i] && shape->query->nulls == TABLE_NULLS_MEAN)
            write_missing(element, out);
        else if (!read_value(&columns[i], values[i], nulls[i], i + 1, element, out, &fault))
            raise_column(shape, columns[i].name, fault.kind, place_of(shape, origin));
    }
}

bool table_row_append(const TableRowShape *shape, const Datum *values, const bool *nulls, const TableOrigin *origin,
                      TableRows *rows)
{
    PgkmVector vector;
    PgkmRowFault fault;
    bool opened = false;

    if (!passes_filter(shape, values, nulls) || is_null_row(shape, values, nulls, &opened, &vector, &fault))
        return false;
    if (shape->query->nulls == TABLE_NULLS_SKIP && lacks_value(shape, nulls, opened, &fault))
        return false;

    const double weight = read_weight(shape, values, nulls, origin);

    if (weight == 0.0)
        return false;
    if (table_columns_are_mixed(shape->query->features, shape->query->n_features))
        append_mixed(shape, values, nulls, origin, rows);
    else if (shape->query->features[0].kind == COLUMN_NUMBER)
        append_numbers(shape, values, nulls, origin, rows);
    else if (opened)
        append_array(shape, &vector, origin, rows);
    else if (shape->query->nulls == TABLE_NULLS_MEAN && fault.kind == PGKM_ROW_NULL_ELEMENT)
        append_incomplete_array(shape, values[0], origin, rows);
    else
        raise_array(shape, &fault, place_of(shape, origin));
    if (shape->query->need_direction && pgkm_rows_next_is_zero(rows->used))
        raise_no_direction(place_of(shape, origin));
    if (rows->used->weighted)
        rows->used->weights[rows->used->n] = weight;
    ++rows->used->n;
    return true;
}
