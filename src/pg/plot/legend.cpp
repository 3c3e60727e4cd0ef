/*
 * legend.cpp - the legend of a plot, and the numbers of its clusters.
 */
#include "pg/plot/legend.h"

#include <cmath>

#define MARK_WIDTH 16
#define COLUMN_GAP 18
#define FONT 11

static double square(double value)
{
    return value * value;
}

/* How near other clusters of this colour are to cluster j; `but` does not count. */
static double nearness(const Plane *plane, int32 j, int32 colour, int32 but, const double *x, const double *y)
{
    double sum = 0;

    for (int32 i = 0; i < plane->n_clusters; ++i)
        if (i != j && i != but && plane->clusters[i].style % PLOT_COLOURS == colour)
            sum += 1 / (square(x[i] - x[j]) + square(y[i] - y[j]) + 1);
    return sum;
}

/* Swaps the styles of two clusters where their colours are farther from others of the same then. */
static bool swap_styles(Plane *plane, int32 a, int32 b, const double *x, const double *y)
{
    const int32 colour_a = plane->clusters[a].style % PLOT_COLOURS;
    const int32 colour_b = plane->clusters[b].style % PLOT_COLOURS;

    if (colour_a == colour_b ||
        nearness(plane, a, colour_b, b, x, y) + nearness(plane, b, colour_a, a, x, y) >=
            (nearness(plane, a, colour_a, b, x, y) + nearness(plane, b, colour_b, a, x, y)) * (1 - 1e-9))
        return false;

    const int32 style = plane->clusters[a].style;

    plane->clusters[a].style = plane->clusters[b].style;
    plane->clusters[b].style = style;
    return true;
}

void styles_choose(Plane *plane, const double *x, const double *y)
{
    const int32 n = plane->n_clusters;
    bool better = n > PLOT_COLOURS && n <= LEGEND_MOST_NUMBERS;

    for (int32 j = 0; j < n; ++j)
        plane->clusters[j].style = j;
    for (int round = 0; better && round < 20; ++round) {
        CHECK_FOR_INTERRUPTS();
        better = false;
        for (int32 a = 0; a < n; ++a)
            for (int32 b = a + 1; b < n; ++b)
                better = swap_styles(plane, a, b, x, y) || better;
    }
}

/* Entries that all clusters need. */
static int32 entries_needed(const Plane *plane)
{
    return plane->n_clusters + (plane->no_cluster > 0);
}

static double column_width(const PlotLegend *legend)
{
    return MARK_WIDTH + legend->label_width + 14 + legend->count_width;
}

static const char *label_text(int32 label)
{
    return psprintf("%d", label);
}

static const char *count_text(int64 rows)
{
    return plot_number((double)rows, 0);
}

void legend_make(PlotLegend *legend, const Plane *plane, const char *heading, double height, double room)
{
    const int32 needed = entries_needed(plane);

    memset(legend, 0, sizeof *legend);
    legend->plane = plane;
    legend->heading = heading;
    /* Lines move together before any is left out. */
    legend->line = Min(Max(height / (needed / 2 + 2), 14.0), 17.0);
    legend->rows = Max((int32)(height / legend->line) - 1, 1);

    const bool may_be_cut = needed > legend->rows;
    const int32 last = plane->n_clusters > 0 ? plane->clusters[plane->n_clusters - 1].label : 0;
    int64 most = plane->no_cluster;

    for (int32 j = 0; j < plane->n_clusters; ++j)
        most = Max(most, plane->clusters[j].rows);
    legend->label_width = Max(Min(svg_text_width(heading, FONT), 90), svg_text_width(label_text(last), FONT));
    if (may_be_cut || plane->no_cluster > 0)
        legend->label_width = Max(legend->label_width, svg_text_width("others", FONT));
    legend->count_width =
        Max(svg_text_width("rows", FONT), svg_text_width(count_text(may_be_cut ? plane->points.n : most), FONT));

    const int32 columns = may_be_cut && 2 * column_width(legend) + COLUMN_GAP <= room ? 2 : 1;

    legend->entries = Min(needed, columns * legend->rows);
    legend->rows = Min(legend->rows, legend->entries);
}

