/*
 * sample.h - which rows a picture shows, and where: a sample that follows their density.
 *
 * Few rows are all drawn. Of many, the plane is cut into cells. A cell of c rows keeps about f sqrt(c) of them, at
 * least one, so that dense places are thinned and single rows stay. f makes the sample as large as is asked for. Which
 * rows stay is decided by a hash of their features and the seed. So it depends on the set of rows, and not on their
 * order.
 */
#ifndef PGKM_PG_PLOT_SAMPLE_H
#define PGKM_PG_PLOT_SAMPLE_H

#include "pg/plot/plane.h"
#include "pg/plot/svg.h"

struct SampleDot {
    int32 turn;    /* dots are drawn in a few turns, of all clusters each, so that no cluster hides another */
    int32 cluster; /* a place in Plane.clusters, or PLOT_NO_CLUSTER */
    int32 x;       /* on the card, in tenths of a pixel */
    int32 y;
};

/* About `wanted` of the rows, as they lie between the axes, by turn and cluster; their number goes to *count. Rows that
 * would be drawn at the same place are one dot. */
SampleDot *sample_take(const Plane *plane, const PlotAxis *x, const PlotAxis *y, int32 wanted, uint64 seed,
                       int64 *count);

#endif
