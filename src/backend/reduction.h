/*
 * reduction.h - a user's reduction as a program: what reduce() makes of SQL expressions, and every backend runs.
 *
 *     for each row:  (i, v) = process(row);  R[i] = R[i] op v
 *
 * (Ma and Agrawal, "A translation system for enabling data mining applications on GPUs", ICS 2009, section 3.) R is a
 * reduction object: a table of cells, each of some values. A program may fill several objects in one pass.
 *
 * Expressions are a list of scalars. Each refers to earlier ones only, so that the list can be evaluated from front to
 * back and always ends. A vector does not exist as a value: f[i], with the index i of a loop, stands for it.
 *
 * Numbers are float64, truth values are numbers 0 and 1. Every row value is finite. Where an operation gives an
 * infinity or NaN, or a subscript or a cell lies outside, the reduction ends with PGKM_INVALID, and PgkmReduced.fault
 * says where. A branch that a CASE does not take cannot fail.
 *
 * The order of evaluation decides which of a row's faults is named: objects from the first, of each its filter, its
 * cell, its items from the first, the elements of an item by their index, of each its value, then its key. Arguments
 * from the left, of a CASE the condition and the branch it takes, of a loop its body for each index. What is not
 * reached does not fail: cell and items of a row that the filter leaves out, the value of PGKM_COMBINE_COUNT.
 */
#ifndef PGKM_BACKEND_REDUCTION_H
#define PGKM_BACKEND_REDUCTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum PgkmOperation {
    /* without arguments */
    PGKM_CONSTANT, /* number */
    PGKM_INDEX,    /* the value of loop `loop`, 0 .. count - 1 */
    /* a[0], a[1]: subscripts from 0, whole numbers; fails outside */
    PGKM_COLUMN,    /* value `first` + a[0] of the row; a[0] < extent[0], or -1 for a column that is a number */
    PGKM_PARAMETER, /* parameters[first + a[0] * extent[1] + a[1]]; a[1] is -1 for a vector, both for a number */
    /* one argument */
    PGKM_NEGATE,
    PGKM_NOT,
    PGKM_ABS,
    PGKM_SQRT, /* fails below 0 */
    PGKM_EXP,
    PGKM_LN, /* fails at and below 0 */
    PGKM_FLOOR,
    PGKM_CEIL,
    PGKM_ROUND, /* to the nearest, halves to even, as SQL's round(double precision) */
    PGKM_TRUNC,
    PGKM_SIGN,
    PGKM_SIN,
    PGKM_COS,
    PGKM_TAN,
    PGKM_ASIN,
    PGKM_ACOS,
    PGKM_ATAN,
    PGKM_TANH,
    /* two arguments */
    PGKM_ADD,
    PGKM_SUBTRACT,
    PGKM_MULTIPLY,
    PGKM_DIVIDE, /* fails where a[1] is 0 */
    PGKM_MODULO, /* fmod(); fails where a[1] is 0 */
    PGKM_POWER,  /* a[0] * a[0] where a[1] is the constant 2 */
    PGKM_ATAN2,
    PGKM_LEAST, /* a[0] on a tie, as PGKM_MIN and PGKM_MAX keep the first */
    PGKM_GREATEST,
    PGKM_EQUAL,
    PGKM_NOT_EQUAL,
    PGKM_LESS,
    PGKM_LESS_EQUAL,
    PGKM_AND, /* both arguments are evaluated */
    PGKM_OR,
    /* three arguments */
    PGKM_CASE, /* a[0] ? a[1] : a[2]. Here, and wherever a truth value is expected: all but 0 is true */
    /* over loop `loop`, of its body a[0]; in the order of the index */
    PGKM_SUM, /* where the body is a product or a square (PGKM_POWER by the constant 2): fma(x, y, sum), so
               * sum(i, d, power(f[i] - c[j][i], 2)) has the bits of exact_distance() in numeric/contract.hpp */
    PGKM_PROD,
    PGKM_MIN,
    PGKM_MAX,
    PGKM_ARGMIN, /* the lowest index on a tie */
    PGKM_ARGMAX,
    PGKM_COUNT, /* how often the body is true */
    PGKM_OPERATIONS
} PgkmOperation;

