/*
 * parameters.h - the parameters of a reduction: a jsonb object of numbers, vectors and matrices.
 */
#ifndef PGKM_PG_REDUCE_PARAMETERS_H
#define PGKM_PG_REDUCE_PARAMETERS_H

#include "pg/reduce/program.h"

extern "C" {
#include "utils/jsonb.h"
}

/* Calls visit(name, value) for each field of a JSON object. */
template <typename Visit>
static void reduce_each_field(JsonbContainer *object, Visit visit)
{
    JsonbIterator *iterator = JsonbIteratorInit(object);
    JsonbIteratorToken token;
    JsonbValue value;
    const char *name = NULL;

    while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE) {
        if (token == WJB_KEY)
            name = pnstrdup(value.val.string.val, value.val.string.len);
        else if (token == WJB_VALUE)
            visit(name, &value);
    }
}

/* So many numbers in the current memory context; 54000 where the memory limit has no room for them. */
double *reduce_numbers(int64 count);

/* NULL: none. 22023 for another value than a number, a list of numbers, or a list of lists as long as each other;
 * 22003 for a number that float64 does not hold. */
ReduceParameters *reduce_parameters_read(Jsonb *object);

/* The same parameters, with one of this name and shape added or in place of the old one. `values` are copied. An
 * extent is at most 2^31 - 1. */
ReduceParameters *reduce_parameters_with(const ReduceParameters *parameters, const char *name, int dimensions,
                                         const int64 *extent, const double *values);

/* All of `from` under "old.name" beside `parameters`. */
ReduceParameters *reduce_parameters_with_old(const ReduceParameters *parameters, const ReduceParameters *from);

/* A copy in the current memory context. */
ReduceParameters *reduce_parameters_copy(const ReduceParameters *parameters);

/* As jsonb; numbers read back as they were. */
Jsonb *reduce_parameters_jsonb(const ReduceParameters *parameters);

#endif
