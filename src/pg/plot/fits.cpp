/*
 * fits.cpp - pictures of how fits went: kmeans_sweep_plot and gmm_plot.
 */
#include "pg/plot/curve.h"

#include "pg/gmm/gmm.h"
#include "pg/kmeans/sweep.h"

extern "C" {
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(pgkm_sweep_plot);
PG_FUNCTION_INFO_V1(pgkm_gmm_plot);
}

#define SWEEP_PLOT_WIDTH (SWEEP_LOADED + 1)
#define GMM_PLOT_WIDTH 1

#define PANELS 4

/* The four panels, in two rows; those of a column are aligned. */
static void draw_panels(StringInfo svg, const PlotFrame *frame, double top, PlotCurve *panels)
{
    const double gap = 28;
    const double width = (frame->width - 40 - gap) / 2;
    const double height = (frame->height - top - 14 - 10) / 2;
    PlotBox boxes[PANELS];

    for (int i = 0; i < PANELS; ++i) {
        const double left = 20 + i % 2 * (width + gap);
        const double box_top = top + i / 2 * (height + 10);

        boxes[i] = {left, box_top, left + width, box_top + height};
    }
    for (int i = 0; i < PANELS; ++i)
        panels[i].indent = Max(curve_indent(&boxes[i], &panels[i]), curve_indent(&boxes[i ^ 2], &panels[i ^ 2]));
    for (int i = 0; i < PANELS; ++i)
        curve_draw(svg, &boxes[i], &panels[i]);
}

/* The numbers of a sweep's results: a panel's for each of its k. */
static void read_results(const TableCall *call, int64 count, double *k, double *const *values)
{
    for (int64 i = 0; i < count; ++i) {
        PgkmResult result;

        CHECK_FOR_INTERRUPTS();
        pgkm_result_of(call->job, i, &result);
        k[i] = (double)(call->request.k + i);
        values[0][i] = result.inertia;
        values[1][i] = result.quality.simplified_silhouette;
        values[2][i] = result.quality.davies_bouldin;
        values[3][i] = result.quality.calinski_harabasz;
    }
}

/*
 * kmeans_sweep_plot(relation, features, k_min, k_max, ..., width, height, title) -> text
 *
 *   results := those of kmeans_sweep
 *   draw each of its indices by k; NULL where there are no rows
 */
Datum pgkm_sweep_plot(PG_FUNCTION_ARGS)
{
    PlotFrame frame;
    StringInfoData svg;
    PgkmResult first;
    int64 count;

    plot_frame_arguments(&frame, fcinfo, SWEEP_PLOT_WIDTH);

    TableCall *const call = kmeans_sweep_fit(fcinfo, "kmeans_sweep_plot", NO_NULLS, 0, &count);

    if (count == 0) {
        table_call_destroy(call);
        PG_RETURN_NULL();
    }

    double *const numbers = (double *)MemoryContextAllocHuge(call->context, (PANELS + 1) * count * sizeof(double));
    double *const values[PANELS] = {numbers + count, numbers + 2 * count, numbers + 3 * count, numbers + 4 * count};
    PlotCurve panels[PANELS] = {
        {"inertia", "k", count, numbers, values[0], 0, 0, 0},
        {"simplified silhouette (high is good)", "k", count, numbers, values[1], 1, 2, 0},
        {"Davies-Bouldin index (low is good)", "k", count, numbers, values[2], -1, 5, 0},
        {"Calinski-Harabasz index (high is good)", "k", count, numbers, values[3], 1, 4, 0},
    };

    read_results(call, count, numbers, values);
    pgkm_result_of(call->job, 0, &first);
    initStringInfo(&svg);

    svg_begin(&svg, &frame, psprintf("How many clusters in %s?", plot_user_text(call->relation.name)),
              psprintf("k-means of %s rows for each k from %.0f to %.0f", plot_number((double)first.n, 0), numbers[0],
                       numbers[count - 1]));

    draw_panels(&svg, &frame, svg_top(&frame), panels);
    table_call_destroy(call);
    return svg_end(&svg);
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

    double *const iterations = (double *)MemoryContextAllocHuge(CurrentMemoryContext, trace.n_iter * sizeof(double));

    for (int32 i = 0; i < trace.n_iter; ++i)
        iterations[i] = i + 1;
    initStringInfo(&svg);

    svg_begin(&svg, &frame, psprintf("Expectation maximisation of %d Gaussians", trace.k),
              psprintf("covariances: %s \x1f %d iterations \x1f %s", pgkm_covariance_name(trace.covariance_type),
                       trace.n_iter, trace.converged ? "converged" : "not converged"));
    const PlotBox box = {20, svg_top(&frame), (double)frame.width - 24, (double)frame.height - 14};
    const PlotCurve curve = {
        "log-likelihood of all rows", "iteration", trace.n_iter, iterations, trace.values, 0, 0, 0};

    curve_draw(&svg, &box, &curve);
    return svg_end(&svg);
}
