/*
 * curves.cpp - pictures of how fits went: kmeans_sweep_plot and gmm_plot.
 */
#include "pg/plot/svg.h"

#include <cmath>

#include "pg/gmm/gmm.h"
#include "pg/fit/sweep.h"
#include "pg/kmeans/model.h"

extern "C" {
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(pgkm_curves_plot);
PG_FUNCTION_INFO_V1(pgkm_gmm_plot);
}

#define GMM_PLOT_WIDTH 1

struct Curve {
    const char *name; /* above the curve; what is better is part of it */
    const char *x_name;
    int64 first; /* x of the first value; the others follow by 1 */
    int64 n;
    const double *y; /* n; NaN: not defined there */
    int best;        /* 1: the largest value is marked, -1: the least, 0: none */
    int64 colour;
    const int64 *list; /* n: x of all values instead; or NULL */

    int64 x(int64 i) const { return list == NULL ? first + i : list[i]; }
};

/* A line from value to value, and their marks unless they are many. */
static void draw_line(StringInfo svg, const Curve *curve, const PlotAxis *x, const PlotAxis *y)
{
    StringInfoData marks;
    bool drawn = false;

    initStringInfo(&marks);
    plot_marks_begin(&marks, curve->colour, true);
    appendStringInfo(svg, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-linejoin=\"round\" d=\"",
                     plot_colour(curve->colour));
    for (int64 i = 0; i < curve->n; ++i) {
        const double place_x = axis_place(x, (double)curve->x(i));
        const double place_y = axis_place(y, curve->y[i]);

        if (std::isfinite(curve->y[i])) {
            appendStringInfo(svg, "%c%.1f %.1f", drawn ? 'L' : 'M', place_x, place_y);
            plot_mark(&marks, curve->colour, true, place_x, place_y);
        }
        drawn = std::isfinite(curve->y[i]);
    }
    plot_marks_end(svg);
    plot_marks_end(&marks);
    if (curve->n <= 60)
        appendBinaryStringInfo(svg, marks.data, marks.len);
}

/* A ring around a value, and its x. */
static void draw_ring(StringInfo svg, const Curve *curve, const PlotAxis *x, const PlotAxis *y, int64 i)
{
    const double place_x = axis_place(x, (double)curve->x(i));
    const double place_y = axis_place(y, curve->y[i]);
    const char *const words = psprintf("%s = " INT64_FORMAT, curve->x_name, curve->x(i));
    const double half = plot_text_width(words, 11) / 2;

    appendStringInfo(svg,
                     "<circle fill=\"none\" stroke=\"%s\" stroke-width=\"2\" cx=\"%.1f\" cy=\"%.1f\" r=\"6.5\"/>\n"
                     "<g " PLOT_INK " font-weight=\"bold\">\n",
                     plot_colour(3), place_x, place_y);
    plot_text(svg, Min(Max(place_x, x->begin + half + 4), x->end - half), place_y + (curve->best > 0 ? -11 : 20),
              "middle", 11, words, INFINITY);
    appendStringInfoString(svg, "</g>\n");
}

static void draw_curve(StringInfo svg, const Curve *curve, const PlotBox *box)
{
    int64 least = -1; /* of several the first */
    int64 most = -1;
    PlotAxis x;
    PlotAxis y;

    for (int64 i = 0; i < curve->n; ++i)
        if (std::isfinite(curve->y[i])) {
            least = least < 0 || curve->y[i] < curve->y[least] ? i : least;
            most = most < 0 || curve->y[i] > curve->y[most] ? i : most;
        }

    const double low = least < 0 ? 0 : curve->y[least];
    const double high = least < 0 ? 0 : curve->y[most];
    /* Below or above the line there is room for the mark of the best value. */
    const double room = (high - low) * 0.15;

    axis_make(&x, curve->x_name, (double)curve->first, (double)curve->x(curve->n - 1), box->left + AXIS_WIDTH - 30,
              box->right, true);
    axis_make(&y, curve->name, curve->best < 0 ? low - room : low, curve->best > 0 ? high + room : high,
              box->bottom - AXIS_HEIGHT, box->top + 20, false);
    appendStringInfoString(svg, "<g " PLOT_INK ">\n");
    plot_text(svg, box->left, box->top + 8, "start", 12, y.name, box->right - box->left);
    if (least < 0)
        plot_text(svg, (x.begin + x.end) / 2, (y.begin + y.end) / 2, "middle", 11, "not defined", INFINITY);
    appendStringInfoString(svg, "</g>\n");
    y.name = "";
    axes_draw(svg, &x, &y);
    draw_line(svg, curve, &x, &y);
    if (least >= 0 && curve->best != 0)
        draw_ring(svg, curve, &x, &y, curve->best > 0 ? most : least);
}

