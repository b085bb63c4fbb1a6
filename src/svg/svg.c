/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/svg/svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"

#define COORDINATE_MOST 1e6 /* pixels; what is not a number is 0 */
#define MARK_RADIUS     4.2
#define LINE_WIDTH      "1"
#define CURVE_WIDTH     "2.2"
#define FONT            "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"

/* Contrast with the page: texts 4.5 or more (WCAG), data 3 or more but the yellow, which is never alone. */
static const struct {
    const char *name, *light, *dark;
} inks[QSF_INK_N] = {
    [QSF_INK_PAGE] = { "page", "#ffffff", "#0d1117" },
    [QSF_INK_TEXT] = { "text", "#1f2328", "#e6edf3" },
    [QSF_INK_FAINT] = { "faint", "#59636e", "#9198a1" },
    [QSF_INK_GRID] = { "grid", "#e4e8ec", "#262c34" },
    [QSF_INK_BAND] = { "band", "#eef4fb", "#172331" },
    [QSF_INK_BLUE] = { "blue", "#0072b2", "#4aa8e0" },
    [QSF_INK_ORANGE] = { "orange", "#d55e00", "#f0883e" },
    [QSF_INK_GREEN] = { "green", "#009e73", "#2fbf96" },
    [QSF_INK_PURPLE] = { "purple", "#b4579a", "#d88cc0" },
    [QSF_INK_YELLOW] = { "yellow", "#e0a800", "#e8c547" },
    [QSF_INK_GRAY] = { "gray", "#8a939c", "#6e7781" },
};

/* ---- numbers and texts ---- */

/* Rounded to tenths, without a trailing zero. */
static void put_number(QsfStrbuf *b, double v) {
    if (!isfinite(v)) v = 0;
    if (v > COORDINATE_MOST) v = COORDINATE_MOST;
    if (v < -COORDINATE_MOST) v = -COORDINATE_MOST;
    const long tenths = lround(v * 10), whole = labs(tenths) / 10, rest = labs(tenths) % 10;
    qsf_strbuf_addf(b, "%s%ld", tenths < 0 ? "-" : "", whole);
    if (rest != 0) qsf_strbuf_addf(b, ".%ld", rest);
}

static void attribute(QsfStrbuf *b, const char *name, double v) {
    qsf_strbuf_addf(b, " %s=\"", name);
    put_number(b, v);
    qsf_strbuf_addc(b, '"');
}

/* how: "fill" or "stroke"; the style sheet has a class for each ink of either. */
static void color(QsfStrbuf *b, const char *how, QsfInk ink) {
    qsf_strbuf_addf(b, " class=\"%c-%s\" %s=\"%s\"", *how, inks[ink].name, how, inks[ink].light);
}

/* XML 1.0 cannot represent these at all. */
static bool is_forbidden(uint32_t cp) {
    return cp < 0x20 || (cp >= 0x7F && cp < 0xA0) || cp > 0x10FFFF || (cp & 0xFFFE) == 0xFFFE;
}

/* Markup is escaped; what cannot be shown becomes '?'. */
static void put_text(QsfStrbuf *b, const char *text) {
    uint32_t cp;
    for (size_t len = strlen(text), n; len > 0; text += n, len -= n) {
        n = qsf_utf8_next(text, len, &cp);
        if (is_forbidden(cp) || qsf_utf8_is_hidden(cp))
            qsf_strbuf_addc(b, '?');
        else if (cp == '<' || cp == '>')
            qsf_strbuf_adds(b, cp == '<' ? "&lt;" : "&gt;");
        else if (cp == '&')
            qsf_strbuf_adds(b, "&amp;");
        else if (cp == '"' || cp == '\'')
            qsf_strbuf_adds(b, cp == '"' ? "&quot;" : "&#39;");
        else
            qsf_strbuf_add(b, text, n);
    }
}

/* Hundredths of the size of the font, as in Helvetica, or a little more. */
static unsigned advance(uint32_t cp) {
    if (cp >= 0x2E80) return 100; /* East Asian */
    if (cp == ' ' || (cp < 0x80 && strchr(".,:;!'|()[]ijlIft/", (int)cp) != NULL)) return 34;
    if (cp < 0x80 && strchr("mwMW%@", (int)cp) != NULL) return 92;
    if (cp >= 'A' && cp <= 'Z') return 70;
    return 58;
}

double qsf_svg_width(const char *text, double size) {
    uint32_t cp;
    unsigned sum = 0;
    for (size_t len = strlen(text), n; len > 0; text += n, len -= n) {
        n = qsf_utf8_next(text, len, &cp);
        sum += advance(cp);
    }
    return sum * size / 100;
}

void qsf_svg_fit(const char *text, double size, double width, char *dst, size_t cap) {
    static const char dots[] = "\xE2\x80\xA6";
    const bool whole = qsf_svg_width(text, size) <= width && strlen(text) < cap;
    const double room = width - qsf_svg_width(dots, size);
    uint32_t cp;
    unsigned sum = 0;
    size_t at = 0;
    for (size_t len = strlen(text), n; len > 0 && !whole; at += n, len -= n) {
        n = qsf_utf8_next(text + at, len, &cp);
        sum += advance(cp);
        if (sum * size / 100 > room || at + n + sizeof dots > cap) break;
    }
    if (whole)
        snprintf(dst, cap, "%s", text);
    else
        snprintf(dst, cap, "%.*s%s", (int)at, text, dots);
}

