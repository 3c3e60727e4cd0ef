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

#include "pg/plot/axis.h"
#include "pg/plot/plane.h"

/* Dots are drawn in so many turns, of all clusters each, so that no cluster hides another. */
#define SAMPLE_LAYERS 4

struct SampleDot {
    int32 layer;
    int32 cluster;
    int32 x; /* on the card, in tenths of a pixel */
    int32 y;
};

struct Sample {
    int64 n;
    SampleDot *dots; /* by layer, then by cluster */
};

/* About `wanted` of the rows, as they lie between the axes. Rows that would be drawn at the same place are one dot. */
void sample_take(Sample *sample, const Plane *plane, const PlotAxis *x, const PlotAxis *y, int32 wanted, uint64 seed);

/* Means of the clusters on the card, by weight; x and y have a value for each. They do not depend on the order of rows.
 */
void sample_means(const Plane *plane, const PlotAxis *x, const PlotAxis *y, double *mean_x, double *mean_y);

#endif