#define PANELS 4
#define GAP 28

/*
 * kmeans_sweep_plot(relation, features, k_min, k_max, options, ..., width, height, title, ks) -> text
 *
 *   results := those of kmeans_sweep
 *   draw each of its indices by k; NULL where there are no rows
 */
Datum pgkm_curves_plot(PG_FUNCTION_ARGS)
{
    PlotFrame frame;
    StringInfoData svg;
    PgkmResult result;
    int64 count;

    plot_frame_arguments(&frame, fcinfo, SWEEP_NEXT);

    TableCall *const call = sweep_begin(&kmeans_kind, fcinfo, "kmeans_sweep_plot", 0, &count);

    if (count == 0) {
        table_call_destroy(call);
        PG_RETURN_NULL();
    }

    double *const values = (double *)MemoryContextAllocHuge(call->context, PANELS * count * sizeof(double));
    const int64 k = call->request.k;
    const int64 *const list = call->request.sweep_k;
    const Curve panels[PANELS] = {
        {"inertia", "k", k, count, values, 0, 0, list},
        {"simplified silhouette (high is good)", "k", k, count, values + count, 1, 2, list},
        {"Davies-Bouldin index (low is good)", "k", k, count, values + 2 * count, -1, 5, list},
        {"Calinski-Harabasz index (high is good)", "k", k, count, values + 3 * count, 1, 4, list},
    };

    for (int64 i = 0; i < count; ++i) {
        CHECK_FOR_INTERRUPTS();
        pgkm_result_of(call->job, i, &result);
        values[i] = result.inertia;
        values[count + i] = result.quality.simplified_silhouette;
        values[2 * count + i] = result.quality.davies_bouldin;
        values[3 * count + i] = result.quality.calinski_harabasz;
    }
    plot_begin(&svg, &frame, psprintf("How many clusters in %s?", call->relation.name),
               psprintf("k-means of %s rows for %sk from %lld to %lld", plot_count(result.n),
                        list == NULL ? "each " : "", (long long)k, (long long)pgkm_sweep_last(&call->request)));

    const PlotBox all = plot_box(&frame);
    const double width = (all.right - all.left - GAP) / 2;
    const double height = (all.bottom - all.top) / 2;

    for (int i = 0; i < PANELS; ++i) {
        const double left = all.left + i % 2 * (width + GAP);
        const double top = all.top + i / 2 * height;
        const PlotBox box = {left, top, left + width, top + height - 10};

        draw_curve(&svg, &panels[i], &box);
    }
    table_call_destroy(call);
    return plot_end(&svg);
}

/* gmm_plot(model, width, height, title) -> text: the log-likelihood of a fit by iteration. */
Datum pgkm_gmm_plot(PG_FUNCTION_ARGS)
{
    PlotFrame frame;
    PgkmGmmTrace trace;
    StringInfoData svg;

    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();
    plot_frame_arguments(&frame, fcinfo, GMM_PLOT_WIDTH);
    pgkm_gmm_trace_read(PG_GETARG_DATUM(0), CurrentMemoryContext, &trace);

    const Curve curve = {"log-likelihood of all rows", "iteration", 1, trace.n_iter, trace.values, 0, 0, NULL};
    const PlotBox box = plot_box(&frame);

    plot_begin(&svg, &frame, psprintf("Expectation maximisation of %d Gaussians", trace.k),
               psprintf("covariances: %s, %d iterations, %s", pgkm_covariance_name(trace.covariance_type), trace.n_iter,
                        trace.converged ? "converged" : "not converged"));
    draw_curve(&svg, &curve, &box);
    return plot_end(&svg);
}