double legend_width(const PlotLegend *legend)
{
    return legend->entries > legend->rows ? 2 * column_width(legend) + COLUMN_GAP : column_width(legend);
}

/* One line: a mark (cluster -1: the grey cross of rows without a cluster; -2: none), a label, a number. */
static void draw_entry(StringInfo svg, const PlotLegend *legend, double left, double y, int32 cluster,
                       const char *label, const char *count)
{
    if (cluster >= 0) {
        svg_dots_begin(svg, legend->plane->clusters[cluster].style, 4);
        svg_dot(svg, legend->plane->clusters[cluster].style, 4, left + 5, y - 4);
        svg_dots_end(svg);
    } else if (cluster == -1) {
        appendStringInfoString(svg, "<path fill=\"none\" stroke=\"#8a8a8a\" d=\"M");
        svg_point(svg, left + 2, y - 4);
        appendStringInfoString(svg, "h6m-3-3v6\"/>");
    }
    svg_text(svg, left + MARK_WIDTH, y, "start", label, FONT, column_width(legend) - MARK_WIDTH - 30);
    svg_text(svg, left + column_width(legend), y, "end", count, FONT, INFINITY);
    appendStringInfoChar(svg, '\n');
}

static double entry_left(const PlotLegend *legend, double left, int32 entry)
{
    return left + entry / legend->rows * (column_width(legend) + COLUMN_GAP);
}

static double entry_y(const PlotLegend *legend, double top, int32 entry)
{
    return top + 10 + (entry % legend->rows + 1) * legend->line;
}

void legend_draw(StringInfo svg, const PlotLegend *legend, double left, double top)
{
    const Plane *const plane = legend->plane;
    const bool cut = entries_needed(plane) > legend->entries;
    const int32 whole = Min(plane->n_clusters, legend->entries - cut);
    int64 left_out = plane->no_cluster;

    appendStringInfoString(svg, "<g " PLOT_SOFT ">\n");
    for (int32 i = 0; i < legend->entries; i += legend->rows)
        draw_entry(svg, legend, entry_left(legend, left, i), top + 8, -2, legend->heading, "rows");
    appendStringInfoString(svg, "</g>\n<g " PLOT_INK ">\n");
    for (int32 j = 0; j < whole; ++j)
        draw_entry(svg, legend, entry_left(legend, left, j), entry_y(legend, top, j), j,
                   label_text(plane->clusters[j].label), count_text(plane->clusters[j].rows));
    for (int32 j = whole; j < plane->n_clusters; ++j)
        left_out += plane->clusters[j].rows;
    if (cut)
        draw_entry(svg, legend, entry_left(legend, left, whole), entry_y(legend, top, whole), -2, "others",
                   count_text(left_out));
    else if (plane->no_cluster > 0)
        draw_entry(svg, legend, entry_left(legend, left, whole), entry_y(legend, top, whole), -1, "none",
                   count_text(plane->no_cluster));
    appendStringInfoString(svg, "</g>\n");
}

/* Where the number of a cluster stands. */
struct Badge {
    double x;
    double y;
    double half; /* half its width */
    bool placed;
};

#define BADGE_RADIUS 8
#define BADGE_STEPS 12

static bool badge_fits(const Badge *badges, const int32 *order, int32 n, const Badge *badge, const PlotBox *box)
{
    if (badge->x - badge->half < box->left + 1 || badge->x + badge->half > box->right - 1 ||
        badge->y - BADGE_RADIUS < box->top + 1 || badge->y + BADGE_RADIUS > box->bottom - 1)
        return false;
    for (int32 i = 0; i < n; ++i) {
        const Badge *const other = &badges[order[i]];

        if (other->placed && fabs(other->x - badge->x) < other->half + badge->half + 1.5 &&
            fabs(other->y - badge->y) < 2 * BADGE_RADIUS + 1.5)
            return false;
    }
    return true;
}

