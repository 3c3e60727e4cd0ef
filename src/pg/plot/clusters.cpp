/*
 * clusters.cpp - kmeans_plot: a picture of clusters.
 */
#include "pg/plot/plane.h"

#include <cmath>

#include "pg/kmeans/model.h"

extern "C" {
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(pgkm_clusters_plot);
}

/* Behind those of kmeans_fit. */
enum PlotArgument { PLOT_LABEL = TABLE_OPTIONS + 5, PLOT_WIDTH, PLOT_HEIGHT, PLOT_TITLE, PLOT_SAMPLE };

/* Clusters whose bars have their colours in a histogram. */
#define MOST_SERIES 256
/* Clusters that get numbers; of more only small marks are drawn, and of still more none. */
#define MOST_NUMBERS 100
#define MOST_MEANS 1000

struct ClusterPlot {
    PlotFrame frame;
    int32 sample;
    const char *label;         /* the column that says what belongs together; NULL: a fit does */
    const TableColumn *column; /* of that name */
    TableCall *call;
    const PgkmResult *fit; /* NULL: none */
    Plane plane;
    PlotAxis x;
    PlotAxis y;
    PlotBox box;         /* between the axes */
    const char *heading; /* of the labels in the legend */
    double label_width;
    double legend_width;
};

static void read_arguments(ClusterPlot *plot, FunctionCallInfo fcinfo)
{
    const bool has_k = !PG_ARGISNULL(TABLE_K);

    plot_frame_arguments(&plot->frame, fcinfo, PLOT_WIDTH);
    plot->sample = plot_int_argument(fcinfo, PLOT_SAMPLE, "sample", 10, 100000, 5000);
    if (has_k != PG_ARGISNULL(PLOT_LABEL))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("kmeans_plot needs either k or label_column, and not both")));
    plot->call = has_k ? fit_call_of_arguments(&kmeans_kind, fcinfo)
                       : fit_call_create(&kmeans_kind, table_arguments(fcinfo, TABLE_OPTIONS), 0);
    plot->call->takes_bits = false;
    if (has_k)
        return table_call_find(plot->call, TABLE_READ);
    plot->label = text_to_cstring(PG_GETARG_TEXT_PP(PLOT_LABEL));
    plot->column = table_call_find_label(plot->call, TABLE_READ, plot->label);
}

/* Reads the rows, finds their clusters and coordinates. False when there are no rows. */
static bool gather(ClusterPlot *plot)
{
    TableCall *const call = plot->call;
    TableRows *const rows = table_call_read(call, "kmeans_plot", {.label = plot->column});

    if (call->n == 0)
        return false;
    if (plot->label == NULL)
        plane_check_clusters(Min(call->request.k, call->n));
    plane_axes(&plot->plane, call);
    if (plot->label == NULL) {
        call->request.want_labels = 1;
        plot->fit = fit_rows(&kmeans_kind, call);
    }
    plane_clusters(&plot->plane, plot->fit, rows);
    return true;
}

/* Gives the parts of the card their places. The y axis has values from low to high. */
static void lay_out(ClusterPlot *plot, const char *y_name, double low, double high, bool whole)
{
    const Plane *const plane = &plot->plane;
    const int64 last = plane->n_clusters > 0 ? plane->clusters[plane->n_clusters - 1].label : 0;
    PlotBox *const box = &plot->box;

    plot->heading = plot->label == NULL ? "cluster" : plot->label;
    plot->label_width =
        Max(Min(plot_text_width(plot->heading, 11), 80.0), plot_text_width(psprintf(INT64_FORMAT, last), 11));
    plot->legend_width = 16 + plot->label_width + 12 + Max(plot_text_width(plot_count(plane->points.n), 11), 28.0);
    *box = plot_box(&plot->frame);
    box->left += AXIS_WIDTH;
    box->right -= plot->legend_width + 20;
    box->bottom -= AXIS_HEIGHT;
    axis_make(&plot->x, plane->names[0], plane->low[0], plane->high[0], box->left, box->right, false);
    axis_make(&plot->y, y_name, low, high, box->bottom, box->top, whole);
}

