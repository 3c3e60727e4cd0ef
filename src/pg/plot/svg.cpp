/*
 * svg.cpp - card, texts, marks and axes of a picture.
 */
#include "pg/plot/svg.h"

#include <cmath>

extern "C" {
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/xml.h"
}

#define MARGIN 20
#define FONTS "system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,'DejaVu Sans',sans-serif"

/* A style only says what turns dark: elsewhere attributes hold. */
#define STYLE                                                                                                     \
    "<style type=\"text/css\">@media (prefers-color-scheme:dark){.pgkm-card{fill:#0d1117}.pgkm-ink{fill:#e6edf3}" \
    ".pgkm-soft{fill:#9da7b3}.pgkm-grid{stroke:#222933}.pgkm-frame{stroke:#4b535d}}</style>\n"

int32 plot_int_argument(FunctionCallInfo fcinfo, int number, const char *name, int32 least, int32 most, int32 usual)
{
    const int32 value = PG_ARGISNULL(number) ? usual : PG_GETARG_INT32(number);

    if (value < least || value > most)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%s must be between %d and %d, not %d", name, least, most, value)));
    return value;
}

void plot_frame_arguments(PlotFrame *frame, FunctionCallInfo fcinfo, int number)
{
    frame->width = plot_int_argument(fcinfo, number, "width", 320, 4000, 720);
    frame->height = plot_int_argument(fcinfo, number + 1, "height", 240, 4000, 480);
    frame->title = PG_ARGISNULL(number + 2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(number + 2));
}

char *plot_count(int64 count)
{
    return TextDatumGetCString(
        DirectFunctionCall2(int8_to_char, Int64GetDatum(count), CStringGetTextDatum("FM9,999,999,999,999,999,999")));
}

static double letter_width(const char *letter, double font)
{
    return 0.6 * font * Max(pg_dsplen(letter), 0);
}

double plot_text_width(const char *words, double font)
{
    double width = 0;

    for (; *words != '\0'; words += pg_mblen(words))
        width += letter_width(words, font);
    return width;
}

/* What XML has no place for: most control characters, U+FFFE and U+FFFF. */
static bool is_no_xml(const char *letter, int length)
{
    return (unsigned char)*letter < 0x20 || *letter == 0x7f ||
           (length == 3 && memcmp(letter, "\xef\xbf", 2) == 0 && (unsigned char)letter[2] >= 0xbe);
}

/* Words as the content of an element. */
static const char *content(const char *words, double font, double room)
{
    const bool cut = plot_text_width(words, font) > room;
    double width = cut ? font : 0;
    StringInfoData text;

    initStringInfo(&text);
    for (int length; *words != '\0'; words += length) {
        length = pg_mblen(words);
        width += letter_width(words, font);
        if (cut && width > room)
            break;
        if (is_no_xml(words, length))
            appendStringInfoChar(&text, ' ');
        else
            appendBinaryStringInfo(&text, words, length);
    }
    if (cut)
        appendStringInfoString(&text, "...");
    return escape_xml(text.data);
}

void plot_text(StringInfo svg, double x, double y, const char *anchor, double font, const char *words, double room)
{
    appendStringInfo(svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%g\">%s</text>\n", x, y, anchor,
                     font, content(words, font, room));
}

PlotBox plot_box(const PlotFrame *frame)
{
    const bool has_title = frame->title == NULL || frame->title[0] != '\0';

    return {MARGIN, has_title ? 70.0 : 50.0, frame->width - (double)MARGIN, frame->height - 14.0};
}

