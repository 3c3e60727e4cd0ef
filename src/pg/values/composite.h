/*
 * composite.h - reading values of the extension's composite types.
 */
#ifndef PGKM_PG_COMPOSITE_H
#define PGKM_PG_COMPOSITE_H

extern "C" {
#include "postgres.h"
#include "access/tupdesc.h"
#include "fmgr.h"
}

/* A composite type as the extension made it. Its owner can alter it, and reading a changed
 * one as this one would crash. */
struct PgkmCompositeType {
    const char *name;
    const Oid  *fields;
    int         count;
};

/* 42804 unless the row type still is the one that the extension made. */
void pgkm_check_composite_type(TupleDesc tupdesc, const PgkmCompositeType *type);

/* The row type that a function returns, which has to be `type`, in CurrentMemoryContext. */
TupleDesc pgkm_result_tupdesc(FunctionCallInfo fcinfo, const PgkmCompositeType *type);

/* Takes a composite datum apart into `count` values, which point into it (or into its
 * detoasted copy in CurrentMemoryContext). */
void pgkm_read_composite(Datum composite, const PgkmCompositeType *type, Datum *values, bool *nulls);

/* The same into fields like the arguments of a function. */
void pgkm_read_fields(Datum composite, const PgkmCompositeType *type, NullableDatum *fields);

#endif