/* Title, subtitle and axes. `dots` of the rows are drawn; 0: bars are. */
static void begin(StringInfo svg, const ClusterPlot *plot, int64 dots)
{
    const char *const name = plot->call->relation.name;
    const int32 k = plot->plane.n_clusters;
    const int64 n = plot->plane.points.n;
    StringInfoData subtitle;

    initStringInfo(&subtitle);
    appendStringInfo(&subtitle, "%s row%s", plot_count(n), n == 1 ? "" : "s");
    if (n > plot->sample && dots > 0)
        appendStringInfo(&subtitle, ", %s of them drawn", plot_count(dots));
    if (plot->call->request.kmeans.standardize && plot->plane.points.d > 2)
        appendStringInfoString(&subtitle, ", standardized");
    if (plot->fit != NULL)
        appendStringInfo(&subtitle, ", inertia %.4g", plot->fit->inertia);
    plot_begin(svg, &plot->frame,
               plot->label != NULL ? psprintf("%s by %s", name, plot->label)
                                   : psprintf("%s in %d cluster%s", name, k, k == 1 ? "" : "s"),
               subtitle.data);
    axes_draw(svg, &plot->x, &plot->y);
}

/* One line of the legend: `cluster` is -1 for rows without a cluster, NO_MARK for none. */
#define NO_MARK (-2)
static void draw_entry(StringInfo svg, const ClusterPlot *plot, double y, int32 cluster, const char *label, int64 rows)
{
    const double left = plot->box.right + 20;

    if (cluster != NO_MARK) {
        plot_marks_begin(svg, cluster, true);
        plot_mark(svg, cluster, true, left + 5, y - 4);
        plot_marks_end(svg);
    }
    plot_text(svg, left + 16, y, "start", 11, label, plot->label_width + 12);
    plot_text(svg, left + plot->legend_width, y, "end", 11, rows < 0 ? "rows" : plot_count(rows), INFINITY);
}

/* Clusters with their sizes. Where not all have place, the last line is about all others. */
static void draw_legend(StringInfo svg, const ClusterPlot *plot)
{
    const Plane *const plane = &plot->plane;
    const int32 entries = plane->n_clusters + (plane->no_cluster > 0);
    const double height = plot->box.bottom - plot->box.top;
    const double line = Min(Max(height / (entries + 1), 13.0), 17.0);
    const int32 most = (int32)(height / line) - 1;
    const int32 whole = entries <= most ? plane->n_clusters : most - 1;
    int64 others = plane->no_cluster;
    double y = plot->box.top + 8;

    appendStringInfoString(svg, "<g " PLOT_SOFT ">\n");
    draw_entry(svg, plot, y, NO_MARK, plot->heading, -1);
    appendStringInfoString(svg, "</g>\n<g " PLOT_INK ">\n");
    for (int32 j = 0; j < plane->n_clusters; ++j)
        if (j < whole)
            draw_entry(svg, plot, y += line, j, psprintf(INT64_FORMAT, plane->clusters[j].label),
                       plane->clusters[j].rows);
        else
            others += plane->clusters[j].rows;
    if (entries > most)
        draw_entry(svg, plot, y + line, NO_MARK, "others", others);
    else if (others > 0)
        draw_entry(svg, plot, y + line, PLOT_NO_CLUSTER, "none", others);
    appendStringInfoString(svg, "</g>\n");
}

/* A cluster's mean on the card, and its number. */
struct Mean {
    double x;
    double y;
    double number_x;
    double number_y;
    double half; /* of the number's width; 0: there is none */
};

/* Means of the clusters, by weight: sums of integers, so that they do not depend on the order of rows. */
static Mean *find_means(const ClusterPlot *plot)
{
    struct Sum {
        int128 mass;
        int128 x;
        int128 y;
    };
    const Plane *const plane = &plot->plane;
    const double *const weights = plane->points.weights;
    Sum *const sums = (Sum *)palloc0(plane->n_clusters * sizeof(Sum));
    Mean *const means = (Mean *)palloc0(plane->n_clusters * sizeof(Mean));
    double heaviest = 0;

    for (int64 i = 0; weights != NULL && i < plane->points.n; ++i)
        heaviest = Max(heaviest, weights[i]);
    plane_each(plane, [&](int64 row, const double *at) {
        const int128 mass = weights == NULL ? 1 : Max(llrint(weights[row] / heaviest * 0x1p30), 1LL);

        if (plane->cluster_of[row] < 0)
            return;

        Sum *const sum = &sums[plane->cluster_of[row]];

        sum->mass += mass;
        sum->x += mass * llrint(axis_place(&plot->x, at[0]) * 0x1p20);
        sum->y += mass * llrint(axis_place(&plot->y, at[1]) * 0x1p20);
    });
    for (int32 j = 0; j < plane->n_clusters; ++j) {
        const double mass = (double)Max(sums[j].mass, (int128)1) * 0x1p20;

        means[j].x = (double)sums[j].x / mass;
        means[j].y = (double)sums[j].y / mass;
    }
    return means;
}

