/*
 * composite_read.h - the fields of a model checked and copied, and models kept from row to
 * row. Models can be made by hand, so nothing about them is taken on trust.
 */
#ifndef PGKM_PG_COMPOSITE_READ_H
#define PGKM_PG_COMPOSITE_READ_H

extern "C" {
#include "postgres.h"
#include "fmgr.h"
}

/* A composite taken apart: where its fields are, and where copies of them go. What detoasting
 * takes stays in CurrentMemoryContext. */
struct PgkmFields {
    const char   *type; /* its name, for messages */
    const Datum  *values;
    const bool   *nulls;
    MemoryContext context;
};

/* 22023: invalid value of the type, with the problem as its detail. */
[[noreturn]] void pgkm_raise_fields(const PgkmFields *fields, const char *problem);

/* An array of 8-byte values of the given shape, copied: one dimension where columns is 0, three
 * where `planes` is not 0 (planes x rows x columns). */
const void *pgkm_field_array(const PgkmFields *fields, int field, const char *problem, int32 planes, int32 rows,
                             int32 columns);

/* The same, of finite float8 values. */
const double *pgkm_field_numbers(const PgkmFields *fields, int field, const char *problem, int32 planes, int32 rows,
                                 int32 columns);

/* Unpacks a composite into *model, a struct of the caller's choice. */
typedef void (*PgkmModelReader)(Datum composite, MemoryContext context, void *model);

/*
 * Argument `number` as a model of `size` bytes, unpacked once and kept in fn_extra as long as
 * the same value comes again: a constant, the same pointer into a TOAST table, or else the same
 * bytes. For functions that use fn_extra for nothing else.
 */
const void *pgkm_cached_model(FunctionCallInfo fcinfo, int number, Size size, PgkmModelReader read);

#endif
