/*
 * svg.cpp - text of an SVG 1.1 picture.
 */
#include "pg/plot/svg.h"

#include <cmath>

extern "C" {
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
}

#define MARGIN 20
#define FONTS "system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,'DejaVu Sans',sans-serif"

static const char *const colours[PLOT_COLOURS] = {"#0072b2", "#e69f00", "#009e73", "#d55e00",
                                                  "#56b4e9", "#cc79a7", "#8a8a8a"};

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
    frame->title = PG_ARGISNULL(number + 2) ? NULL : plot_user_text(text_to_cstring(PG_GETARG_TEXT_PP(number + 2)));
}

const char *plot_user_text(const char *text)
{
    char *const copy = pstrdup(text);

    for (char *c = copy; *c != '\0'; ++c)
        if (*c == '\x1e' || *c == '\x1f')
            *c = ' ';
    return copy;
}

/* A style only says what turns dark: elsewhere attributes hold. */
static const char style[] = "<style type=\"text/css\">@media (prefers-color-scheme:dark){"
                            ".pgkm-card{fill:#0d1117}.pgkm-ink{fill:#e6edf3}.pgkm-soft{fill:#9da7b3}"
                            ".pgkm-grid{stroke:#222933}.pgkm-frame{stroke:#4b535d}}</style>\n";

static bool has_title(const PlotFrame *frame)
{
    return frame->title == NULL || frame->title[0] != '\0';
}

double svg_top(const PlotFrame *frame)
{
    return MARGIN + (has_title(frame) ? 20 : 0) + 14 + 16;
}

void svg_begin(StringInfo svg, const PlotFrame *frame, const char *title, const char *subtitle)
{
    const double room = frame->width - 2 * MARGIN;

    if (frame->title != NULL)
        title = frame->title;
    appendStringInfo(svg,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" height=\"%d\" "
                     "viewBox=\"0 0 %d %d\" font-family=\"%s\" font-size=\"11\">\n<title>",
                     frame->width, frame->height, frame->width, frame->height, FONTS);
    svg_words(svg, title, 1, INFINITY);
    appendStringInfoString(svg, "</title>\n<desc>");
    svg_words(svg, subtitle, 1, INFINITY);
    appendStringInfo(svg,
                     "</desc>\n%s<g " PLOT_FRAME
                     "><rect x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"8\" " PLOT_CARD "/></g>\n",
                     style, frame->width - 1, frame->height - 1);
    if (has_title(frame)) {
        appendStringInfoString(svg, "<g " PLOT_INK " font-weight=\"bold\">");
        svg_text(svg, MARGIN, MARGIN + 14, "start", title, 16, room / 1.15); /* bold is wider */
        appendStringInfoString(svg, "</g>\n");
    }
    appendStringInfoString(svg, "<g " PLOT_SOFT ">");
    svg_text(svg, MARGIN, svg_top(frame) - 16, "start", subtitle, 12, room);
    appendStringInfoString(svg, "</g>\n");
}

Datum svg_end(StringInfo svg)
{
    appendStringInfoString(svg, "</svg>\n");
    return PointerGetDatum(cstring_to_text_with_len(svg->data, svg->len));
}

void svg_length(StringInfo svg, double value)
{
    const long tenths = lround(value * 10);
    const long rest = labs(tenths % 10);

    if (tenths < 0)
        appendStringInfoChar(svg, '-');
    appendStringInfo(svg, "%ld", labs(tenths / 10));
    if (rest != 0)
        appendStringInfo(svg, ".%ld", rest);
}

void svg_point(StringInfo svg, double x, double y)
{
    svg_length(svg, x);
    appendStringInfoChar(svg, ' ');
    svg_length(svg, y);
}

/* About as wide as letters of usual fonts are, in units of the font's size. */
static double letter_width(const char *letter)
{
    if (*letter == '\x1e')
        return 0.84;
    if (strchr("iljtfrI.,;:'|!()[] ", *letter) != NULL)
        return 0.36;
    if (strchr("mwMW@%", *letter) != NULL)
        return 0.88;
    if (*letter >= 'A' && *letter <= 'Z')
        return 0.7;
    if (*letter >= '0' && *letter <= '9')
        return 0.63;
    return 0.58 * Max(pg_dsplen(letter), 0);
}

double svg_text_width(const char *words, double font)
{
    double width = 0;

    for (; *words != '\0'; words += pg_mblen(words))
        width += letter_width(words) * font;
    return width;
}

/* What XML has no place for: most control characters, U+FFFE and U+FFFF. */
static bool is_no_xml(const char *letter, int length)
{
    return (unsigned char)*letter < 0x20 || *letter == 0x7f ||
           (length == 3 && memcmp(letter, "\xef\xbf", 2) == 0 && (unsigned char)letter[2] >= 0xbe);
}

static void put_letter(StringInfo svg, const char *letter, int length)
{
    switch (*letter) {
    case '&':
        appendStringInfoString(svg, "&amp;");
        return;
    case '<':
        appendStringInfoString(svg, "&lt;");
        return;
    case '>':
        appendStringInfoString(svg, "&gt;");
        return;
    case '"':
        appendStringInfoString(svg, "&quot;");
        return;
    case '\x1e': /* ours: a minus sign */
        appendStringInfoString(svg, "&#8722;");
        return;
    case '\x1f': /* ours: a dot between two statements */
        appendStringInfoString(svg, "&#183;");
        return;
    }
    if (is_no_xml(letter, length))
        appendStringInfoChar(svg, ' ');
    else
        appendBinaryStringInfo(svg, letter, length);
}

