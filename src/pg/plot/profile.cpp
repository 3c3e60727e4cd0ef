/*
 * profile.cpp - kmeans_profile_plot: features by clusters, coloured by how far each mean lies from that of all rows.
 */
#include "pg/kmeans/profile.h"

#include <algorithm>
#include <cmath>

#include "pg/plot/svg.h"

extern "C" {
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(pgkm_profile_plot);
}

enum ProfilePlotArgument { PROFILE_MODEL, PROFILE_WIDTH, PROFILE_HEIGHT, PROFILE_TITLE };

/* A picture that is as high as it has to be has so many features at most. */
#define USUAL_FEATURES 24
#define LINE_HEIGHT 24.0
#define LEAST_LINE 18.0
#define LEAST_COLUMN 27.0
#define HEAD_HEIGHT 36.0
#define FOOT_HEIGHT 32.0

/* Deviations of the strongest colour, which text can be read upon. */
#define MOST_DEVIATIONS 2.0
#define MOST_OPACITY 0.55
/* A cell has little place. */
#define DIGITS 2

struct ProfilePlot {
    PlotFrame frame;
    Profile profile;
    int64 rows;
    double *centroid; /* room for one */
    int32 n_features; /* that are drawn, ascending */
    int32 *features;
    int32 n_clusters;
    int32 *clusters;
    PlotBox cells;
    double column; /* width */
    double line;   /* height */
};

/* How far a mean lies from that of all rows, in standard deviations, within the colours. */
static double deviations_of(const Profile *profile, int32 f, double value)
{
    const double deviations = profile->spreads[f] > 0 ? (value - profile->means[f]) / profile->spreads[f] : 0;

    return std::isnan(deviations) ? 0 : deviations;
}

/* Of 0 to n - 1 those `count` that come first by better(a, b), ascending. */
template <typename Better>
static int32 *choose(int32 n, int32 count, Better better)
{
    int32 *const all = (int32 *)palloc(n * sizeof(int32));

    for (int32 i = 0; i < n; ++i)
        all[i] = i;
    if (count < n)
        std::nth_element(all, all + count, all + n,
                         [&](int32 a, int32 b) { return better(a, b) || (!better(b, a) && a < b); });
    std::sort(all, all + count);
    return all;
}

/* As many features as have place: those that differ most in any cluster. */
static void choose_features(ProfilePlot *plot, int32 most)
{
    const PgkmModel *const model = &plot->profile.model;
    double *const strongest = (double *)palloc0(model->d * sizeof(double));

    for (int32 j = 0; j < model->k; ++j) {
        CHECK_FOR_INTERRUPTS();
        pgkm_model_centroid(model, j, plot->centroid);
        for (int32 f = 0; f < model->d; ++f)
            strongest[f] = Max(strongest[f], fabs(deviations_of(&plot->profile, f, plot->centroid[f])));
    }
    plot->n_features = Min(model->d, most);
    plot->features = choose(model->d, plot->n_features, [&](int32 a, int32 b) { return strongest[a] > strongest[b]; });
}

/* Gives the parts of the card their places, and chooses what has none. The first column is of all rows. */
static void lay_out(ProfilePlot *plot, bool has_height)
{
    const PgkmModel *const model = &plot->profile.model;
    const double around = HEAD_HEIGHT + FOOT_HEIGHT + plot->frame.height - plot_box(&plot->frame).bottom;
    PlotBox *const cells = &plot->cells;
    double names = plot_text_width("feature", 11);

    if (!has_height)
        plot->frame.height = (int32)(plot_box(&plot->frame).top + around + Min(model->d, USUAL_FEATURES) * LINE_HEIGHT);
    *cells = plot_box(&plot->frame);
    cells->top += HEAD_HEIGHT;
    cells->bottom -= FOOT_HEIGHT;
    choose_features(plot, has_height ? (int32)((cells->bottom - cells->top) / LEAST_LINE) : USUAL_FEATURES);
    for (int32 i = 0; i < plot->n_features; ++i)
        names = Max(names, plot_text_width(plot->profile.names[plot->features[i]], 11));
    cells->left += Min(names, 0.35 * (cells->right - cells->left)) + 8;
    plot->n_clusters = Min(model->k, (int32)((cells->right - cells->left) / LEAST_COLUMN) - 1);
    plot->clusters =
        choose(model->k, plot->n_clusters, [model](int32 a, int32 b) { return model->sizes[a] > model->sizes[b]; });
    plot->column = (cells->right - cells->left) / (plot->n_clusters + 1);
    plot->line = (cells->bottom - cells->top) / plot->n_features;
}

static void begin(StringInfo svg, const ProfilePlot *plot)
{
    const PgkmModel *const model = &plot->profile.model;
    StringInfoData subtitle;

    initStringInfo(&subtitle);
    if (plot->rows > 0)
        appendStringInfo(&subtitle, "%s row%s, ", plot_count(plot->rows), plot->rows == 1 ? "" : "s");
    if (plot->n_features < model->d)
        appendStringInfo(&subtitle, "those %d of ", plot->n_features);
    appendStringInfoString(&subtitle, pgkm_counted(model->d, "feature"));
    if (plot->n_features < model->d)
        appendStringInfoString(&subtitle, " that differ most");
    if (plot->n_clusters < model->k)
        appendStringInfo(&subtitle, plot->rows > 0 ? ", the %d largest of %d clusters" : ", %d of %d clusters",
                         plot->n_clusters, model->k);
    plot_begin(svg, &plot->frame, psprintf("Profile of %s", pgkm_counted(model->k, "cluster")), subtitle.data);
}

/* A text in the middle of column i, from 0, unless it has no place there. Of a time the day is enough, of an interval
 * its days. */
