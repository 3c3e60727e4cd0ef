/*
 * row.h - a row of any relation as the features of a model, whose columns it finds by their names.
 */
#ifndef PGKM_PG_MODEL_ROW_H
#define PGKM_PG_MODEL_ROW_H

#include "pg/columns/source.h"

/* What a model says of such rows; it is read when the first one comes. Zero but for what says so. */
struct ModelColumns {
    const PgkmCompositeType *type; /* of the model; given */
    MemoryContext context;         /* of the model; given */
    const Sources *sources;
    struct RowMap *map; /* where the row has them */
};

static inline ModelColumns model_columns(const PgkmCompositeType *type, MemoryContext context)
{
    return {type, context == NULL ? CurrentMemoryContext : context, NULL, NULL};
}

/*
 * The features of a row for the model of `d` features in argument number - 1, as d float64 values, palloc'd; NULL for a
 * row to skip. *element becomes the arithmetic of the fit. Argument `number` is an array or vector, or a row (a
 * composite value). Of a call in a plan it is names, text[], and the columns of these names are the arguments behind it
 * (plan/row_call.cpp). A function has `behind` arguments of its own behind the features. `fills` are d values in the
 * place of NULLs, or NULL: then they are an error.
 *
 * 42703 where the row lacks a column, 42804 where one has values of another encoding, 22023 where the model does not
 * name its columns; else errors of arrays and single values.
 */
double *model_row(FunctionCallInfo fcinfo, int number, int32 d, const double *fills, ModelColumns *columns,
                  PgkmElement *element, int behind = 0);

#endif
