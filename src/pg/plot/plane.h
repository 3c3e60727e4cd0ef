/*
 * plane.h - rows as points of a plane, with the cluster of each.
 *
 * One feature or two are the coordinates themselves. Of more, the coordinates are the first two principal components.
 * Coordinates are not stored: each pass over the rows computes them anew.
 *
 * Few rows are all drawn; of many a sample that follows their density. The plane is cut into cells. A cell of c rows
 * keeps about f sqrt(c) of them, at least one, so that dense places are thinned and single rows stay. f makes the
 * sample as large as is asked for. Which rows stay is decided by a hash of their features and the seed. So it depends
 * on the set of rows, and not on their order.
 */
#ifndef PGKM_PG_PLOT_PLANE_H
#define PGKM_PG_PLOT_PLANE_H

#include "pg/plot/svg.h"
#include "pg/table/call.h"

extern "C" {
#include "miscadmin.h"
}

/* More clusters are error 54000: no picture shows them. */
#define PLANE_MOST_CLUSTERS 100000

/* Rows that belong together: a cluster of a fit, or rows of one label in the table. */
struct PlaneCluster {
    int64 label;
    int64 rows;
};

struct Plane {
    PgkmPoints points;
    int n_axes; /* 1 or 2 */
    const char *names[2];
    double *mean;          /* a coordinate is the product of a row less this one */
    double *directions[2]; /* and a direction; d values each */
    double low[2];
    double high[2];
    int32 n_clusters;
    PlaneCluster *clusters;  /* by label, ascending */
    const int32 *cluster_of; /* each row's place among them; negative: it has none */
    int64 no_cluster;        /* rows without a cluster */
};

/* Chooses the axes for the call's rows, of which at least one is used. The request of the call is complete. Errors as
 * of pgkm_run_job. */
void plane_axes(Plane *plane, TableCall *call);

/* 54000 for more clusters than PLANE_MOST_CLUSTERS. */
void plane_check_clusters(int64 clusters);

/* Finds the clusters, their rows, and the ranges of the axes. The clusters are those of a fit, which tells each row's;
 * or, where that is NULL, the labels of the table that used rows have, which are numbered. */
void plane_clusters(Plane *plane, const PgkmResult *fit, TableRows *rows);

/* Coordinates of a row; the second one is 0 where there is one axis. */
void plane_place(const Plane *plane, int64 row, double *at);

/* Calls visit(row, at) for each row. */
template <typename Visit>
static inline void plane_each(const Plane *plane, Visit visit)
{
    for (int64 row = 0; row < plane->points.n; ++row) {
        double at[2];

        CHECK_FOR_INTERRUPTS();
        plane_place(plane, row, at);
        visit(row, at);
    }
}

struct PlaneDot {
    int32 turn;    /* dots are drawn in a few turns, of all clusters each, so that no cluster hides another */
    int32 cluster; /* a place in Plane.clusters, or PLOT_NO_CLUSTER */
    int32 x;       /* on the card, in tenths of a pixel */
    int32 y;
};

/* About `wanted` of the rows, as they lie between the axes, by turn and cluster; their number goes to *count. Rows that
 * would be drawn at the same place are one dot. */
PlaneDot *plane_sample(const Plane *plane, const PlotAxis *x, const PlotAxis *y, int32 wanted, uint64 seed,
                       int64 *count);

#endif