void svg_words(StringInfo svg, const char *words, double font, double room)
{
    const bool cut = svg_text_width(words, font) > room;
    double width = cut ? font : 0;

    for (int length; *words != '\0'; words += length) {
        length = pg_mblen(words);
        width += letter_width(words) * font;
        if (cut && width > room)
            break;
        put_letter(svg, words, length);
    }
    if (cut)
        appendStringInfoString(svg, "&#8230;");
}

void svg_text(StringInfo svg, double x, double y, const char *anchor, const char *words, double font, double room)
{
    appendStringInfoString(svg, "<text x=\"");
    svg_length(svg, x);
    appendStringInfoString(svg, "\" y=\"");
    svg_length(svg, y);
    appendStringInfoChar(svg, '"');
    if (strcmp(anchor, "start") != 0)
        appendStringInfo(svg, " text-anchor=\"%s\"", anchor);
    if (font != 11)
        appendStringInfo(svg, " font-size=\"%g\"", font);
    appendStringInfoChar(svg, '>');
    svg_words(svg, words, font, room);
    appendStringInfoString(svg, "</text>");
}

void svg_line(StringInfo svg, double x1, double y1, double x2, double y2)
{
    appendStringInfoString(svg, "<path d=\"M");
    svg_point(svg, x1, y1);
    appendStringInfoChar(svg, 'L');
    svg_point(svg, x2, y2);
    appendStringInfoString(svg, "\"/>");
}

const char *svg_colour(int64 i)
{
    return colours[i % PLOT_COLOURS];
}

/* A marker: where its outline starts, and the rest of it, in units of the radius. The first two are a disc and a
 * square: lines of no length with round or square ends. */
struct Shape {
    double x;
    double y;
    const char *moves; /* one letter a step: the command of a path; numbers follow in `steps` */
    double steps[12];
    bool stroked;
};

static const Shape shapes[PLOT_SHAPES] = {
    {0, 0, "h", {0}, true},
    {0, 0, "h", {0}, true},
    {0, -1.2, "lhz", {1.15, 2.05, -2.3}, false},
    {0, -1.35, "lllz", {1.2, 1.35, -1.2, 1.35, -1.2, -1.35}, false},
    {-0.85, -0.85, "lml", {1.7, 1.7, 0, -1.7, -1.7, 1.7}, true},
    {0, 1.2, "lhz", {1.15, -2.05, -2.3}, false},
};

static const Shape *shape_of(int64 i)
{
    return &shapes[i / PLOT_COLOURS % PLOT_SHAPES];
}

void svg_dots_begin(StringInfo svg, int64 i, double r)
{
    const Shape *const shape = shape_of(i);

    static const char *const ends[] = {" stroke-linecap=\"round\"", " stroke-linecap=\"square\""};
    static const double widths[] = {2, 1.75};
    const ptrdiff_t number = shape - shapes;

    if (!shape->stroked)
        appendStringInfo(svg, "<path fill=\"%s\" d=\"", svg_colour(i));
    else
        appendStringInfo(svg, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%g\"%s d=\"", svg_colour(i),
                         rint(r * (number < 2 ? widths[number] : 0.8) * 10) / 10, number < 2 ? ends[number] : "");
}

void svg_dot(StringInfo svg, int64 i, double r, double x, double y)
{
    const Shape *const shape = shape_of(i);
    const double *step = shape->steps;

    appendStringInfoChar(svg, 'M');
    svg_point(svg, x + shape->x * r, y + shape->y * r);
    for (const char *move = shape->moves; *move != '\0'; ++move) {
        appendStringInfoChar(svg, *move);
        if (*move == 'z')
            continue;
        svg_length(svg, *step++ * r);
        if (*move == 'h' || *move == 'v')
            continue;
        if (*step >= 0)
            appendStringInfoChar(svg, ' ');
        svg_length(svg, *step++ * r);
    }
}

void svg_dots_end(StringInfo svg)
{
    appendStringInfoString(svg, "\"/>\n");
}

char *plot_number(double value, int decimals)
{
    char *const digits = psprintf("%.*f", decimals, fabs(value));
    const char *const point = strchr(digits, '.');
    const int whole = point == NULL ? (int)strlen(digits) : (int)(point - digits);
    StringInfoData text;

    initStringInfo(&text);
    if (value < 0 && strspn(digits, "0.") != strlen(digits))
        appendStringInfoChar(&text, '\x1e');
    for (int i = 0; i < whole; ++i) {
        if (i > 0 && (whole - i) % 3 == 0)
            appendStringInfoChar(&text, ',');
        appendStringInfoChar(&text, digits[i]);
    }
    appendStringInfoString(&text, digits + whole);
    return text.data;
}

char *plot_short_number(double value)
{
    const double size = fabs(value);

    if (value == 0)
        return pstrdup("0");
    if (size >= 1e-3 && size < 1e7)
        return plot_number(value, Max(0, 3 - (int)floor(log10(size))));

    char *const text = psprintf("%s%.3e", value < 0 ? "\x1e" : "", size);
    char *const exponent = strchr(text, 'e');

    return psprintf("%.*se%d", (int)(exponent - text), text, atoi(exponent + 1));
}
