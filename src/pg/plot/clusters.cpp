/*
 * clusters.cpp - kmeans_plot: a picture of clusters.
 */
#include "pg/plot/histogram.h"
#include "pg/plot/legend.h"
#include "pg/plot/sample.h"

#include "pg/kmeans/call.h"
#include "pg/kmeans/options.h"

extern "C" {
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_plot);
}

/* Behind those of kmeans_fit. */
enum PlotArgument { PLOT_LABEL = KMEANS_LOADED + 1, PLOT_WIDTH, PLOT_HEIGHT, PLOT_TITLE, PLOT_SAMPLE };

struct ClusterPlot {
    PlotFrame frame;
    int32 sample;
    const char *label; /* the column that says what belongs together; NULL: a fit does */
    TableCall *call;
    const PgkmResult *fit; /* NULL: none */
    Plane plane;
    PlotAxis x;
    PlotAxis y;
    PlotLegend legend;
    PlotBox box;
};

static void read_arguments(ClusterPlot *plot, FunctionCallInfo fcinfo)
{
    const bool has_k = !PG_ARGISNULL(TABLE_K);

    plot_frame_arguments(&plot->frame, fcinfo, PLOT_WIDTH);
    plot->sample = plot_int_argument(fcinfo, PLOT_SAMPLE, "sample", 10, 100000, 5000);
    if (has_k != PG_ARGISNULL(PLOT_LABEL))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("kmeans_plot needs either k or label_column, and not both")));
    if (!has_k && !PG_ARGISNULL(KMEANS_LOADED) && PG_GETARG_BOOL(KMEANS_LOADED))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("loaded rows have no label_column")));
    plot->call = has_k ? kmeans_call_of_arguments(fcinfo) : kmeans_call_create(fcinfo->args + TABLE_OPTIONS);
    table_call_find(plot->call, fcinfo, TABLE_READ, KMEANS_WEIGHT, KMEANS_LOADED, NO_NULLS);
    if (has_k)
        return;
    plot->label = text_to_cstring(PG_GETARG_TEXT_PP(PLOT_LABEL));
    table_label_find(&plot->call->relation, plot->label);
}

/* Reads the rows, finds their clusters and coordinates. False when there are no rows. */
static bool gather(ClusterPlot *plot)
{
    TableCall *const call = plot->call;
    const bool standardize = call->request.kmeans.standardize != 0;
    TableQuery query;

    memset(&query, 0, sizeof query);
    query.label = plot->label;

    TableRows *const rows = table_call_read(call, "kmeans_plot", &query);

    if (table_rows_used(rows) == 0)
        return false;
    table_call_request(call, rows);
    if (plot->label == NULL)
        plane_check_clusters(Min(call->request.k, table_rows_used(rows)));
    plane_axes(&plot->plane, call, rows, standardize);
    if (plot->label == NULL) {
        plot->fit = kmeans_call_fit(call, rows, true, false);
        plane_check_clusters(plot->fit->k); /* a radius may have asked for more */
        plot->plane.fitted = plot->fit->labels;
    }
    plane_survey(&plot->plane, plot->fit == NULL ? 0 : plot->fit->k);
    return true;
}

static const char *title_of(const ClusterPlot *plot)
{
    if (plot->label != NULL)
        return plot_user_text(psprintf("%s by %s", plot->call->relation.name, plot->label));
    return psprintf("%s in %d cluster%s", plot_user_text(plot->call->relation.name), plot->fit->k,
                    plot->fit->k == 1 ? "" : "s");
}

static const char *subtitle_of(const ClusterPlot *plot, int64 dots)
{
    const int64 n = plot->plane.points.n;
    StringInfoData text;

    initStringInfo(&text);
    appendStringInfo(&text, "%s row%s", plot_number((double)n, 0), n == 1 ? "" : "s");
    if (n > plot->sample && dots > 0)
        appendStringInfo(&text, ", %s of them drawn", plot_number((double)dots, 0));
    if (plot->plane.scale != NULL)
        appendStringInfoString(&text, " \x1f standardized");
    if (plot->fit != NULL)
        appendStringInfo(&text, " \x1f inertia %s", plot_short_number(plot->fit->inertia));
    return text.data;
}

/* Gives each part of the card its place. The y axis has values from low to high. */
static void lay_out(ClusterPlot *plot, const char *y_name, double low, double high, AxisKind kind)
{
    PlotBox *const box = &plot->box;

    box->top = svg_top(&plot->frame);
    box->bottom = plot->frame.height - 14 - 40;
    legend_make(&plot->legend, &plot->plane, plot->label == NULL ? "cluster" : plot->label, box->bottom - box->top,
                plot->frame.width / 3.0);
    axis_make(&plot->y, y_name, low, high, box->bottom, box->top, 55, kind);
    box->left = 20 + axis_width(&plot->y) - (y_name[0] == '\0' ? 0 : 6);
    box->right = plot->frame.width - 20 - legend_width(&plot->legend) - 20;
    axis_make(&plot->x, plot->plane.names[0], plot->plane.low[0], plot->plane.high[0], box->left, box->right, 90,
              AXIS_VALUES);
}

