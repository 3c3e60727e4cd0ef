/*
 * program.h - a program of scalar expressions (backend/reduction.h) that grows.
 *
 * Equal expressions are one. What has constant arguments becomes a constant, unless it fails: a branch that no row
 * takes may fail.
 */
#ifndef PGKM_PG_REDUCE_PROGRAM_H
#define PGKM_PG_REDUCE_PROGRAM_H

#include "pg/compat.h"

#include "backend/reduction.h"

/* Most expressions of a program, and evaluations of a loop's body for a row. */
#define REDUCE_MAX_EXPRESSIONS 65536
#define REDUCE_MAX_STEPS ((double)((int64)1 << 40))

/* A parameter, or a column: whose values lie from `first` on. */
struct ReduceName {
    const char *name;
    int dimensions;  /* 0 to 2 */
    int32 extent[2]; /* 1 where there is no such dimension */
    int64 first;
    bool truth; /* a boolean column: a condition, too */
};

struct ReduceParameters {
    ReduceName *names;
    int n_names;
    double *values;
    int64 n_values;
    int64 capacity;
};

struct ReduceProgram {
    const ReduceParameters *parameters;
    PgkmExpression *expressions;
    int32 *next; /* in the chain of a hash */
    int32 n;
    int32 capacity;
    int32 *chains; /* first expression of each hash */
    int64 *loops;
    int32 n_loops;
    PgkmItem *items;
    int32 n_items;
    int32 items_capacity;
    PgkmObject *objects;
    int32 n_objects;
};

ReduceProgram *reduce_program_create(const ReduceParameters *parameters, int n_objects);

/* The place of such an expression. 54000 for one too many. */
int32 reduce_emit(ReduceProgram *program, PgkmOperation operation, int32 place, int32 a = -1, int32 b = -1,
                  int32 c = -1);
int32 reduce_emit_constant(ReduceProgram *program, int32 place, double number);
int32 reduce_emit_loop(ReduceProgram *program, PgkmOperation operation, int32 place, int32 loop, int32 body);
int32 reduce_emit_value(ReduceProgram *program, PgkmOperation operation, int32 place, const ReduceName *name,
                        int32 first, int32 second);

/* Forgets the expressions from there on. */
void reduce_program_cut(ReduceProgram *program, int32 n);

int32 reduce_add_loop(ReduceProgram *program, int64 count);
void reduce_add_item(ReduceProgram *program, const PgkmItem *item);

/* The value of an expression of constants and parameters; false where it is none, or fails. */
bool reduce_evaluate(const ReduceProgram *program, int32 expression, double *value);

#endif
