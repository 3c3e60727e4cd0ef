/*
 * parameters.h - the parameters of a reduction: numbers, vectors and matrices with names.
 */
#ifndef PGKM_PG_REDUCE_PARAMETERS_H
#define PGKM_PG_REDUCE_PARAMETERS_H

#include "pg/compat.h"

#include "reduction/tree.h"

extern "C" {
#include "nodes/pg_list.h"
#include "utils/jsonb.h"
}

/* Parameters are a List of PgkmNamed, whose values lists may share. */

/* So many numbers in the current memory context; 54000 where the memory limit has no room for them. */
double *reduce_numbers(int64 count);

/* Those of a JSON object, or none for NULL. 22023 for another value than a number, a list of numbers, or a list of
 * lists as long as each other; 22003 for a number that float64 does not hold. */
List *reduce_parameters_read(Jsonb *object);

/* Adds one, whose values are not copied. */
List *reduce_parameters_add(List *parameters, const char *name, int dimensions, const int64 *extent,
                            const double *values);

const PgkmNamed *reduce_parameters_find(const List *parameters, const char *name);

/* As jsonb; numbers read back as they were. */
Jsonb *reduce_parameters_jsonb(const List *parameters);

#endif