/* ---- the picture ---- */

static void put_style(QsfStrbuf *b) {
    qsf_strbuf_adds(b, "<style>@media (prefers-color-scheme: dark) {\n");
    for (int i = 0; i < QSF_INK_N; i++)
        qsf_strbuf_addf(b, ".f-%s { fill: %s } .s-%s { stroke: %s }\n", inks[i].name, inks[i].dark,
                        inks[i].name, inks[i].dark);
    qsf_strbuf_adds(b, "}</style>\n");
}

void qsf_svg_begin(QsfStrbuf *b, double width, double height, const char *title, const char *desc) {
    qsf_strbuf_adds(b, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    attribute(b, "width", width);
    attribute(b, "height", height);
    qsf_strbuf_adds(b, " viewBox=\"0 0 ");
    put_number(b, width);
    qsf_strbuf_addc(b, ' ');
    put_number(b, height);
    qsf_strbuf_adds(b, "\" role=\"img\" aria-labelledby=\"t d\" font-family=\"" FONT "\">\n<title id=\"t\">");
    put_text(b, title);
    qsf_strbuf_adds(b, "</title>\n<desc id=\"d\">");
    put_text(b, desc);
    qsf_strbuf_adds(b, "</desc>\n");
    put_style(b);
    qsf_svg_rect(b, QSF_INK_PAGE, 0, 0, width, height);
}

void qsf_svg_end(QsfStrbuf *b) { qsf_strbuf_adds(b, "</svg>\n"); }

void qsf_svg_rect(QsfStrbuf *b, QsfInk ink, double x, double y, double w, double h) {
    qsf_strbuf_adds(b, "<rect");
    attribute(b, "x", x);
    attribute(b, "y", y);
    attribute(b, "width", w > 0 ? w : 0);
    attribute(b, "height", h > 0 ? h : 0);
    color(b, "fill", ink);
    qsf_strbuf_adds(b, "/>\n");
}

void qsf_svg_line(QsfStrbuf *b, QsfInk ink, QsfPoint from, QsfPoint to) {
    qsf_strbuf_adds(b, "<line");
    attribute(b, "x1", from.x);
    attribute(b, "y1", from.y);
    attribute(b, "x2", to.x);
    attribute(b, "y2", to.y);
    color(b, "stroke", ink);
    qsf_strbuf_adds(b, " stroke-width=\"" LINE_WIDTH "\"/>\n");
}

static void put_points(QsfStrbuf *b, const QsfPoint *at, size_t n) {
    qsf_strbuf_adds(b, " points=\"");
    for (size_t i = 0; i < n; i++) {
        if (i > 0) qsf_strbuf_addc(b, ' ');
        put_number(b, at[i].x);
        qsf_strbuf_addc(b, ',');
        put_number(b, at[i].y);
    }
    qsf_strbuf_addc(b, '"');
}

void qsf_svg_curve(QsfStrbuf *b, QsfInk ink, const QsfPoint *at, size_t n) {
    if (n < 2) return;
    qsf_strbuf_adds(b, "<polyline");
    put_points(b, at, n);
    color(b, "stroke", ink);
    qsf_strbuf_adds(b, " stroke-width=\"" CURVE_WIDTH "\" stroke-linejoin=\"round\" fill=\"none\"/>\n");
}

void qsf_svg_mark(QsfStrbuf *b, QsfInk ink, QsfMark mark, QsfPoint at) {
    const double r = MARK_RADIUS;
    if (mark == QSF_MARK_SQUARE) {
        qsf_svg_rect(b, ink, at.x - r + 0.4, at.y - r + 0.4, 2 * r - 0.8, 2 * r - 0.8);
        return;
    }
    if (mark == QSF_MARK_DIAMOND) {
        const QsfPoint p[] = {
            { at.x, at.y - r - 1 }, { at.x + r + 1, at.y }, { at.x, at.y + r + 1 }, { at.x - r - 1, at.y }
        };
        qsf_strbuf_adds(b, "<polygon");
        put_points(b, p, sizeof p / sizeof *p);
    } else {
        qsf_strbuf_adds(b, "<circle");
        attribute(b, "cx", at.x);
        attribute(b, "cy", at.y);
        attribute(b, "r", r);
    }
    color(b, "fill", ink);
    qsf_strbuf_adds(b, "/>\n");
}

void qsf_svg_text(QsfStrbuf *b, const QsfSvgText *t, const char *text) {
    static const char *const anchors[] = { "", " text-anchor=\"middle\"", " text-anchor=\"end\"" };
    qsf_strbuf_adds(b, "<text");
    attribute(b, "x", t->x);
    attribute(b, "y", t->y);
    attribute(b, "font-size", t->size);
    color(b, "fill", t->ink);
    qsf_strbuf_addf(b, "%s%s>", anchors[t->anchor], t->bold ? " font-weight=\"600\"" : "");
    put_text(b, text);
    qsf_strbuf_adds(b, "</text>\n");
}
