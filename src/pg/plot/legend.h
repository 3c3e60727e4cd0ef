/*
 * legend.h - what stands for the clusters of a plot: a legend with their sizes, and numbers at their means.
 */
#ifndef PGKM_PG_PLOT_LEGEND_H
#define PGKM_PG_PLOT_LEGEND_H

#include "pg/plot/axis.h"
#include "pg/plot/plane.h"

/* Clusters that get numbers; of more only small marks are drawn, and of still more none. */
#define LEGEND_MOST_NUMBERS 100
#define LEGEND_MOST_MARKS 1000

struct PlotLegend {
    const Plane *plane;
    const char *heading; /* of the labels */
    int32 entries;       /* that it has place for, the last one for those that it leaves out */
    int32 rows;          /* entries below each other */
    double line;         /* height of one */
    double label_width;
    double count_width;
};

/* Chooses colours and shapes of the clusters, whose means lie at x and y: clusters of one colour lie apart. */
void styles_choose(Plane *plane, const double *x, const double *y);

/* A legend of the clusters for a plot of this height; it takes at most `room` pixels of width. */
void legend_make(PlotLegend *legend, const Plane *plane, const char *heading, double height, double room);
double legend_width(const PlotLegend *legend);
void legend_draw(StringInfo svg, const PlotLegend *legend, double left, double top);

/* The numbers of the clusters at their means, apart from each other: a number that finds its place taken stands beside
 * it, and a line leads to the mean. */
void numbers_draw(StringInfo svg, const Plane *plane, const PlotBox *box, const double *x, const double *y);

#endif
