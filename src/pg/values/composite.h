/*
 * composite.h - the extension's composite types, made and taken apart, and the rows that its
 * set-returning functions return.
 */
#ifndef PGKM_PG_COMPOSITE_H
#define PGKM_PG_COMPOSITE_H

#include "pg/compat.h"

extern "C" {
#include "nodes/execnodes.h"
#include "utils/array.h"
#include "utils/builtins.h"
}

#include <concepts>
#include <initializer_list>

/* A value of a row or of a composite, from its C type. NULL: by default, from InvalidOid and from a
 * text that is NULL. A Datum is never NULL. */
struct PgkmValue {
    Datum datum = 0;
    bool isnull = true;

    PgkmValue() = default;
    PgkmValue(std::same_as<bool> auto value) : datum(BoolGetDatum(value)), isnull(false) {}
    PgkmValue(int32 value) : datum(Int32GetDatum(value)), isnull(false) {}
    PgkmValue(int64 value) : datum(Int64GetDatum(value)), isnull(false) {}
    PgkmValue(double value) : datum(Float8GetDatum(value)), isnull(false) {}
    PgkmValue(Datum value) : datum(value), isnull(false) {}
    PgkmValue(Oid value) : datum(ObjectIdGetDatum(value)), isnull(!OidIsValid(value)) {}
    PgkmValue(const char *text) : datum(text == NULL ? 0 : CStringGetTextDatum(text)), isnull(text == NULL) {}
};

/* The value where it is known, else NULL. */
template <typename Value>
static inline PgkmValue pgkm_value_if(bool known, Value value)
{
    return known ? PgkmValue(value) : PgkmValue();
}

typedef std::initializer_list<PgkmValue> PgkmValues;

/* Begins the result of a set-returning function, of the row type that SQL declares. */
ReturnSetInfo *pgkm_result_begin(FunctionCallInfo fcinfo);

/* Adds a row: a value for each column, in their order. */
void pgkm_result_put(ReturnSetInfo *result, PgkmValues values);

/* A composite datum in CurrentMemoryContext: a value for each field, in their order; those that the type lacks are left
 * out. */
Datum pgkm_composite_make(TupleDesc tupdesc, PgkmValues values);

struct PgkmWords;

/* A field of a composite type. InvalidOid is any composite type, or an array of one. What follows the type is for
 * fields of options (pg/values/options.h). */
struct PgkmField {
    const char *name;
    Oid type;
    int takes = 0;                                                     /* a PgkmTakes */
    Size offset = 0;                                                   /* in the struct that holds the options */
    const PgkmWords *words = NULL;                                     /* or NULL */
    void (*read)(Datum value, MemoryContext context, void *to) = NULL; /* of a composite type */
};

/* A composite type as the extension made it. Its owner can alter it, and reading a changed
 * one as this one would crash. The script of an older version lacks fields at the end, which have come later: a library
 * works over it until ALTER EXTENSION UPDATE, and reads what was stored then. Such a field is NULL there, and is not
 * written. */
struct PgkmCompositeType {
    const char *name;
    const PgkmField *fields;
    int count;
    int later = 0; /* of these fields */
};

#define PGKM_MOST_FIELDS 32

/* 42804 when a type is not as the extension made it. */
void pgkm_check_type(TupleDesc tupdesc, const PgkmCompositeType *type);

/* The row type that a function returns, or a procedure in the first column of its row, which has to be `type`, in
 * CurrentMemoryContext. 42804 when it has been altered. */
TupleDesc pgkm_result_tupdesc(FunctionCallInfo fcinfo, const PgkmCompositeType *type);

/* Takes a composite datum apart into type->count fields, which point into it (or into its detoasted
 * copy in CurrentMemoryContext). 42804 when the type has been altered. */
void pgkm_read_fields(Datum composite, const PgkmCompositeType *type, NullableDatum *fields);

/* An array of n texts, text[]: text_of(i) is the one of number i, from 0. */
template <typename TextOf>
Datum pgkm_text_array(int n, const TextOf &text_of)
{
    Datum *const texts = (Datum *)palloc((n + 1) * sizeof(Datum));

    for (int i = 0; i < n; ++i)
        texts[i] = CStringGetTextDatum(text_of(i));
    return PointerGetDatum(construct_array(texts, n, TEXTOID, -1, false, TYPALIGN_INT));
}

#endif