#define NUMBER_HEIGHT 16

/* Whether number j lies in the plot, and on none of those before it. */
static bool has_place(const Mean *means, int32 j, const PlotBox *box)
{
    const Mean *const mean = &means[j];

    for (int32 i = 0; i < j; ++i)
        if (means[i].half > 0 && fabs(means[i].number_x - mean->number_x) < means[i].half + mean->half + 1.5 &&
            fabs(means[i].number_y - mean->number_y) < NUMBER_HEIGHT + 1.5)
            return false;
    return mean->number_x - mean->half >= box->left && mean->number_x + mean->half <= box->right &&
           mean->number_y - NUMBER_HEIGHT / 2 >= box->top && mean->number_y + NUMBER_HEIGHT / 2 <= box->bottom;
}

/* The first free place on a spiral from the mean. A number that finds none is left out. */
static void place_number(Mean *means, int32 j, const char *number, const PlotBox *box)
{
    Mean *const mean = &means[j];

    mean->half = Max(plot_text_width(number, 10) / 2 + 4, NUMBER_HEIGHT / 2.0);
    for (int step = 0; step < 40; ++step) {
        const double away = step == 0 ? 0 : 14 + 0.8 * step;

        mean->number_x = mean->x + away * cos(2.4 * step);
        mean->number_y = mean->y + away * sin(2.4 * step);
        if (has_place(means, j, box))
            return;
    }
    mean->half = 0;
}

/* Draws the means and their numbers. A number that finds its place taken stands beside it, and a line leads there. */
static void draw_means(StringInfo svg, const ClusterPlot *plot, Mean *means)
{
    const int32 n = plot->plane.n_clusters <= MOST_MEANS ? plot->plane.n_clusters : 0;
    StringInfoData numbers;

    initStringInfo(&numbers);
    for (int32 j = 0; j < n; ++j) {
        const char *const number = psprintf(INT64_FORMAT, plot->plane.clusters[j].label);
        Mean *const mean = &means[j];

        if (n <= MOST_NUMBERS)
            place_number(means, j, number, &plot->box);
        if (mean->half > 0) {
            appendStringInfo(svg, "<path stroke=\"#6e7781\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", mean->number_x,
                             mean->number_y, mean->x, mean->y);
            appendStringInfo(&numbers,
                             "<rect rx=\"%d\" height=\"%d\" width=\"%.1f\" fill=\"#ffffff\" stroke=\"%s\" "
                             "stroke-width=\"2\" x=\"%.1f\" y=\"%.1f\"/>",
                             NUMBER_HEIGHT / 2, NUMBER_HEIGHT, 2 * mean->half, plot_colour(j),
                             mean->number_x - mean->half, mean->number_y - NUMBER_HEIGHT / 2);
            plot_text(&numbers, mean->number_x, mean->number_y + 3.6, "middle", 10, number, INFINITY);
        }
        appendStringInfo(svg,
                         "<circle r=\"3.5\" fill=\"%s\" stroke=\"#ffffff\" stroke-width=\"1.5\" cx=\"%.1f\" "
                         "cy=\"%.1f\"/>\n",
                         plot_colour(j), mean->x, mean->y);
    }
    appendStringInfo(svg, "<g fill=\"#24292f\" font-weight=\"bold\">\n%s</g>\n", numbers.data);
}

