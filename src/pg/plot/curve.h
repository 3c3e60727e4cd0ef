/*
 * curve.h - a small plot of one line.
 */
#ifndef PGKM_PG_PLOT_CURVE_H
#define PGKM_PG_PLOT_CURVE_H

#include "pg/plot/axis.h"

struct PlotCurve {
    const char *name; /* above the plot; what is better is part of it */
    const char *x_name;
    int64 n;
    const double *x; /* n whole numbers, ascending */
    const double *y; /* n; NaN: not defined there */
    int best;        /* 1: the largest value is marked, -1: the least, 0: none */
    int64 colour;
    double indent; /* least width of what is left of the plot */
};

/* Width of what is left of the plot, of curves that shall be aligned. */
double curve_indent(const PlotBox *box, const PlotCurve *curve);

/* Draws it into the box, axes included. */
void curve_draw(StringInfo svg, const PlotBox *box, const PlotCurve *curve);

#endif