/* `a` holds the places of earlier expressions, or -1. An expression whose value depends on PGKM_INDEX of a loop is used
 * within the body of that loop only. The body of a loop holds no other loop of the same number. */
typedef struct PgkmExpression {
    PgkmOperation operation;
    int32_t a[3];
    double number;     /* of PGKM_CONSTANT */
    int32_t loop;      /* of PGKM_INDEX and of what goes over a loop */
    int64_t first;     /* of PGKM_COLUMN and PGKM_PARAMETER */
    int32_t extent[2]; /* likewise: elements, or rows and columns; 1, 1 for a number */
    int32_t place;     /* offset in the user's text, for errors */
} PgkmExpression;

/* How values of a cell come together. Least and greatest values and keys are +0 for -0. */
typedef enum PgkmCombine {
    PGKM_COMBINE_SUM,
    PGKM_COMBINE_MIN,
    PGKM_COMBINE_MAX,
    PGKM_COMBINE_COUNT, /* how many rows; the value does not matter */
    PGKM_COMBINE_ARGMIN /* the key of the row with the least value, the least key on a tie */
} PgkmCombine;

/* One value, or as many as a loop has, side by side. */
typedef struct PgkmItem {
    int32_t value; /* expression */
    int32_t loop;  /* whose index goes over the elements; -1: a single value */
    PgkmCombine combine;
    int32_t key; /* of PGKM_COMBINE_ARGMIN: expression; else -1 */
} PgkmItem;

/* R: cells x width values, width being the sum of the items' elements. */
typedef struct PgkmObject {
    int64_t cells;
    int32_t cell;   /* expression: 0 .. cells - 1, a whole number; -1: cell 0 */
    int32_t filter; /* expression: rows where it is false are left out; -1: none */
    int32_t first_item;
    int32_t n_items;
} PgkmObject;

typedef struct PgkmReduction {
    const PgkmExpression *expressions;
    int32_t n_expressions;
    const int64_t *loops; /* the count of each, 1 .. 2^31 - 1 (0 is allowed below PGKM_SUM, PGKM_PROD and PGKM_COUNT) */
    int32_t n_loops;
    const double *parameters;
    int64_t n_parameters;
    const PgkmItem *items;
    int32_t n_items;
    const PgkmObject *objects;
    int32_t n_objects;
    int32_t
        exact; /* 1: sums of integers, scaled by the range of the values, which a first pass over the rows takes:
                * the same bits for every order of the rows. 0: float64, in segments of rows (numeric/reduction.hpp) */
} PgkmReduction;

/* Why a reduction failed. Of several faults that of the first row, there the first in the order of evaluation. */
typedef enum PgkmFault {
    PGKM_FAULT_NONE,      /* it did not, or for another reason */
    PGKM_FAULT_NUMBER,    /* an infinity or NaN came out */
    PGKM_FAULT_DIVISION,  /* by zero */
    PGKM_FAULT_SUBSCRIPT, /* outside, or no whole number */
    PGKM_FAULT_CELL,      /* likewise */
    PGKM_FAULT_TOTAL      /* a sum left the range of float64; there is no row */
} PgkmFault;

/* What comes of a reduction; arrays are the caller's. Objects lie one behind the other. */
typedef struct PgkmReduced {
    double *values;  /* of each object cells x width. A cell without rows: 0 for sums and counts, NaN else */
    int64_t *counts; /* of each object cells: rows that went there */
    PgkmFault fault;
    int64_t row;        /* of the fault, from the problem's first; -1: there is none */
    int32_t expression; /* which failed: of a subscript the column or parameter, of a cell and a total their value */
    double number;      /* what came out, the subscript, the cell, or the total; of a division what was divided */
} PgkmReduced;

#ifdef __cplusplus
}
#endif
#endif
