/*
 * curve.cpp - a small plot of one line.
 */
#include "pg/plot/curve.h"

#include <cmath>

/* Values more than this have no dots of their own. */
#define MOST_DOTS 60

/* The place of the best value, the first of several; -1 where none is to be marked or defined. */
static int64 best_of(const PlotCurve *curve)
{
    int64 best = -1;

    if (curve->best == 0)
        return -1;
    for (int64 i = 0; i < curve->n; ++i)
        if (std::isfinite(curve->y[i]) && (best < 0 || curve->y[i] * curve->best > curve->y[best] * curve->best))
            best = i;
    return best;
}

static void draw_line(StringInfo svg, const PlotCurve *curve, const PlotAxis *x, const PlotAxis *y)
{
    bool drawn = false;

    appendStringInfo(svg,
                     "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-linejoin=\"round\" "
                     "stroke-linecap=\"round\" d=\"",
                     svg_colour(curve->colour));
    for (int64 i = 0; i < curve->n; ++i) {
        if (!std::isfinite(curve->y[i])) {
            drawn = false;
            continue;
        }
        appendStringInfoChar(svg, drawn ? 'L' : 'M');
        svg_point(svg, axis_place(x, curve->x[i]), axis_place(y, curve->y[i]));
        drawn = true;
    }
    appendStringInfoString(svg, "\"/>\n");
    if (curve->n > MOST_DOTS)
        return;
    /* The first shape, the disc, in that colour. */
    svg_dots_begin(svg, curve->colour, 3.2);
    for (int64 i = 0; i < curve->n; ++i)
        if (std::isfinite(curve->y[i]))
            svg_dot(svg, curve->colour, 3.2, axis_place(x, curve->x[i]), axis_place(y, curve->y[i]));
    svg_dots_end(svg);
}

/* A ring around the best value, and its k. */
static void mark_best(StringInfo svg, const PlotCurve *curve, const PlotAxis *x, const PlotAxis *y)
{
    const int64 best = best_of(curve);

    if (best < 0)
        return;

    const double place_x = axis_place(x, curve->x[best]);
    const double place_y = axis_place(y, curve->y[best]);
    const char *const words = psprintf("%s = %.0f", curve->x_name, curve->x[best]);
    const double half = svg_text_width(words, 11) / 2;
    const double text_x = Min(Max(place_x, x->begin + half + 4), x->end - half);
    const double text_y = curve->best > 0 ? place_y - 10 : place_y + 19;

    appendStringInfo(svg, "<circle fill=\"none\" stroke=\"%s\" stroke-width=\"2\" cx=\"", svg_colour(3));
    svg_length(svg, place_x);
    appendStringInfoString(svg, "\" cy=\"");
    svg_length(svg, place_y);
    appendStringInfoString(svg, "\" r=\"6\"/>\n<g " PLOT_INK " font-weight=\"bold\">");
    svg_text(svg, text_x, text_y, "middle", words, 11, INFINITY);
    appendStringInfoString(svg, "</g>\n");
}

/* The vertical axis of a curve; whether any value of the curve is defined. */
static bool make_y(PlotAxis *y, const PlotBox *box, const PlotCurve *curve)
{
    double low = INFINITY;
    double high = -INFINITY;

    for (int64 i = 0; i < curve->n; ++i)
        if (std::isfinite(curve->y[i])) {
            low = Min(low, curve->y[i]);
            high = Max(high, curve->y[i]);
        }

    const bool defined = low <= high;
    /* Below or above the line there is room for the mark of the best value. */
    const double room = defined ? (high / 2 - low / 2) * 0.3 : 0;

    axis_make(y, "", defined ? low - (curve->best < 0 ? room : 0) : 0,
              defined ? high + (curve->best > 0 ? room : 0) : 1, box->bottom, box->top + 20, 45, AXIS_VALUES);
    return defined;
}

double curve_indent(const PlotBox *box, const PlotCurve *curve)
{
    PlotAxis y;

    make_y(&y, box, curve);
    y.name = "";
    return axis_width(&y);
}

void curve_draw(StringInfo svg, const PlotBox *box, const PlotCurve *curve)
{
    PlotAxis x;
    PlotAxis y;
    const bool defined = make_y(&y, box, curve);

    appendStringInfoString(svg, "<g " PLOT_INK ">");
    svg_text(svg, box->left, box->top + 8, "start",
             y.name[0] == '\0' ? curve->name : psprintf("%s%s", curve->name, y.name), 12, box->right - box->left);
    appendStringInfoString(svg, "</g>\n");
    y.name = "";
    axis_make(&x, curve->x_name, curve->x[0], curve->x[curve->n - 1], box->left + Max(axis_width(&y), curve->indent),
              box->right, 55, AXIS_WHOLE);
    y.begin = box->bottom - axis_height(&x);
    axes_draw(svg, &x, &y);
    if (defined) {
        draw_line(svg, curve, &x, &y);
        mark_best(svg, curve, &x, &y);
        return;
    }
    appendStringInfoString(svg, "<g " PLOT_SOFT ">");
    svg_text(svg, (x.begin + x.end) / 2, (y.begin + y.end) / 2, "middle", "not defined", 11, INFINITY);
    appendStringInfoString(svg, "</g>\n");
}
