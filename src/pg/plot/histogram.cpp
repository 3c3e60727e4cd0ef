/*
 * histogram.cpp - rows of one feature as bars.
 */
#include "pg/plot/histogram.h"

#include <cmath>

#include "pg/plot/legend.h"
#include "pg/plot/sample.h"

#define MOST_SERIES 256

static int32 bin_of(const Histogram *histogram, const Plane *plane, double value)
{
    const double width = plane->high[0] / 2 - plane->low[0] / 2;

    if (!(width > 0))
        return 0;
    return Min((int32)((value / 2 - plane->low[0] / 2) / width * histogram->bins), histogram->bins - 1);
}

static int32 series_of(const Histogram *histogram, int32 cluster)
{
    return cluster < 0 || cluster >= histogram->series - 1 ? histogram->series - 1 : cluster;
}

static int64 rows_in(const Histogram *histogram, int32 bin)
{
    int64 rows = 0;

    for (int32 j = 0; j < histogram->series; ++j)
        rows += histogram->counts[bin * histogram->series + j];
    return rows;
}

void histogram_count(Histogram *histogram, const Plane *plane, int32 bins)
{
    histogram->bins = plane->low[0] < plane->high[0] ? bins : 1;
    histogram->series = Min(plane->n_clusters, MOST_SERIES) + 1;
    histogram->counts = (int64 *)palloc0((Size)histogram->bins * histogram->series * sizeof(int64));
    plane_each(plane, [&](const PlaneRow &row) {
        ++histogram
              ->counts[bin_of(histogram, plane, row.at[0]) * histogram->series + series_of(histogram, row.cluster)];
    });
    histogram->highest = 0;
    for (int32 i = 0; i < histogram->bins; ++i)
        histogram->highest = Max(histogram->highest, rows_in(histogram, i));
}

/* The left edge of a bin on the card. Equal values have one narrow bin. */
static double edge(const Histogram *histogram, const Plane *plane, const PlotAxis *x, int32 bin)
{
    const double low = axis_place(x, plane->low[0]);
    const double high = axis_place(x, plane->high[0]);

    if (low == high)
        return low - 20 + 40 * bin;
    return low + (high - low) * bin / histogram->bins;
}

static void draw_bar(StringInfo svg, double left, double right, double top, double bottom)
{
    appendStringInfoChar(svg, 'M');
    svg_point(svg, left, bottom);
    appendStringInfoChar(svg, 'V');
    svg_length(svg, top);
    appendStringInfoChar(svg, 'H');
    svg_length(svg, right);
    appendStringInfoChar(svg, 'V');
    svg_length(svg, bottom);
    appendStringInfoChar(svg, 'z');
}

static void draw_series(StringInfo svg, const Histogram *histogram, const Plane *plane, const PlotAxis *x,
                        const PlotAxis *y, int32 series, int64 *below)
{
    appendStringInfo(svg, "<path fill=\"%s\" d=\"",
                     series == histogram->series - 1 ? "#b8b8b8" : svg_colour(plane->clusters[series].style));
    for (int32 i = 0; i < histogram->bins; ++i) {
        const int64 rows = histogram->counts[i * histogram->series + series];

        if (rows == 0)
            continue;
        draw_bar(svg, edge(histogram, plane, x, i) + 0.5, edge(histogram, plane, x, i + 1) - 0.5,
                 axis_place(y, (double)(below[i] + rows)), axis_place(y, (double)below[i]));
        below[i] += rows;
    }
    appendStringInfoString(svg, "\"/>\n");
}

void histogram_draw(StringInfo svg, const Histogram *histogram, Plane *plane, const PlotAxis *x, const PlotAxis *y)
{
    const PlotBox box = {x->begin, y->end, x->end, y->begin};
    int64 *const below = (int64 *)palloc0(histogram->bins * sizeof(int64));
    double *const mean_x = (double *)palloc_extended((plane->n_clusters + 1) * sizeof(double), MCXT_ALLOC_HUGE);
    double *const mean_y = (double *)palloc_extended((plane->n_clusters + 1) * sizeof(double), MCXT_ALLOC_HUGE);

    sample_means(plane, x, y, mean_x, mean_y);
    styles_choose(plane, mean_x, mean_y);
    for (int32 j = 0; j < histogram->series; ++j)
        draw_series(svg, histogram, plane, x, y, j, below);
    for (int32 j = 0; j < plane->n_clusters; ++j) {
        const double low = edge(histogram, plane, x, 0);
        const double width = edge(histogram, plane, x, histogram->bins) - low;
        const int32 bin = Min(Max((int32)((mean_x[j] - low) / width * histogram->bins), 0), histogram->bins - 1);

        mean_y[j] = axis_place(y, (double)rows_in(histogram, bin)) - 2;
    }
    numbers_draw(svg, plane, &box, mean_x, mean_y);
}
