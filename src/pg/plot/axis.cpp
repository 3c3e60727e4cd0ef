/*
 * axis.cpp - an axis with round tick marks.
 */
#include "pg/plot/axis.h"

#include <cmath>

/* Values nearer to 0, and to each other, are drawn as 0: their differences could not be divided. */
#define LEAST_RANGE 1e-290

/* 1, 2 or 5 times a power of ten: about `raw`. */
static double round_step(double raw, bool whole)
{
    const double power = pow(10, floor(log10(raw)));
    const double digits = raw / power;
    const double step = (digits < 1.5 ? 1 : digits < 3.5 ? 2 : digits < 7.5 ? 5 : 10) * power;

    return whole ? Max(step, 1.0) : step;
}

/* Some room for what lies at the ends; more where all values are equal. */
static void widen(PlotAxis *axis, AxisKind kind)
{
    double room = (axis->high / 2 - axis->low / 2) * 0.08;

    if (room < LEAST_RANGE && fabs(axis->low) < LEAST_RANGE)
        axis->low = axis->high = room = 0;
    if (!(room > 0) || axis->low + room == axis->low)
        room = kind == AXIS_WHOLE || axis->low == 0 ? 0.5 : fabs(axis->low) / 2;
    if (kind == AXIS_COUNTS)
        axis->high = Max(axis->high * 1.06, 1.0);
    else {
        axis->low -= room;
        axis->high += room;
    }
}

/* Decimals that tell multiples of a step apart. */
static int decimals_of(double step)
{
    return Max(0, -(int)floor(log10(step) + 1e-9));
}

/* The same number without zeros at the end of its decimals. */
static char *trimmed(char *number)
{
    char *last = number + strlen(number) - 1;

    if (strchr(number, '.') == NULL)
        return number;
    while (*last == '0')
        --last;
    last[*last == '.' ? 0 : 1] = '\0';
    return number;
}

/* "1.2e8": as many decimals as tell multiples of the step apart. */
static const char *exponent_label(double value, double step)
{
    const int exponent = (int)floor(log10(fabs(value)) + 1e-9);
    const double power = pow(10, exponent);

    return psprintf("%se%d", trimmed(plot_number(value / power, decimals_of(step / power))), exponent);
}

static void label_ticks(PlotAxis *axis, double origin, double step)
{
    const double largest = Max(fabs(axis->ticks[0] - origin), fabs(axis->ticks[axis->n_ticks - 1] - origin));
    const bool plain = largest < 1e7 && step > 0.9e-4;

    for (int i = 0; i < axis->n_ticks; ++i) {
        const double value = axis->ticks[i] - origin;

        if (fabs(value) < step / 2)
            axis->labels[i] = "0";
        else
            axis->labels[i] = plain ? plot_number(value, decimals_of(step)) : exponent_label(value, step);
        axis->label_width = Max(axis->label_width, svg_text_width(axis->labels[i], 11));
    }
}

void axis_make(PlotAxis *axis, const char *name, double low, double high, double begin, double end, double apart,
               AxisKind kind)
{
    memset(axis, 0, sizeof *axis);
    axis->name = name;
    axis->low = low;
    axis->high = high;
    axis->begin = begin;
    axis->end = end;
    widen(axis, kind);

    const double wanted = Min(Max(fabs(end - begin) / apart, 2.0), AXIS_MOST_TICKS / 2.0);
    const double step = round_step((axis->high / 2 - axis->low / 2) / wanted * 2, kind != AXIS_VALUES);
    const double first = ceil(axis->low / step);

    for (int i = 0; i < AXIS_MOST_TICKS && (first + i) * step <= axis->high; ++i)
        if (i == 0 || (first + i) * step > axis->ticks[axis->n_ticks - 1])
            axis->ticks[axis->n_ticks++] = (first + i) * step;
    if (axis->n_ticks == 0)
        return;

    /* Far from 0 labels show what lies above the first tick. */
    const bool far = Max(fabs(axis->low), fabs(axis->high)) > 1e6 * step;
    const double origin = far ? axis->ticks[0] : 0;

    label_ticks(axis, origin, step);
    if (far)
        axis->name = psprintf("%s %s %s", name, origin < 0 ? "+" : "\x1e",
                              fabs(origin) < 1e16 ? trimmed(plot_number(fabs(origin), Min(decimals_of(step), 15)))
                                                  : psprintf("%.15g", fabs(origin)));
}

double axis_width(const PlotAxis *axis)
{
    return axis->label_width + 8 + (axis->name[0] == '\0' ? 0 : 20);
}

double axis_height(const PlotAxis *axis)
{
    return axis->name[0] == '\0' ? 20 : 40;
}

static void draw_grid(StringInfo svg, const PlotAxis *x, const PlotAxis *y)
{
    appendStringInfoString(svg, "<g fill=\"none\" " PLOT_GRID ">");
    for (int i = 0; i < x->n_ticks; ++i)
        svg_line(svg, axis_place(x, x->ticks[i]), y->begin, axis_place(x, x->ticks[i]), y->end);
    for (int i = 0; i < y->n_ticks; ++i)
        svg_line(svg, x->begin, axis_place(y, y->ticks[i]), x->end, axis_place(y, y->ticks[i]));
    appendStringInfoString(svg, "</g>\n<g fill=\"none\" " PLOT_FRAME "><path d=\"M");
    svg_point(svg, x->begin, y->end);
    appendStringInfoChar(svg, 'L');
    svg_point(svg, x->begin, y->begin);
    appendStringInfoChar(svg, 'L');
    svg_point(svg, x->end, y->begin);
    appendStringInfoString(svg, "\"/></g>\n");
}

void axes_draw(StringInfo svg, const PlotAxis *x, const PlotAxis *y)
{
    const double middle = (y->begin + y->end) / 2;
    const double name_x = x->begin - axis_width(y) + 10;
    double free_from = -INFINITY;

    draw_grid(svg, x, y);
    appendStringInfoString(svg, "<g " PLOT_SOFT ">");
    for (int i = 0; i < x->n_ticks; ++i) {
        const double place = axis_place(x, x->ticks[i]);
        const double half = svg_text_width(x->labels[i], 11) / 2;

        if (place - half < free_from)
            continue;
        svg_text(svg, place, y->begin + 16, "middle", x->labels[i], 11, INFINITY);
        free_from = place + half + 8;
    }
    for (int i = 0; i < y->n_ticks; ++i)
        svg_text(svg, x->begin - 7, axis_place(y, y->ticks[i]) + 4, "end", y->labels[i], 11, INFINITY);
    appendStringInfoString(svg, "</g>\n<g " PLOT_INK ">");
    if (x->name[0] != '\0')
        svg_text(svg, (x->begin + x->end) / 2, y->begin + 36, "middle", x->name, 12, x->end - x->begin);
    if (y->name[0] != '\0') {
        appendStringInfoString(svg, "<g transform=\"translate(");
        svg_point(svg, name_x, middle);
        appendStringInfoString(svg, ") rotate(-90)\">");
        svg_text(svg, 0, 0, "middle", y->name, 12, y->begin - y->end);
        appendStringInfoString(svg, "</g>");
    }
    appendStringInfoString(svg, "</g>\n");
}
