/*
 * origin.h - kmeans_origin: where a model of any algorithm comes from, and what it knows of its columns.
 */
#ifndef PGKM_PG_MODEL_ORIGIN_H
#define PGKM_PG_MODEL_ORIGIN_H

#include "pg/columns/source.h"
#include "pg/fit/fit.h"

/* The row type of a function that returns such a model, in CurrentMemoryContext. Looks up the types of its origins,
 * too: another session may drop the extension during a fit. To be called before it. 42804 for one that has been
 * altered. */
TupleDesc origin_tupdesc(FunctionCallInfo fcinfo, const PgkmCompositeType *type);

/* The field `origin` of a model of this row type; NULL where an older one lacks it. `options` are those that the fit
 * took. An aggregate (call NULL) knows neither names nor, as it is immutable, the time. The means and deviations, d of
 * each, are NULL where they are not known. */
PgkmValue origin_build(TupleDesc model, const FitKind *kind, const void *options, const TableCall *call,
                       const double *means, const double *deviations, int32 d);

/* That of a model that no fit has made. */
PgkmValue origin_given(TupleDesc model, PgkmValue features, PgkmValue sources, PgkmValue means, PgkmValue deviations);

/* What the origin of a model of d features says, checked: 22023 where it does not fit. `sources` are NULL where it has
 * no names, as that of an aggregate. In the current memory context. */
struct Origin {
    const Sources *sources;
    const double *means; /* d of the rows, or NULL: not known */
    const double *deviations;
    bool was_standardized; /* as a model with means 0 and deviations 1 does not show otherwise */
    double reg_covar;      /* of a mixture; NaN where it is not known */
};
Origin origin_read(const PgkmModelFields *from, int32 d);

/* The same of a model of this type, which has k and d. */
Origin origin_of(Datum composite, const PgkmCompositeType *type);

/* Whether the fit estimated missing values (nulls => 'em'). */
bool origin_estimates_missing(const PgkmModelFields *from);

#endif
