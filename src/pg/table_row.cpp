/*
 * table_row.cpp - from the columns of one row to the row buffer.
 */
#include "pg/table_row.h"

#include <cmath>

#include "pg/datum.h"

extern "C" {
#include "utils/builtins.h"
}

/* "(0,1)", or what stands for it where the row has no ctid that the caller may see. */
static const char *place_of(const TableRowShape *shape, const TableOrigin *origin, const TableRows *rows)
{
    if (shape->ctid < 0)
        return psprintf("number %lld", (long long) rows->n + 1);
    return psprintf("(%u,%u)", ItemPointerGetBlockNumberNoCheck(&origin->ctid),
                    ItemPointerGetOffsetNumberNoCheck(&origin->ctid));
}

static void pg_attribute_noreturn() raise_column(const char *column, const PgkmRowFault *fault, const char *place)
{
    int         code = ERRCODE_INVALID_PARAMETER_VALUE;
    const char *what = "not a finite number";

    if (fault->kind == PGKM_ROW_NULL_ELEMENT) {
        code = ERRCODE_NULL_VALUE_NOT_ALLOWED;
        what = "NULL";
    } else if (fault->kind == PGKM_ROW_NAN) {
        what = "NaN";
    } else if (fault->kind == PGKM_ROW_INFINITE) {
        what = "infinite";
    } else if (fault->kind == PGKM_ROW_TOO_LARGE) {
        code = ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE;
        what = "too large";
    }
    ereport(ERROR, (errcode(code), errmsg("column \"%s\" is %s in row %s", column, what, place)));
    pg_unreachable();
}

void table_row_origin(const TableRowShape *shape, const Datum *values, const bool *nulls, TableOrigin *origin)
{
    memset(origin, 0, sizeof *origin);
    if (shape->ctid >= 0)
        origin->ctid = *(ItemPointer) DatumGetPointer(values[shape->ctid]);
    if (shape->table >= 0)
        origin->table = DatumGetObjectId(values[shape->table]);
    if (shape->label >= 0) {
        const int64 label = nulls[shape->label] ? TABLE_LABEL_NULL : DatumGetInt64(values[shape->label]);

        origin->label = nulls[shape->label]                  ? TABLE_LABEL_NULL
                        : label < 0 || label > PG_INT32_MAX ? TABLE_LABEL_OTHER
                                                             : (int32) label;
    }
}

/* The weight; 0 for a row to skip. */
static double read_weight(const TableRowShape *shape, const Datum *values, const bool *nulls,
                          const TableOrigin *origin, const TableRows *rows)
{
    const TableColumn *const column = shape->query->weight;
    double                   weight;
    PgkmRowFault             fault;

    if (column == NULL)
        return 1.0;
    if (nulls[shape->weight])
        return 0.0;
    if (!pgkm_read_number(values[shape->weight], column->type, 1, &weight, &fault))
        raise_column(column->name, &fault, place_of(shape, origin, rows));
    if (weight < 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("weight \"%s\" is negative in row %s", column->name, place_of(shape, origin, rows))));
    return weight;
}

static bool all_features_null(const TableRowShape *shape, const bool *nulls)
{
    for (int i = 0; i < shape->query->n_features; ++i)
        if (!nulls[i])
            return false;
    return true;
}

/* An array, whose first row decides d for all. */
static void append_array(const TableRowShape *shape, Datum value, const TableOrigin *origin, TableRows *rows)
{
    const TableColumn *const column = &shape->query->features[0];
    PgkmVector               vector;
    PgkmRowFault             fault;

    if (!pgkm_open_vector(value, &vector, &fault))
        pgkm_raise_row_fault(&fault, place_of(shape, origin, rows));
    if (rows->used == NULL)
        rows->used = pgkm_rows_create(rows->context, pgkm_element_of(column->type), vector.length,
                                      shape->query->weight != NULL);
    if (vector.length != rows->used->d) {
        fault.kind = PGKM_ROW_LENGTH;
        fault.position = 0;
        fault.expected = rows->used->d;
        fault.found = vector.length;
        pgkm_raise_row_fault(&fault, place_of(shape, origin, rows));
    }
    if (!pgkm_copy_vector(&vector, rows->used->element, pgkm_rows_next(rows->used), &fault))
        pgkm_raise_row_fault(&fault, place_of(shape, origin, rows));
}

/* float32 arithmetic only where every value is a real. */
static PgkmElement common_element(const TableColumn *columns, int count)
{
    for (int i = 0; i < count; ++i)
        if (pgkm_element_of(columns[i].type) != PGKM_FLOAT32)
            return PGKM_FLOAT64;
    return PGKM_FLOAT32;
}

static void append_numbers(const TableRowShape *shape, const Datum *values, const bool *nulls,
                           const TableOrigin *origin, TableRows *rows)
{
    const TableColumn *const columns = shape->query->features;
    const int                count = shape->query->n_features;

    if (rows->used == NULL)
        rows->used = pgkm_rows_create(rows->context, common_element(columns, count), count,
                                      shape->query->weight != NULL);

    void *const       row = pgkm_rows_next(rows->used);
    const PgkmElement element = rows->used->element;

    for (int i = 0; i < count; ++i) {
        double       value = 0;
        PgkmRowFault fault;
        bool         good = !nulls[i];

        fault.kind = PGKM_ROW_NULL_ELEMENT;
        if (good)
            good = pgkm_read_number(values[i], columns[i].type, i + 1, &value, &fault);
        if (!good)
            raise_column(columns[i].name, &fault, place_of(shape, origin, rows));
        if (element == PGKM_FLOAT32)
            ((float *) row)[i] = (float) value;
        else
            ((double *) row)[i] = value;
    }
}

bool table_row_append(const TableRowShape *shape, const Datum *values, const bool *nulls, const TableOrigin *origin,
                      TableRows *rows)
{
    if (all_features_null(shape, nulls))
        return false;

    const double weight = read_weight(shape, values, nulls, origin, rows);

    if (weight == 0.0)
        return false;
    if (shape->query->features[0].kind == COLUMN_NUMBER)
        append_numbers(shape, values, nulls, origin, rows);
    else
        append_array(shape, values[0], origin, rows);
    if (rows->used->weighted)
        rows->used->weights[rows->used->n] = weight;
    ++rows->used->n;
    return true;
}
