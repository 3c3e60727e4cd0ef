/*
 * levels.h - the levels of columns that are categories: each becomes a feature, which is 1 in the rows that have it and
 * 0 in all others.
 *
 * While rows are read, a category is the number of its level, its code, by the set of levels that the process has met.
 * When all are read, the sets of all processes become one, in the order of the levels' bytes, and each row is
 * written anew with a feature for each level. Where a model says which levels there are, others are none of them.
 */
#ifndef PGKM_PG_COLUMNS_LEVELS_H
#define PGKM_PG_COLUMNS_LEVELS_H

#include "pg/columns/column.h"

/* The levels of `count` columns, as one process knows them. */
struct Levels;

/* None yet, in the current memory context. `given`, if not NULL, says of each category which levels it has: text[], in
 * the order of their bytes, NULL behind them if it is one. */
Levels *levels_create(const TableColumn *columns, int count, const Datum *given);

/* The code of a value of column i. What detoasting takes stays in the current memory context. 54011 for far more levels
 * than pg_kmeans.max_levels. */
double levels_code(Levels *levels, int i, NullableDatum value);

/* The sets as bytes, for another process. */
Size levels_bytes(const Levels *levels);
void levels_write(const Levels *levels, char *to);
Levels *levels_read(const TableColumn *columns, int count, const char *from);

/* All levels of `count` columns, and what becomes of the codes of each process. */
struct LevelsFound {
    int count;
    int32 d;             /* features of all columns */
    const int32 *widths; /* of each column */
    const Datum *levels; /* of each category, as `given` above; 0 for a number */
    int32 **places;      /* of column i of process p, [p * count + i]: the place of each code; NULL for a number */
};

/* Of so many processes, in the current memory context. 54011, with the number of its levels, where a column has more
 * than pg_kmeans.max_levels. */
LevelsFound *levels_join(const TableColumn *columns, Levels *const *of_processes, int n_processes);

/* Writes n rows of codes of a process as features. Calls nothing of the server. */
void levels_expand(const LevelsFound *found, int process, const double *codes, int64 n, double *features);

#endif
