/*
 * svg.h - the text of a picture, SVG 1.1: its card, texts, marks and axes.
 *
 * A picture is a StringInfo that grows. All of it is ASCII but for names that the user gave, so that it is valid in
 * every encoding of a database. Lengths are in pixels; y grows downwards. The card is opaque: light, or dark where the
 * reader prefers that, so that it can be read on any page.
 */
#ifndef PGKM_PG_PLOT_SVG_H
#define PGKM_PG_PLOT_SVG_H

#include "pg/compat.h"

extern "C" {
#include "lib/stringinfo.h"
}

/* Colours in attributes: fill or stroke, with the class that turns them dark. */
#define PLOT_INK "class=\"pgkm-ink\" fill=\"#24292f\""
#define PLOT_SOFT "class=\"pgkm-soft\" fill=\"#57606a\""

/* What all pictures are told. */
struct PlotFrame {
    int32 width;
    int32 height;
    const char *title; /* NULL: the picture's own; empty: none */
};

struct PlotBox {
    double left;
    double top;
    double right;
    double bottom;
};

/* Reads width, height and title, arguments `number` and the next two. 22023 when a size is out of range. */
void plot_frame_arguments(PlotFrame *frame, FunctionCallInfo fcinfo, int number);

/* Argument `number`, an integer from least to most; its default where it is NULL. 22023. */
int32 plot_int_argument(FunctionCallInfo fcinfo, int number, const char *name, int32 least, int32 most, int32 usual);

/* What title and subtitle leave of the card. */
PlotBox plot_box(const PlotFrame *frame);
/* Begins the card with its title, for which `title` is the picture's own, and a line below that. */
void plot_begin(StringInfo svg, const PlotFrame *frame, const char *title, const char *subtitle);
/* Ends it: the text datum. */
Datum plot_end(StringInfo svg);

/* "1,234,567". Palloc'd. */
char *plot_count(int64 count);

/* A text, cut where it is wider than `room`. `anchor` is start, middle or end. */
void plot_text(StringInfo svg, double x, double y, const char *anchor, double font, const char *words, double room);
/* How wide usual fonts draw it, about. */
double plot_text_width(const char *words, double font);

/* The mark of cluster `i`, from 0: a colour, and after each 7 clusters another shape; or of what has no cluster. */
#define PLOT_NO_CLUSTER (-1)
const char *plot_colour(int64 i);
/* Marks of one cluster: begins a path, adds a mark, ends the path. */
void plot_marks_begin(StringInfo svg, int64 i, bool large);
void plot_mark(StringInfo svg, int64 i, bool large, double x, double y);
void plot_marks_end(StringInfo svg);

/* What the labels and the name of a vertical axis take, left of it; and those of a horizontal one, below it. */
#define AXIS_WIDTH 84
#define AXIS_HEIGHT 40

struct PlotAxis {
    const char *name; /* with what was taken from all values, if anything was */
    double low;       /* the values at its ends */
    double high;
    double begin; /* where the ends are on the card */
    double end;
    int n_ticks;
    double first; /* tick */
    double step;
    double origin; /* what labels are less by */
};

/* An axis for values from low to high, with round ticks: at whole numbers, if they are `whole`. */
void axis_make(PlotAxis *axis, const char *name, double low, double high, double begin, double end, bool whole);

static inline double axis_place(const PlotAxis *axis, double value)
{
    return axis->begin + (value - axis->low) / (axis->high - axis->low) * (axis->end - axis->begin);
}

static inline double axis_tick(const PlotAxis *axis, int i)
{
    return axis->first + i * axis->step;
}

/* Draws both axes of a box: grid, frame, labels, names. */
void axes_draw(StringInfo svg, const PlotAxis *x, const PlotAxis *y);

#endif