void plot_begin(StringInfo svg, const PlotFrame *frame, const char *title, const char *subtitle)
{
    const PlotBox box = plot_box(frame);

    if (frame->title != NULL)
        title = frame->title;
    initStringInfo(svg);
    appendStringInfo(svg,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" height=\"%d\" "
                     "viewBox=\"0 0 %d %d\" font-family=\"%s\">\n<title>%s</title>\n<desc>%s</desc>\n" STYLE,
                     frame->width, frame->height, frame->width, frame->height, FONTS, content(title, 1, INFINITY),
                     content(subtitle, 1, INFINITY));
    appendStringInfo(svg,
                     "<g class=\"pgkm-frame\" stroke=\"#afb8c1\"><rect class=\"pgkm-card\" fill=\"#ffffff\" "
                     "x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"8\"/></g>\n",
                     frame->width - 1, frame->height - 1);
    appendStringInfoString(svg, "<g " PLOT_INK " font-weight=\"bold\">\n");
    if (title[0] != '\0')
        plot_text(svg, box.left, 34, "start", 16, title, (box.right - box.left) / 1.1); /* bold is wider */
    appendStringInfoString(svg, "</g>\n<g " PLOT_SOFT ">\n");
    plot_text(svg, box.left, box.top - 16, "start", 12, subtitle, box.right - box.left);
    appendStringInfoString(svg, "</g>\n");
}

Datum plot_end(StringInfo svg)
{
    appendStringInfoString(svg, "</svg>\n");
    return PointerGetDatum(cstring_to_text_with_len(svg->data, svg->len));
}

/* A small and a large mark: steps from its middle. The first two are lines so short that only their ends show. They
 * have a length, since not every renderer draws the ends of a line that has none. */
struct Shape {
    const char *steps[2];
    double stroke[2]; /* widths */
    const char *ends;
};

static const Shape shapes[] = {
    {{"h.1", "h.1"}, {4, 7.5}, "round"},
    {{"h.1", "h.1"}, {3.6, 6.6}, "square"},
    {{"m0-2.4l2.3 4.1h-4.6z", "m0-4.6l4.4 7.9h-8.8z"}, {0, 0}, "butt"},
    {{"m0-2.7l2.4 2.7-2.4 2.7-2.4-2.7z", "m0-5l4.5 5-4.5 5-4.5-5z"}, {0, 0}, "butt"},
    {{"m-1.7-1.7l3.4 3.4m0-3.4l-3.4 3.4", "m-3.2-3.2l6.4 6.4m0-6.4l-6.4 6.4"}, {1.6, 3}, "butt"},
    {{"m0 2.4l2.3-4.1h-4.6z", "m0 4.6l4.4-7.9h-8.8z"}, {0, 0}, "butt"},
};
static const Shape no_cluster = {{"m-2 0h4m-2-2v4", "m-3 0h6m-3-3v6"}, {1, 1}, "butt"};

/* Okabe and Ito's colours without yellow, which white swallows, and with grey for black, which dark does. */
static const char *const colours[] = {"#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#8a8a8a"};

static const Shape *shape_of(int64 i)
{
    return i == PLOT_NO_CLUSTER ? &no_cluster : &shapes[i / lengthof(colours) % lengthof(shapes)];
}

const char *plot_colour(int64 i)
{
    return i == PLOT_NO_CLUSTER ? "#b8b8b8" : colours[i % lengthof(colours)];
}

void plot_marks_begin(StringInfo svg, int64 i, bool large)
{
    const Shape *const shape = shape_of(i);

    appendStringInfo(svg, "<path fill=\"%s\" stroke=\"%s\" stroke-width=\"%g\" stroke-linecap=\"%s\" d=\"",
                     plot_colour(i), plot_colour(i), shape->stroke[large], shape->ends);
}

void plot_mark(StringInfo svg, int64 i, bool large, double x, double y)
{
    appendStringInfo(svg, "M%.1f %.1f%s", x, y, shape_of(i)->steps[large]);
}

void plot_marks_end(StringInfo svg)
{
    appendStringInfoString(svg, "\"/>\n");
}

/* 1, 2 or 5 times a power of ten: about `raw`. */
static double round_step(double raw)
{
    const double power = pow(10, floor(log10(raw)));
    const double digits = raw / power;

    return power * (digits < 1.5 ? 1 : digits < 3.5 ? 2 : digits < 7.5 ? 5 : 10);
}

/* Some room for what lies at the ends, but below counts from 0; more where all values are equal, or so near that
 * nothing lies between them. */
