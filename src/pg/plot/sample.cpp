/*
 * sample.cpp - a sample of rows that follows their density.
 */
#include "pg/plot/sample.h"

#include <cmath>

extern "C" {
#include "common/hashfn.h"
}

struct Cell {
    int64 rows;
    uint64 least; /* of the keys of its rows */
};

struct Cells {
    double left; /* of the card */
    double top;
    double side;
    int32 columns;
    int32 count;
    Cell *cells;
};

static const Cell *cell_at(const Cells *cells, double x, double y)
{
    return &cells->cells[(int32)((y - cells->top) / cells->side) * cells->columns +
                         (int32)((x - cells->left) / cells->side)];
}

/* Half as many cells as dots. */
static void cells_create(Cells *cells, const PlotAxis *x, const PlotAxis *y, int32 wanted)
{
    const double width = x->end - x->begin;
    const double height = y->begin - y->end;

    cells->left = x->begin;
    cells->top = y->end;
    cells->side = Max(sqrt(2 * width * height / wanted), 1.0);
    cells->columns = (int32)(width / cells->side) + 1;
    cells->count = cells->columns * ((int32)(height / cells->side) + 1);
    cells->cells = (Cell *)palloc0(cells->count * sizeof(Cell));
    for (int32 i = 0; i < cells->count; ++i)
        cells->cells[i].least = PG_UINT64_MAX;
}

static uint64 key_of(const Plane *plane, const PlaneRow &row, uint64 seed)
{
    const Size value_bytes = plane->points.element == PGKM_FLOAT32 ? sizeof(float) : sizeof(double);

    return hash_bytes_extended((const unsigned char *)row.content, (int)(plane->points.d * value_bytes), seed);
}

/* A number from 0 to 1 that tells nothing about the order of keys. */
static double chance_of(uint64 key)
{
    return (double)(key * UINT64CONST(0x9E3779B97F4A7C15) >> 11) * 0x1p-53;
}

/* Rows that a cell keeps. */
static double kept(const Cell *cell, double factor)
{
    return Min((double)cell->rows, Max(1.0, factor * sqrt((double)cell->rows)));
}

/* The factor by which all cells together keep so many rows. */
static double find_factor(const Cells *cells, int32 wanted)
{
    double low = 0;
    double high = wanted;

    for (int step = 0; step < 60; ++step) {
        const double factor = (low + high) / 2;
        double sum = 0;

        for (int32 i = 0; i < cells->count; ++i)
            if (cells->cells[i].rows > 0)
                sum += kept(&cells->cells[i], factor);
        if (sum > wanted)
            high = factor;
        else
            low = factor;
    }
    return low;
}

static int compare_dots(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(SampleDot));
}

/* Sorts the dots, in any order that all runs share, and leaves equal ones out. */
static void unite_dots(Sample *sample)
{
    int64 n = 0;

    qsort(sample->dots, sample->n, sizeof(SampleDot), compare_dots);
    for (int64 i = 0; i < sample->n; ++i)
        if (i == 0 || compare_dots(&sample->dots[i], &sample->dots[n - 1]) != 0)
            sample->dots[n++] = sample->dots[i];
    sample->n = n;
}

static int compare_layers(const void *a, const void *b)
{
    const SampleDot *const left = (const SampleDot *)a;
    const SampleDot *const right = (const SampleDot *)b;

    if (left->layer != right->layer)
        return left->layer < right->layer ? -1 : 1;
    if (left->cluster != right->cluster)
        return left->cluster < right->cluster ? -1 : 1;
    if (left->y != right->y)
        return left->y < right->y ? -1 : 1;
    return left->x < right->x ? -1 : left->x > right->x;
}

void sample_take(Sample *sample, const Plane *plane, const PlotAxis *x, const PlotAxis *y, int32 wanted, uint64 seed)
{
    const bool all = plane->points.n <= wanted;
    int64 capacity = all ? plane->points.n : 4 * (int64)wanted;
    double factor = 0;
    Cells cells;

    cells_create(&cells, x, y, wanted);
    if (!all) {
        plane_each(plane, [&](const PlaneRow &row) {
            Cell *const cell = (Cell *)cell_at(&cells, axis_place(x, row.at[0]), axis_place(y, row.at[1]));

            ++cell->rows;
            cell->least = Min(cell->least, key_of(plane, row, seed));
        });
        factor = find_factor(&cells, wanted);
    }
    sample->n = 0;
    sample->dots = (SampleDot *)palloc(capacity * sizeof(SampleDot));
    plane_each(plane, [&](const PlaneRow &row) {
        const double place_x = axis_place(x, row.at[0]);
        const double place_y = axis_place(y, row.at[1]);
        const uint64 key = key_of(plane, row, seed);

        if (!all) {
            const Cell *const cell = cell_at(&cells, place_x, place_y);

            /* The least key stays, and each other one by the same chance. */
            if (key != cell->least && chance_of(key) * (double)(cell->rows - 1) >= kept(cell, factor) - 1)
                return;
        }
        if (sample->n == capacity) {
            unite_dots(sample);
            if (sample->n > capacity / 2) {
                capacity *= 2;
                sample->dots = (SampleDot *)repalloc_huge(sample->dots, capacity * sizeof(SampleDot));
            }
        }
        sample->dots[sample->n++] = {(int32)(key % SAMPLE_LAYERS), row.cluster, (int32)lround(place_x * 10),
                                     (int32)lround(place_y * 10)};
    });
    unite_dots(sample);
    qsort(sample->dots, sample->n, sizeof(SampleDot), compare_layers);
    pfree(cells.cells);
}

/* Sums of weights, and of places times weights, as integers: they do not depend on the order. */
struct ClusterSum {
    int128 mass;
    int128 x;
    int128 y;
};

void sample_means(const Plane *plane, const PlotAxis *x, const PlotAxis *y, double *mean_x, double *mean_y)
{
    ClusterSum *const sums =
        (ClusterSum *)palloc_extended(plane->n_clusters * sizeof(ClusterSum), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
    double heaviest = 0;

    for (int64 i = 0; plane->points.weights != NULL && i < plane->points.n; ++i)
        heaviest = Max(heaviest, plane->points.weights[i]);

    const double unit = heaviest > 0 ? heaviest : 1;

    plane_each(plane, [&](const PlaneRow &row) {
        if (row.cluster < 0)
            return;

        const int64 mass = Max((int64)rint(row.weight / unit * 0x1p30), (int64)1);
        ClusterSum *const sum = &sums[row.cluster];

        sum->mass += mass;
        sum->x += (int128)llrint(axis_place(x, row.at[0]) * 0x1p20) * mass;
        sum->y += (int128)llrint(axis_place(y, row.at[1]) * 0x1p20) * mass;
    });
    for (int32 j = 0; j < plane->n_clusters; ++j) {
        const double mass = (double)Max(sums[j].mass, (int128)1);

        mean_x[j] = (double)sums[j].x / mass * 0x1p-20;
        mean_y[j] = (double)sums[j].y / mass * 0x1p-20;
    }
    pfree(sums);
}
