/*
 * plane.cpp - rows as points of a plane, with the cluster of each, and a sample of them.
 */
#include "pg/plot/plane.h"

#include <algorithm>
#include <cmath>
#include <tuple>

extern "C" {
#include "common/hashfn.h"
#include "utils/hsearch.h"
}

template <typename Value>
static void place_row(const Plane *plane, const Value *row, double *at)
{
    at[0] = at[1] = 0;
    for (int32 j = 0; j < plane->points.d; ++j) {
        at[0] += ((double)row[j] - plane->mean[j]) * plane->directions[0][j];
        at[1] += ((double)row[j] - plane->mean[j]) * plane->directions[1][j];
    }
}

void plane_place(const Plane *plane, int64 row, double *at)
{
    const int64 first = row * plane->points.d;

    if (plane->points.element == PGKM_FLOAT32)
        place_row(plane, (const float *)plane->points.values + first, at);
    else
        place_row(plane, (const double *)plane->points.values + first, at);
}

static void use_components(Plane *plane, TableCall *call)
{
    PgkmRequest request = call->request;
    PgkmJobHolder *job = NULL;

    request.algorithm = PGKM_PCA;
    request.points.weights = NULL;
    memset(&request.pca, 0, sizeof request.pca);
    request.pca.n_components = 2;
    request.pca.standardize = call->request.kmeans.standardize;

    const PgkmResult *const result = pgkm_run_job(&request, call->context, &job, NULL);

    memcpy(plane->mean, result->mean, result->d * sizeof(double));
    for (int32 i = 0; i < 2; ++i) {
        /* Rows that span no second direction have one component, and each row is at 0 of another. */
        const bool found = i < result->k;

        plane->names[i] = psprintf("component %d (%.1f %% of the variance)", i + 1,
                                   found ? 100 * result->explained_variance_ratio[i] : 0.0);
        /* Components of the same rows in another order differ in their last digits. Places on the card shall not. */
        for (int32 j = 0; found && j < result->d; ++j)
            plane->directions[i][j] = rint(result->components[(Size)i * result->d + j] * 0x1p36) * 0x1p-36 /
                                      (request.pca.standardize ? result->scale[j] : 1);
    }
    pgkm_release_job(job);
}

void plane_axes(Plane *plane, TableCall *call)
{
    const int32 d = call->request.points.d;

    plane->points = call->request.points;
    plane->n_axes = Min(d, 2);
    plane->mean = (double *)palloc0(3 * d * sizeof(double));
    plane->directions[0] = plane->mean + d;
    plane->directions[1] = plane->mean + 2 * d;
    if (d > 2)
        use_components(plane, call);
    for (int32 i = 0; d <= 2 && i < d; ++i) {
        plane->directions[i][i] = 1;
        plane->names[i] = table_feature_name(call, i);
    }
}

void plane_check_clusters(int64 clusters)
{
    if (clusters > PLANE_MOST_CLUSTERS)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("kmeans_plot draws at most %d clusters", PLANE_MOST_CLUSTERS)));
}

static void use_fit(Plane *plane, const PgkmResult *fit)
{
    plane_check_clusters(fit->k); /* a radius may have asked for more */
    plane->n_clusters = fit->k;
    plane->cluster_of = fit->labels;
    plane->clusters = (PlaneCluster *)palloc(fit->k * sizeof(PlaneCluster));
    for (int32 j = 0; j < fit->k; ++j)
        plane->clusters[j] = {j, 0};
}

static void use_labels(Plane *plane, TableRows *rows)
{
    int64 *labels;
    int64 count;

    plane->cluster_of = table_rows_number_labels(rows, 0, &labels, &count);
    plane_check_clusters(count);
    plane->n_clusters = (int32)count;
    plane->clusters = (PlaneCluster *)palloc((count + 1) * sizeof(PlaneCluster));
    for (int32 j = 0; j < count; ++j)
        plane->clusters[j] = {labels[j], 0};
}

void plane_clusters(Plane *plane, const PgkmResult *fit, TableRows *rows)
{
    if (fit != NULL)
        use_fit(plane, fit);
    else
        use_labels(plane, rows);
    for (int i = 0; i < 2; ++i) {
        plane->low[i] = INFINITY;
        plane->high[i] = -INFINITY;
    }
    plane_each(plane, [plane](int64 row, const double *at) {
        for (int i = 0; i < 2; ++i) {
            plane->low[i] = Min(plane->low[i], at[i]);
            plane->high[i] = Max(plane->high[i], at[i]);
        }
        if (plane->cluster_of[row] < 0)
            ++plane->no_cluster;
        else
            ++plane->clusters[plane->cluster_of[row]].rows;
    });
}

/* --- the sample --- */

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

PlaneDot *plane_sample(const Plane *plane, const PlotAxis *x, const PlotAxis *y, int32 wanted, uint64 seed,
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
    control.keysize = control.entrysize = sizeof(PlaneDot);
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
        const PlaneDot dot = {(int32)(key % TURNS), Max(plane->cluster_of[row], PLOT_NO_CLUSTER),
                              (int32)lround(place_x * 10), (int32)lround(place_y * 10)};

        /* The row of the least key stays, and each other one by the same chance. */
        if (key == cell->least || chance * (double)(cell->rows - 1) < kept(cell, factor) - 1)
            (void)hash_search(all, &dot, HASH_ENTER, NULL);
    });

    PlaneDot *const dots = (PlaneDot *)palloc((hash_get_num_entries(all) + 1) * sizeof(PlaneDot));

    *count = 0;
    hash_seq_init(&status, all);
    while (const void *const dot = hash_seq_search(&status))
        dots[(*count)++] = *(const PlaneDot *)dot;
    std::sort(dots, dots + *count, [](const PlaneDot &a, const PlaneDot &b) {
        return std::tie(a.turn, a.cluster, a.y, a.x) < std::tie(b.turn, b.cluster, b.y, b.x);
    });
    return dots;
}
