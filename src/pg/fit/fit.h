/*
 * fit.h - functions over whole tables that fit a model: what they share, and what each algorithm says of itself.
 */
#ifndef PGKM_PG_FIT_FIT_H
#define PGKM_PG_FIT_FIT_H

#include <cmath>

#include "pg/table/call.h"
#include "pg/values/options.h"

/* An algorithm with a type of options and a type of models. */
struct FitKind {
    PgkmAlgorithm algorithm;
    const char *name; /* of its aggregate */
    const PgkmOptionsType *options;
    bool takes_k;

    /* The row type of a function that returns a model, in CurrentMemoryContext. */
    TupleDesc (*tupdesc)(FunctionCallInfo fcinfo);

    /* 54000 where a model of k clusters (fewer if there are only n rows) would pass the maximum size of a value. To be
     * called before the fit, not after. NULL: a model is never so large. */
    void (*check_size)(const PgkmRequest *request, int64 k, int64 n);

    /* The result as a model in CurrentMemoryContext. Of a table `call` says where it comes from; NULL: of an aggregate.
     */
    Datum (*model)(const PgkmResult *result, const PgkmRequest *request, const TableCall *call, TupleDesc tupdesc);

    /* What the options, as fields and in the request, mean for the call; 22023. NULL: nothing. */
    void (*note_options)(TableCall *call, const NullableDatum *fields);

    /* The option because of which the fit needs all rows in memory here, and neither other servers can work on theirs
     * nor can rows be streamed; or NULL. NULL: there is none. */
    const char *(*needs_all_rows)(const PgkmRequest *request);

    /* The options that are of one k, which a sweep cannot use; behind the last one NULL. NULL: it is no kind to sweep.
     */
    const char *const *of_one_k = NULL;
};

/* The options of a request, whatever its algorithm. */
static inline PgkmAnyOptions *fit_options(PgkmRequest *request)
{
    return (PgkmAnyOptions *)&request->kmeans;
}

/* A squared distance as users see it: Euclidean, or 1 - cosine (half the squared distance of unit vectors), or the
 * number of bits that differ, which it is. */
static inline double fit_distance(double square, PgkmMetric metric)
{
    if (metric == PGKM_HAMMING)
        return square;
    return metric == PGKM_COSINE ? square / 2 : std::sqrt(square);
}

/* A k that was read, or argument `number` as k, or as the k of that name: 22023 when it is NULL, below 1 or above
 * 2^31 - 1. */
int64 pgkm_check_k(const NullableDatum *k, const char *name = "k");
int64 pgkm_k_argument(FunctionCallInfo fcinfo, int number, const char *name = "k");

/* Likewise both ends of a range; 22023 also for one that ends before it begins. */
void pgkm_check_range(const NullableDatum *k_min, const NullableDatum *k_max, int64 *first, int64 *last);

/* Of option init_model: the units of that model, d of each, or NULL; units of 0 and 1 are known by was_standardized
 * alone. They lie in the context, or the current one for NULL. */
void fit_give_units(PgkmGivenModel *model, const double *center, const double *scale, bool was_standardized,
                    MemoryContext context);

/* A call with these arguments, their options, and k (0: none yet). 22023 for a bad one, or for one of those, with NULL
 * behind the last, that the function, which is named then, cannot use. */
TableCall *fit_call_create(const FitKind *kind, const TableArguments &arguments, int64 k, const char *function = NULL,
                           const char *const *unusable = NULL);

/* A call of a function that takes relation, features, k if there is one, options and so on. */
TableCall *fit_call_of_arguments(const FitKind *kind, FunctionCallInfo fcinfo);

/* What a fit asks for that streams rows, or lets other servers work on theirs, where its options do. */
TableWish fit_wish(const FitKind *kind, const TableCall *call);

/* Fits the rows of the call; NULL when there are none. The result lives as long as the call. 54000 when the model would
 * be larger than a value can be; else WARNING and errors as of table_call_fit. */
const PgkmResult *fit_rows(const FitKind *kind, TableCall *call);

/* Ends the call of a function that returns the model of that result; NULL where there is none. */
Datum fit_return(const FitKind *kind, TableCall *call, FunctionCallInfo fcinfo, const PgkmResult *result,
                 TupleDesc tupdesc);

/* All of a function that takes such arguments and returns a model; its name is a static string. */
Datum fit_table(const FitKind *kind, FunctionCallInfo fcinfo, const char *function);

#endif