/* The nearest free place on rings around the mean: four, or fewer in a small plot. */
static void place_badge(Badge *badges, const int32 *order, int32 n, const PlotBox *box, double x, double y)
{
    Badge *const badge = &badges[order[n]];

    const double size = Min(box->right - box->left, box->bottom - box->top);

    for (int ring = 0; ring <= Min(4, (int)(size / 90)) && !badge->placed; ++ring)
        for (int step = 0; step < (ring == 0 ? 1 : BADGE_STEPS) && !badge->placed; ++step) {
            const double angle = 2 * M_PI * step / BADGE_STEPS;
            const double away = ring == 0 ? 0 : 8 + 11 * ring;

            badge->x = x + away * cos(angle);
            badge->y = y + away * sin(angle);
            badge->placed = badge_fits(badges, order, n, badge, box);
        }
}

/* A dot in the colour of the cluster, with a white rim. */
static void draw_mean(StringInfo svg, int32 style, double x, double y)
{
    appendStringInfo(svg, "<circle r=\"3.5\" fill=\"%s\" stroke=\"#ffffff\" stroke-width=\"1.5\" cx=\"",
                     svg_colour(style));
    svg_length(svg, x);
    appendStringInfoString(svg, "\" cy=\"");
    svg_length(svg, y);
    appendStringInfoString(svg, "\"/>\n");
}

static void draw_badge(StringInfo svg, const Badge *badge, int32 style, const char *label)
{
    appendStringInfo(svg, "<rect rx=\"%d\" height=\"%d\" width=\"", BADGE_RADIUS, 2 * BADGE_RADIUS);
    svg_length(svg, 2 * badge->half);
    appendStringInfo(svg, "\" fill=\"#ffffff\" stroke=\"%s\" stroke-width=\"2\" x=\"", svg_colour(style));
    svg_length(svg, badge->x - badge->half);
    appendStringInfoString(svg, "\" y=\"");
    svg_length(svg, badge->y - BADGE_RADIUS);
    appendStringInfoString(svg, "\"/>");
    svg_text(svg, badge->x, badge->y + 3.6, "middle", label, 10, INFINITY);
    appendStringInfoChar(svg, '\n');
}

/* Large clusters choose their places first. */
static int compare_sizes(const void *a, const void *b, void *plane)
{
    const PlaneCluster *const clusters = ((const Plane *)plane)->clusters;
    const int32 left = *(const int32 *)a;
    const int32 right = *(const int32 *)b;

    if (clusters[left].rows != clusters[right].rows)
        return clusters[left].rows > clusters[right].rows ? -1 : 1;
    return left - right;
}

void numbers_draw(StringInfo svg, const Plane *plane, const PlotBox *box, const double *x, const double *y)
{
    const int32 n = plane->n_clusters;

    if (n > LEGEND_MOST_NUMBERS) {
        for (int32 j = 0; n <= LEGEND_MOST_MARKS && j < n; ++j)
            draw_mean(svg, plane->clusters[j].style, x[j], y[j]);
        return;
    }

    Badge badges[LEGEND_MOST_NUMBERS];
    int32 order[LEGEND_MOST_NUMBERS];

    for (int32 j = 0; j < n; ++j) {
        const double text = svg_text_width(label_text(plane->clusters[j].label), 10);

        badges[j] = {x[j], y[j], Max(text / 2 + 4, (double)BADGE_RADIUS), false};
        order[j] = j;
    }
    qsort_arg(order, n, sizeof *order, compare_sizes, (void *)plane);
    for (int32 i = 0; i < n; ++i)
        place_badge(badges, order, i, box, x[order[i]], y[order[i]]);
    appendStringInfoString(svg, "<g stroke=\"#6e7781\" stroke-width=\"1\">");
    for (int32 j = 0; j < n; ++j)
        if (badges[j].placed && hypot(badges[j].x - x[j], badges[j].y - y[j]) > 1)
            svg_line(svg, badges[j].x, badges[j].y, x[j], y[j]);
    appendStringInfoString(svg, "</g>\n");
    for (int32 j = 0; j < n; ++j)
        if (!badges[j].placed || hypot(badges[j].x - x[j], badges[j].y - y[j]) > 1)
            draw_mean(svg, plane->clusters[j].style, x[j], y[j]);
    appendStringInfoString(svg, "<g fill=\"#24292f\" font-weight=\"bold\">\n");
    for (int32 j = 0; j < n; ++j)
        if (badges[j].placed)
            draw_badge(svg, &badges[j], plane->clusters[j].style, label_text(plane->clusters[j].label));
    appendStringInfoString(svg, "</g>\n");
}