static void draw_text(StringInfo svg, const ProfilePlot *plot, int32 i, double y, const char *words)
{
    const double font = plot->column < 44 ? 9 : 10;
    char *const text = pstrdup(words);
    char *const blank = strrchr(text, ' ');

    if (blank != NULL && strchr("-0123456789", blank[1]) != NULL && plot_text_width(text, font) > plot->column - 2)
        *blank = '\0';
    if (plot_text_width(text, font) <= plot->column - 2)
        plot_text(svg, plot->cells.left + (i + 0.5) * plot->column, y, "middle", font, text, INFINITY);
}

/* Names of clusters and features, sizes, and the means of all rows. */
static void draw_heads(StringInfo svg, const ProfilePlot *plot)
{
    const Profile *const profile = &plot->profile;
    const double top = plot->cells.top;

    appendStringInfoString(svg, "<g " PLOT_INK " font-weight=\"bold\">\n");
    draw_text(svg, plot, 0, top - 22, "all");
    for (int32 i = 0; i < plot->n_clusters; ++i)
        draw_text(svg, plot, i + 1, top - 22, psprintf("%d", plot->clusters[i]));
    appendStringInfoString(svg, "</g>\n<g " PLOT_SOFT ">\n");
    if (plot->rows > 0)
        draw_text(svg, plot, 0, top - 8, plot_count(plot->rows));
    for (int32 i = 0; plot->rows > 0 && i < plot->n_clusters; ++i)
        draw_text(svg, plot, i + 1, top - 8, plot_count(profile->model.sizes[plot->clusters[i]]));
    for (int32 i = 0; i < plot->n_features; ++i) {
        const int32 f = plot->features[i];

        draw_text(svg, plot, 0, top + (i + 0.5) * plot->line + 4, profile_text(profile, f, profile->means[f], DIGITS));
    }
    appendStringInfoString(svg, "</g>\n<g " PLOT_INK ">\n");
    for (int32 i = 0; i < plot->n_features; ++i)
        plot_text(svg, plot_box(&plot->frame).left, top + (i + 0.5) * plot->line + 4, "start", 11,
                  profile->names[plot->features[i]], plot->cells.left - plot_box(&plot->frame).left - 8);
    appendStringInfoString(svg, "</g>\n");
}

/* Colours are shades upon the card, so that they are right for a light and a dark one. */
static void draw_shade(StringInfo svg, double deviations, double x, double y, double width, double height)
{
    const double strength = Min(fabs(deviations), MOST_DEVIATIONS) / MOST_DEVIATIONS;

    if (strength > 0.005)
        appendStringInfo(svg,
                         "<rect fill=\"%s\" fill-opacity=\"%.2f\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                         "height=\"%.1f\"/>\n",
                         plot_colour(deviations < 0 ? 0 : 3), MOST_OPACITY * strength, x, y, width, height);
}

static void draw_cells(StringInfo svg, const ProfilePlot *plot)
{
    const Profile *const profile = &plot->profile;
    StringInfoData texts;

    initStringInfo(&texts);
    for (int32 i = 0; i < plot->n_clusters; ++i) {
        pgkm_model_centroid(&profile->model, plot->clusters[i], plot->centroid);
        for (int32 line = 0; line < plot->n_features; ++line) {
            const int32 f = plot->features[line];
            const double y = plot->cells.top + line * plot->line;

            draw_shade(svg, deviations_of(profile, f, plot->centroid[f]), plot->cells.left + (i + 1) * plot->column + 1,
                       y + 1, plot->column - 2, plot->line - 2);
            draw_text(&texts, plot, i + 1, y + 0.5 * plot->line + 4,
                      profile_text(profile, f, plot->centroid[f], DIGITS));
        }
    }
    appendStringInfo(svg, "<g " PLOT_INK ">\n%s</g>\n", texts.data);
}

/* What the colours mean. */
static void draw_foot(StringInfo svg, const ProfilePlot *plot)
{
    const double left = plot_box(&plot->frame).left;
    const double y = plot->cells.bottom + 12;

    for (int i = 0; i < 9; ++i)
        draw_shade(svg, i / 2.0 - MOST_DEVIATIONS, left + 14 * i, y, 14, 12);
    appendStringInfo(svg,
                     "<path class=\"pgkm-frame\" fill=\"none\" stroke=\"#afb8c1\" d=\"M%.1f %.1fh126v12h-126z\"/>\n"
                     "<g " PLOT_SOFT ">\n",
                     left, y);
    plot_text(svg, left + 134, y + 10, "start", 11,
              psprintf("-2 to 2 standard deviations of the %s from the mean",
                       plot->profile.knows_deviations ? "rows" : "centroids"),
              plot->cells.right - left - 134);
    appendStringInfoString(svg, "</g>\n");
}

/* kmeans_profile_plot(model, width, height, title) -> text: a line for each feature, a column for each cluster. */
Datum pgkm_profile_plot(PG_FUNCTION_ARGS)
{
    ProfilePlot plot = {};
    StringInfoData svg;

    if (PG_ARGISNULL(PROFILE_MODEL))
        PG_RETURN_NULL();
    plot_frame_arguments(&plot.frame, fcinfo, PROFILE_WIDTH);
    profile_read(PG_GETARG_DATUM(PROFILE_MODEL), &plot.profile);
    plot.centroid = (double *)palloc(plot.profile.model.d * sizeof(double));
    for (int32 j = 0; j < plot.profile.model.k; ++j)
        plot.rows = (int64)((uint64)plot.rows + (uint64)plot.profile.model.sizes[j]);
    lay_out(&plot, !PG_ARGISNULL(PROFILE_HEIGHT));
    begin(&svg, &plot);
    draw_cells(&svg, &plot);
    draw_heads(&svg, &plot);
    draw_foot(&svg, &plot);
    return plot_end(&svg);
}
