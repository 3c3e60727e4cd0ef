/*
 * sample.cpp - a sample of rows that follows their density.
 */
#include "pg/plot/sample.h"

#include <algorithm>
#include <cmath>
#include <tuple>

extern "C" {
#include "common/hashfn.h"
#include "utils/hsearch.h"
}

#define TURNS 4

struct Cell {
    int64 rows;
    uint64 least; /* of the keys of its rows */
};

/* Cells that cover the plot. */
struct Cells {
    const PlotAxis *x;
    const PlotAxis *y;
    double side;
    int32 columns;
    int32 count;
    Cell *cells;

    /* Half as many cells as dots. */
    void create(int32 wanted)
    {
        const double width = x->end - x->begin;
        const double height = y->begin - y->end;

        side = Max(sqrt(2 * width * height / wanted), 1.0);
        columns = (int32)(width / side) + 1;
        count = columns * ((int32)(height / side) + 1);
        cells = (Cell *)palloc0(count * sizeof(Cell));
    }

    Cell *at(double place_x, double place_y) const
    {
        return &cells[(int32)((place_y - y->end) / side) * columns + (int32)((place_x - x->begin) / side)];
    }
};

static uint64 key_of(const PgkmPoints *points, int64 row, uint64 seed)
{
    const int bytes = points->d * (int)(points->element == PGKM_FLOAT32 ? sizeof(float) : sizeof(double));

    return hash_bytes_extended((const unsigned char *)points->values + row * bytes, bytes, seed);
}

/* Rows that a cell keeps. */
static double kept(const Cell *cell, double factor)
{
    return Min((double)cell->rows, Max(1.0, factor * sqrt((double)cell->rows)));
}

/* The factor by which all cells together keep so many rows; of few rows they keep all. */
static double find_factor(const Cells *cells, int32 wanted)
{
    double factor = 0;

    for (double step = wanted; step > 1e-4; step /= 2) {
        double sum = 0;

        for (int32 i = 0; i < cells->count; ++i)
            sum += kept(&cells->cells[i], factor + step);
        if (sum <= wanted)
            factor += step;
    }
    return factor;
}

SampleDot *sample_take(const Plane *plane, const PlotAxis *x, const PlotAxis *y, int32 wanted, uint64 seed,
                       int64 *count)
{
    Cells cells = {x, y, 0, 0, 0, NULL};
    HASHCTL control = {};
    HASH_SEQ_STATUS status;

    cells.create(wanted);
    plane_each(plane, [&](int64 row, const double *at) {
        Cell *const cell = cells.at(axis_place(x, at[0]), axis_place(y, at[1]));
        const uint64 key = key_of(&plane->points, row, seed);

        cell->least = cell->rows == 0 ? key : Min(cell->least, key);
        ++cell->rows;
    });
    control.keysize = control.entrysize = sizeof(SampleDot);
    control.hcxt = CurrentMemoryContext;

    HTAB *const all = hash_create("dots of a picture", wanted, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    const double factor = find_factor(&cells, wanted);

    plane_each(plane, [&](int64 row, const double *at) {
        const double place_x = axis_place(x, at[0]);
        const double place_y = axis_place(y, at[1]);
        const Cell *const cell = cells.at(place_x, place_y);
        const uint64 key = key_of(&plane->points, row, seed);
        /* A number from 0 to 1 that tells nothing about the order of keys. */
        const double chance = (double)(key * UINT64CONST(0x9E3779B97F4A7C15) >> 11) * 0x1p-53;
        const SampleDot dot = {(int32)(key % TURNS), Max(plane->cluster_of[row], PLOT_NO_CLUSTER),
                               (int32)lround(place_x * 10), (int32)lround(place_y * 10)};

        /* The row of the least key stays, and each other one by the same chance. */
        if (key == cell->least || chance * (double)(cell->rows - 1) < kept(cell, factor) - 1)
            (void)hash_search(all, &dot, HASH_ENTER, NULL);
    });

    SampleDot *const dots = (SampleDot *)palloc((hash_get_num_entries(all) + 1) * sizeof(SampleDot));

    *count = 0;
    hash_seq_init(&status, all);
    while (const void *const dot = hash_seq_search(&status))
        dots[(*count)++] = *(const SampleDot *)dot;
    std::sort(dots, dots + *count, [](const SampleDot &a, const SampleDot &b) {
        return std::tie(a.turn, a.cluster, a.y, a.x) < std::tie(b.turn, b.cluster, b.y, b.x);
    });
    return dots;
}
