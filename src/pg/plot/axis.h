/*
 * axis.h - an axis with round tick marks.
 */
#ifndef PGKM_PG_PLOT_AXIS_H
#define PGKM_PG_PLOT_AXIS_H

#include "pg/plot/svg.h"

#define AXIS_MOST_TICKS 16

struct PlotAxis {
    const char *name; /* with what was taken from all values, if anything was */
    double low;       /* the values at its ends */
    double high;
    double begin; /* where the ends are on the card */
    double end;
    int n_ticks;
    double ticks[AXIS_MOST_TICKS];
    const char *labels[AXIS_MOST_TICKS];
    double label_width; /* of the widest */
};

enum AxisKind {
    AXIS_VALUES, /* some room at both ends */
    AXIS_WHOLE,  /* the same, ticks at whole numbers */
    AXIS_COUNTS  /* from 0, at whole numbers */
};

/* An axis for values from low to high, with about one tick for so many pixels. begin and end may change after it. */
void axis_make(PlotAxis *axis, const char *name, double low, double high, double begin, double end, double apart,
               AxisKind kind);

/* Where a value is: halves, since the difference of two large values may have no number. */
static inline double axis_place(const PlotAxis *axis, double value)
{
    return axis->begin + (value / 2 - axis->low / 2) / (axis->high / 2 - axis->low / 2) * (axis->end - axis->begin);
}

/* Width of a vertical axis left of its plot: labels and, if it has one, the name. */
double axis_width(const PlotAxis *axis);
/* Height of a horizontal one below it. */
double axis_height(const PlotAxis *axis);

/* Draws both axes of a box: grid, frame, labels, names. */
void axes_draw(StringInfo svg, const PlotAxis *x, const PlotAxis *y);

#endif
