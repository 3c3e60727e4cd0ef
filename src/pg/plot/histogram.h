/*
 * histogram.h - rows of one feature as bars: how many rows of each cluster have about the same value.
 */
#ifndef PGKM_PG_PLOT_HISTOGRAM_H
#define PGKM_PG_PLOT_HISTOGRAM_H

#include "pg/plot/axis.h"
#include "pg/plot/plane.h"

struct Histogram {
    int32 bins;
    int32 series;  /* clusters with bars of their own, and one for all others and rows without a cluster */
    int64 *counts; /* bins x series */
    int64 highest; /* rows of a bin, at most */
};

/* Counts the rows in bins between the least and the greatest value. */
void histogram_count(Histogram *histogram, const Plane *plane, int32 bins);

/* Draws stacked bars, and the numbers of the clusters above them. Chooses the colours of the clusters. */
void histogram_draw(StringInfo svg, const Histogram *histogram, Plane *plane, const PlotAxis *x, const PlotAxis *y);

#endif