static void widen(PlotAxis *axis, double low, double high, bool whole)
{
    double room = (high - low) * 0.05;

    if (!(room > 1e-290) || low + room == low || high - room == high)
        room = whole || fabs(low) < 1e-290 ? 0.5 : fabs(low) / 2;
    axis->low = whole && low == 0 ? 0 : low - room;
    axis->high = high + room;
}

#define MOST_TICKS 16

void axis_make(PlotAxis *axis, const char *name, double low, double high, double begin, double end, bool whole)
{
    *axis = {name, 0, 0, begin, end, 0, 0, 0, 0};
    widen(axis, low, high, whole);

    const double wanted = Min(Max(fabs(end - begin) / (begin > end ? 45 : 80), 3.0), MOST_TICKS / 1.6);
    const double raw = (axis->high - axis->low) / wanted;

    axis->step = round_step(whole ? Max(raw, 1.0) : raw);
    axis->first = ceil(axis->low / axis->step) * axis->step;
    while (axis->n_ticks < MOST_TICKS && axis_tick(axis, axis->n_ticks) <= axis->high)
        ++axis->n_ticks;
    /* Far from 0 labels say what lies above the first tick. */
    if (Max(fabs(axis->low), fabs(axis->high)) > 1e6 * axis->step) {
        axis->origin = axis->first;
        axis->name = psprintf("%s %c %.15g", name, axis->origin < 0 ? '+' : '-', fabs(axis->origin));
    }
}

static const char *tick_label(const PlotAxis *axis, int i)
{
    const double value = axis_tick(axis, i) - axis->origin;

    if (axis->step >= 1 && fabs(value) < 1e7)
        return plot_count((int64)rint(value));
    return psprintf("%.7g", fabs(value) < axis->step / 2 ? 0 : value);
}

static void draw_grid(StringInfo svg, const PlotAxis *x, const PlotAxis *y)
{
    appendStringInfoString(svg, "<path class=\"pgkm-grid\" fill=\"none\" stroke=\"#e4e8ec\" d=\"");
    for (int i = 0; i < x->n_ticks; ++i)
        appendStringInfo(svg, "M%.1f %.1fV%.1f", axis_place(x, axis_tick(x, i)), y->begin, y->end);
    for (int i = 0; i < y->n_ticks; ++i)
        appendStringInfo(svg, "M%.1f %.1fH%.1f", x->begin, axis_place(y, axis_tick(y, i)), x->end);
    appendStringInfo(svg,
                     "\"/>\n<path class=\"pgkm-frame\" fill=\"none\" stroke=\"#afb8c1\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n",
                     x->begin, y->end, y->begin, x->end);
}

void axes_draw(StringInfo svg, const PlotAxis *x, const PlotAxis *y)
{
    double free_from = 0; /* a label that would touch the one before is left out */

    draw_grid(svg, x, y);
    appendStringInfoString(svg, "<g " PLOT_SOFT ">\n");
    for (int i = 0; i < x->n_ticks; ++i) {
        const double place = axis_place(x, axis_tick(x, i));
        const char *const label = tick_label(x, i);
        const double half = plot_text_width(label, 11) / 2;

        if (place - half < free_from)
            continue;
        plot_text(svg, place, y->begin + 16, "middle", 11, label, INFINITY);
        free_from = place + half + 8;
    }
    for (int i = 0; i < y->n_ticks; ++i)
        plot_text(svg, x->begin - 7, axis_place(y, axis_tick(y, i)) + 4, "end", 11, tick_label(y, i), INFINITY);
    appendStringInfoString(svg, "</g>\n<g " PLOT_INK ">\n");
    plot_text(svg, (x->begin + x->end) / 2, y->begin + 36, "middle", 12, x->name, x->end - x->begin);
    if (y->name[0] != '\0') {
        appendStringInfo(svg, "<g transform=\"translate(%.1f %.1f) rotate(-90)\">\n", x->begin - AXIS_WIDTH + 11,
                         (y->begin + y->end) / 2);
        plot_text(svg, 0, 0, "middle", 12, y->name, y->begin - y->end);
        appendStringInfoString(svg, "</g>\n");
    }
    appendStringInfoString(svg, "</g>\n");
}