static void draw_scatter(StringInfo svg, ClusterPlot *plot)
{
    const Plane *const plane = &plot->plane;
    int64 count;

    lay_out(plot, plane->names[1], plane->low[1], plane->high[1], false);

    const PlaneDot *const dots =
        plane_sample(plane, &plot->x, &plot->y, plot->sample, plot->call->request.kmeans.seed, &count);
    const bool large = count <= 400;

    begin(svg, plot, count);
    appendStringInfoString(svg, "<g fill-opacity=\"0.75\" stroke-opacity=\"0.75\">\n");
    for (int64 i = 0; i < count; ++i) {
        const bool first = i == 0 || dots[i].cluster != dots[i - 1].cluster || dots[i].turn != dots[i - 1].turn;

        if (first && i > 0)
            plot_marks_end(svg);
        if (first)
            plot_marks_begin(svg, dots[i].cluster, large);
        plot_mark(svg, dots[i].cluster, large, dots[i].x / 10.0, dots[i].y / 10.0);
    }
    plot_marks_end(svg);
    appendStringInfoString(svg, "</g>\n");
    draw_means(svg, plot, find_means(plot));
}

/* Of one feature: how many rows of each cluster have about the same value, as bars upon each other. */
static void draw_histogram(StringInfo svg, ClusterPlot *plot)
{
    const Plane *const plane = &plot->plane;
    const double low = plane->low[0];
    const double width = plane->high[0] - low;
    /* Equal values have one narrow bar. */
    const int32 bins = width > 0 ? Min(Max(plot->frame.width / 12, 10), 120) : 1;
    /* The last series is of all other clusters, and of rows without a cluster. */
    const int32 series = Min(plane->n_clusters, MOST_SERIES) + 1;
    int64 *const counts = (int64 *)palloc0(series * bins * sizeof(int64));
    int64 *const below = (int64 *)palloc0(bins * sizeof(int64));
    int64 highest = 0;

    plane_each(plane, [&](int64 row, const double *at) {
        const int32 cluster = plane->cluster_of[row];
        const int32 bin = width > 0 ? Min((int32)((at[0] - low) / width * bins), bins - 1) : 0;

        ++counts[(cluster < 0 ? series - 1 : Min(cluster, series - 1)) * bins + bin];
        ++below[bin];
        highest = Max(highest, below[bin]);
    });
    lay_out(plot, "rows", 0, (double)highest, true);
    begin(svg, plot, 0);

    const double left = axis_place(&plot->x, plane->low[0]) - (width > 0 ? 0 : 20);
    const double bar = width > 0 ? (axis_place(&plot->x, plane->high[0]) - left) / bins : 40;
    Mean *const means = find_means(plot);

    memset(below, 0, bins * sizeof(int64));
    for (int32 j = 0; j < series; ++j) {
        appendStringInfo(svg, "<path fill=\"%s\" d=\"", plot_colour(j < series - 1 ? j : PLOT_NO_CLUSTER));
        for (int32 i = 0; i < bins; ++i) {
            const double bottom = axis_place(&plot->y, (double)below[i]);

            below[i] += counts[j * bins + i];
            if (counts[j * bins + i] > 0)
                appendStringInfo(svg, "M%.1f %.1fV%.1fh%.1fV%.1fz", left + i * bar + 0.5, bottom,
                                 axis_place(&plot->y, (double)below[i]), bar - 1, bottom);
        }
        appendStringInfoString(svg, "\"/>\n");
    }
    for (int32 j = 0; j < plane->n_clusters; ++j)
        means[j].y = axis_place(&plot->y, (double)below[Min(Max((int32)((means[j].x - left) / bar), 0), bins - 1)]);
    draw_means(svg, plot, means);
}

/*
 * kmeans_plot(relation, features, k, options, ..., label_column, width, height, title, sample) -> text
 *
 *   rows := SELECT features, weight, label FROM relation, as the caller; or those that are loaded
 *   axes := the features, where there are one or two; else the first two principal components
 *   clusters := those of a fit; or rows of one label
 *   draw a sample of the rows, means and sizes of the clusters; NULL where there are no rows
 */
Datum pgkm_clusters_plot(PG_FUNCTION_ARGS)
{
    StringInfoData svg;
    ClusterPlot plot;

    memset(&plot, 0, sizeof plot);
    read_arguments(&plot, fcinfo);
    if (!gather(&plot)) {
        table_call_destroy(plot.call);
        PG_RETURN_NULL();
    }
    if (plot.plane.n_axes == 1)
        draw_histogram(&svg, &plot);
    else
        draw_scatter(&svg, &plot);
    draw_legend(&svg, &plot);
    table_call_destroy(plot.call);
    return plot_end(&svg);
}
