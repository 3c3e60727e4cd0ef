/*
 * svg.h - text of an SVG 1.1 picture: the card that all plots are drawn on, texts, numbers, colours and markers.
 *
 * A plot is a StringInfo that grows. All of it is ASCII but for names that the user gave, so that it is valid in
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
#define PLOT_GRID "class=\"pgkm-grid\" stroke=\"#e4e8ec\""
#define PLOT_FRAME "class=\"pgkm-frame\" stroke=\"#afb8c1\""
#define PLOT_CARD "class=\"pgkm-card\" fill=\"#ffffff\""

/* Okabe and Ito's colours without yellow, which white swallows, and with grey for black, which dark does. */
#define PLOT_COLOURS 7
#define PLOT_SHAPES 6

/* What all plots are told. */
struct PlotFrame {
    int32 width;
    int32 height;
    const char *title; /* NULL: the plot's own; empty: none */
};

struct PlotBox {
    double left;
    double top;
    double right;
    double bottom;
};

/* Reads width, height and title, arguments `number` and the next two. 22023 when a size is out of range. */
void plot_frame_arguments(PlotFrame *frame, FunctionCallInfo fcinfo, int number);

/* A copy of a user's text, with blanks for the two control characters that stand for signs of ours. */
const char *plot_user_text(const char *text);

/* Argument `number`, an integer from least to most; its default where it is NULL. 22023. */
int32 plot_int_argument(FunctionCallInfo fcinfo, int number, const char *name, int32 least, int32 most, int32 usual);

/* Where the card goes on below its title and the line under that, from the top. */
double svg_top(const PlotFrame *frame);
/* Begins the card with both. `title` is the plot's own. */
void svg_begin(StringInfo svg, const PlotFrame *frame, const char *title, const char *subtitle);
/* Ends it: the text datum. */
Datum svg_end(StringInfo svg);

/* A length, to a tenth of a pixel. */
void svg_length(StringInfo svg, double value);
/* A pair of them: "x y". */
void svg_point(StringInfo svg, double x, double y);

/* A text of ours, or one of plot_user_text(): escaped, and cut with an ellipsis where it is wider than `room`. */
void svg_words(StringInfo svg, const char *words, double font, double room);
/* A whole text element. `anchor` is start, middle or end. */
void svg_text(StringInfo svg, double x, double y, const char *anchor, const char *words, double font, double room);
/* How wide a text is, about. */
double svg_text_width(const char *words, double font);

/* A line. The element around it has its colour. */
void svg_line(StringInfo svg, double x1, double y1, double x2, double y2);

/* The colour of cluster number `i`, from 0: "#rrggbb". */
const char *svg_colour(int64 i);

/* Dots of cluster i: begins a path, adds a dot, ends the path. All have the radius `r`. */
void svg_dots_begin(StringInfo svg, int64 i, double r);
void svg_dot(StringInfo svg, int64 i, double r, double x, double y);
void svg_dots_end(StringInfo svg);

/* A number for people: digits by threes, as many decimals; or with an exponent where it is very large or
 * small. Palloc'd. */
char *plot_number(double value, int decimals);
char *plot_short_number(double value);

#endif