/* Dots of the plane's rows, cluster by cluster within each layer. */
static void draw_dots(StringInfo svg, const Plane *plane, const Sample *sample)
{
    const double r = sample->n <= 400 ? 3 : sample->n <= 2000 ? 2.4 : 1.9;
    int64 i = 0;

    appendStringInfoString(svg, "<g fill-opacity=\"0.75\" stroke-opacity=\"0.75\">\n");
    while (i < sample->n) {
        const SampleDot *const first = &sample->dots[i];
        const bool none = first->cluster < 0;
        const int32 style = none ? 0 : plane->clusters[first->cluster].style;

        if (none)
            appendStringInfoString(svg, "<path fill=\"none\" stroke=\"#8a8a8a\" stroke-width=\"1\" d=\"");
        else
            svg_dots_begin(svg, style, r);
        for (; i < sample->n && sample->dots[i].cluster == first->cluster && sample->dots[i].layer == first->layer;
             ++i) {
            const double x = sample->dots[i].x / 10.0;
            const double y = sample->dots[i].y / 10.0;

            if (none) {
                appendStringInfoChar(svg, 'M');
                svg_point(svg, x - 2, y);
                appendStringInfoString(svg, "h4m-2-2v4");
            } else
                svg_dot(svg, style, r, x, y);
        }
        svg_dots_end(svg);
    }
    appendStringInfoString(svg, "</g>\n");
}

static void draw_scatter(StringInfo svg, ClusterPlot *plot)
{
    Plane *const plane = &plot->plane;
    double *const mean_x = (double *)palloc_extended((plane->n_clusters + 1) * sizeof(double), MCXT_ALLOC_HUGE);
    double *const mean_y = (double *)palloc_extended((plane->n_clusters + 1) * sizeof(double), MCXT_ALLOC_HUGE);
    Sample sample;

    lay_out(plot, plane->names[1], plane->low[1], plane->high[1], AXIS_VALUES);
    sample_take(&sample, plane, &plot->x, &plot->y, plot->sample, plot->call->request.kmeans.seed);
    sample_means(plane, &plot->x, &plot->y, mean_x, mean_y);
    styles_choose(plane, mean_x, mean_y);
    svg_begin(svg, &plot->frame, title_of(plot), subtitle_of(plot, sample.n));
    axes_draw(svg, &plot->x, &plot->y);
    draw_dots(svg, plane, &sample);
    numbers_draw(svg, plane, &plot->box, mean_x, mean_y);
    legend_draw(svg, &plot->legend, plot->box.right + 20, plot->box.top);
}

/* Of one feature: how many rows of which cluster have which values. */
static void draw_histogram(StringInfo svg, ClusterPlot *plot)
{
    Histogram histogram;

    histogram_count(&histogram, &plot->plane, Min(Max(plot->frame.width / 12, 10), 120));
    lay_out(plot, "rows", 0, (double)histogram.highest, AXIS_COUNTS);
    svg_begin(svg, &plot->frame, title_of(plot), subtitle_of(plot, 0));
    axes_draw(svg, &plot->x, &plot->y);
    histogram_draw(svg, &histogram, &plot->plane, &plot->x, &plot->y);
    legend_draw(svg, &plot->legend, plot->box.right + 20, plot->box.top);
}

/*
 * kmeans_plot(relation, features, k, ..., label_column, width, height, title, sample) -> text
 *
 *   rows := SELECT features, weight, label FROM relation, as the caller; or those that are loaded
 *   axes := the features, where there are one or two; else the first two principal components
 *   clusters := those of a fit; or rows of one label
 *   draw a sample of the rows, means and sizes of the clusters; NULL where there are no rows
 */
Datum pgkm_kmeans_plot(PG_FUNCTION_ARGS)
{
    StringInfoData svg;
    ClusterPlot plot;

    memset(&plot, 0, sizeof plot);
    read_arguments(&plot, fcinfo);
    if (!gather(&plot)) {
        table_call_destroy(plot.call);
        PG_RETURN_NULL();
    }
    initStringInfo(&svg);
    if (plot.plane.n_axes == 1)
        draw_histogram(&svg, &plot);
    else
        draw_scatter(&svg, &plot);
    table_call_destroy(plot.call);
    return svg_end(&svg);
}
