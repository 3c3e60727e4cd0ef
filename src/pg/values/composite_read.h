/*
 * composite_read.h - the fields of a model, checked and copied, and models kept from row to row.
 * Models can be made by hand, so everything about them is checked.
 */
#ifndef PGKM_PG_COMPOSITE_READ_H
#define PGKM_PG_COMPOSITE_READ_H

#include "pg/values/datum.h"
#include "pg/values/options.h"

/* A model taken apart. What detoasting takes stays in CurrentMemoryContext. */
struct PgkmModelFields {
    const PgkmCompositeType *type;
    MemoryContext context; /* arrays are copied there; NULL: they stay in the composite */
    bool changed;
    NullableDatum values[PGKM_MOST_FIELDS];
};

/* 42804 when the type has been altered. */
void pgkm_model_open(Datum composite, const PgkmCompositeType *type, MemoryContext context, PgkmModelFields *fields);

/* Whether all fields are null, so that the model is null to SQL. */
bool pgkm_model_is_null(const PgkmModelFields *fields);

/* A field of the type by its name. */
const NullableDatum *pgkm_model_field(const PgkmModelFields *fields, const char *name);

/* Gives a field another value, or its array lower bounds of 1. Then the composite of the fields, of the row type of the
 * one that was taken apart: that one itself where nothing has changed, as large ones take long to copy. */
void pgkm_model_set(PgkmModelFields *fields, const char *name, Datum value);
void pgkm_model_add_rows(PgkmModelFields *fields, int64 rows); /* to n; 22003 beyond bigint */
void pgkm_model_from_one(PgkmModelFields *fields, std::initializer_list<const char *> names);
Datum pgkm_model_form(const PgkmModelFields *fields, Datum composite);

/* Functions below raise 22023, invalid value of the type, with a detail: what the field must be. */

[[noreturn]] void pgkm_raise_field(const PgkmModelFields *fields, const char *name, const char *must);

/* The first two fields, which must be at least 1. */
void pgkm_model_extents(const PgkmModelFields *fields, int32 *count, int32 *d);

/* One of the words, as its value. */
int32 pgkm_model_word(const PgkmModelFields *fields, const char *name, const PgkmWords *words);

/* An array of 8-byte values of this shape, copied; the second one of finite float8 values. */
const void *pgkm_model_array(const PgkmModelFields *fields, const char *name, const char *must, const PgkmShape &shape);
const double *pgkm_model_numbers(const PgkmModelFields *fields, const char *name, const char *must,
                                 const PgkmShape &shape);

/* Whether an array is there: neither NULL nor empty. */
bool pgkm_model_has(const PgkmModelFields *fields, const char *name);

/* The fields center and scale, d values each; both NULL where (value - center) / scale is the value. */
void pgkm_model_units(const PgkmModelFields *fields, int32 d, const double **center, const double **scale);

/* The field fills: d values, or NULL where it is empty or NULL. */
const double *pgkm_model_fills(const PgkmModelFields *fields, int32 d);

const void *pgkm_cached_model_of(FunctionCallInfo fcinfo, int number, Size size,
                                 void (*read)(Datum composite, MemoryContext context, void *model));

/*
 * Argument `number` as a Model, unpacked once by `read` and kept in fn_extra as long as the same value
 * comes again: a constant, the same pointer into a TOAST table, or else the same bytes. For functions
 * that use fn_extra for nothing else.
 */
template <typename Model, void (*read)(Datum composite, MemoryContext context, Model *model)>
static const Model *pgkm_cached_model(FunctionCallInfo fcinfo, int number)
{
    return (const Model *)pgkm_cached_model_of(
        fcinfo, number, sizeof(Model),
        [](Datum composite, MemoryContext context, void *model) { read(composite, context, (Model *)model); });
}

#endif
