/*
 * group_arguments.h - k, or a range of it, and the options of a group of rows: every row brings them along, all
 * rows must bring the same.
 */
#ifndef PGKM_PG_GROUP_ARGUMENTS_H
#define PGKM_PG_GROUP_ARGUMENTS_H

extern "C" {
#include "postgres.h"
#include "fmgr.h"
}

#include "pg/fit/fit.h"

struct PgkmGroupArguments {
    const FitKind *kind;
    int64 k;
    int64 k_last;        /* of a range that begins with k, of which the fit suggests one; 0: k alone */
    NullableDatum given; /* the options as the first row has them, in plain bytes */
    PgkmAnyOptions options;
    bool constant_options; /* the query cannot change them from row to row */
};

/* Takes the first row's arguments over; what is kept goes to `context`, but for constant options. With k_max, which may
 * be NULL, k is the k_min of a range. Errors as of pgkm_check_k, pgkm_check_range and pgkm_options_read; 22023 for
 * options that a range cannot have. */
void pgkm_group_begin(PgkmGroupArguments *group, const FitKind *kind, MemoryContext context, const NullableDatum *k,
                      const NullableDatum *k_max, const NullableDatum *options, bool constant_options);

/* Checks a later row's: 22023 when they differ. */
void pgkm_group_check(const PgkmGroupArguments *group, const NullableDatum *k, const NullableDatum *k_max,
                      const NullableDatum *options);

/* The name of the aggregate that has such arguments. */
const char *pgkm_group_function(const PgkmGroupArguments *group);

/* 22023 unless the options of two rows of a group, as structs of the engine, are the same. */
void pgkm_check_options(const FitKind *kind, const void *options, const void *other);

/* Whether two groups have the same options; k does not matter. */
bool pgkm_group_same_options(const PgkmGroupArguments *a, const PgkmGroupArguments *b);

/* 22023 unless two groups that are to become one have the same k and options. */
void pgkm_group_check_equal(const PgkmGroupArguments *a, const PgkmGroupArguments *b);

/* Whether no row of a group can bring another value of this argument of a transition function
 * (0: the state), or the call has no such argument. */
bool pgkm_is_constant_in_group(FunctionCallInfo fcinfo, int number);

#endif
