/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Titles, grids, columns and stacks. */
#include "src/svg/chart.h"

#include <math.h>
#include <stdio.h>

#define COLUMN_MOST 44.0 /* pixels */
#define COLUMN_PART 0.64 /* of what a column has */
#define SLICE_GAP   1.0  /* between the parts of a stack */
#define SLICE_LEAST 0.4  /* thinner parts are not drawn */
#define LABEL_GAP   15.0
#define LIMIT_MOST  3.0 /* times the largest stack: lines above that are left out */

static double positive(double v) { return isfinite(v) && v > 0 ? v : 0; }

static double largest(const double *v, unsigned n) {
    double most = 0;
    for (unsigned i = 0; i < n; i++) most = positive(v[i]) > most ? v[i] : most;
    return most;
}

void qsf_chart_title(QsfStrbuf *b, double x, double width, const char *title, const char *note) {
    char text[400];
    const QsfSvgText large = { x, 30, QSF_CHART_TITLE, QSF_INK_TEXT, QSF_ANCHOR_START, true };
    const QsfSvgText small = { x, 52, QSF_CHART_LABEL, QSF_INK_FAINT, QSF_ANCHOR_START, false };
    qsf_svg_fit(title, large.size * 1.04, width, text, sizeof text);
    qsf_svg_text(b, &large, text);
    qsf_svg_fit(note, small.size, width, text, sizeof text);
    qsf_svg_text(b, &small, text);
}

void qsf_chart_heading(QsfStrbuf *b, const QsfChartFrame *f, const char *text) {
    const QsfSvgText t = { f->x, f->y - 20, QSF_CHART_HEADING, QSF_INK_TEXT, QSF_ANCHOR_START, true };
    qsf_svg_text(b, &t, text);
}

QsfScale qsf_chart_grid(QsfStrbuf *b, const QsfChartFrame *f, double most, unsigned lines) {
    double ticks[QSF_TICKS_MOST];
    char label[QSF_NUMBER_BYTES];
    const unsigned n = qsf_ticks(most, lines, ticks);
    const QsfScale s = { .hi = ticks[n - 1], .from = f->y + f->h, .to = f->y };
    for (unsigned i = 0; i < n; i++) {
        const double y = qsf_scale_at(&s, ticks[i]);
        const QsfSvgText t = { f->x - 8, y + 4, QSF_CHART_SMALL, QSF_INK_FAINT, QSF_ANCHOR_END, false };
        qsf_svg_line(b, QSF_INK_GRID, (QsfPoint){ f->x, y }, (QsfPoint){ f->x + f->w, y });
        qsf_svg_number(ticks[i], label);
        qsf_svg_text(b, &t, label);
    }
    return s;
}

/* ---- columns ---- */

double qsf_chart_column(const QsfChartFrame *f, unsigned i, unsigned n) {
    return f->x + f->w * (i + 0.5) / n;
}

static double column_width(const QsfChartFrame *f, unsigned n) {
    const double w = f->w / n * COLUMN_PART;
    return w < COLUMN_MOST ? w : COLUMN_MOST;
}

void qsf_chart_columns(QsfStrbuf *b, const QsfChartFrame *f, const double *values, unsigned n,
                       unsigned marked, QsfInk ink) {
    char label[QSF_NUMBER_BYTES];
    const double w = column_width(f, n);
    const QsfScale s = qsf_chart_grid(b, f, largest(values, n), 4);
    for (unsigned i = 0; i < n; i++) {
        const double x = qsf_chart_column(f, i, n), y = qsf_scale_at(&s, positive(values[i]));
        const QsfSvgText t = { x, y - 5, QSF_CHART_SMALL, QSF_INK_TEXT, QSF_ANCHOR_MIDDLE, i == marked };
        if (s.from - y > 0) qsf_svg_rect(b, ink, x - w / 2, y, w, s.from - y);
        qsf_svg_number(positive(values[i]), label);
        qsf_svg_text(b, &t, label);
    }
}

/* ---- stacks ---- */

static void draw_stack(QsfStrbuf *b, const QsfScale *s, double x, double w, const QsfChartPart *parts,
                       unsigned n_parts, unsigned column) {
    double sum = 0;
    for (unsigned k = 0; k < n_parts; k++) {
        const double from = qsf_scale_at(s, sum);
        sum += positive(parts[k].values[column]);
        const double to = qsf_scale_at(s, sum), h = from - to;
        const double gap = h > 3 * SLICE_GAP ? SLICE_GAP : 0;
        if (h >= SLICE_LEAST) qsf_svg_rect(b, parts[k].ink, x - w / 2, to + gap, w, h - gap);
    }
}

/* Names beside the last stack, in the order of its parts, each with its value in column `named`. */
static void name_parts(QsfStrbuf *b, const QsfChartFrame *f, const QsfScale *s, const QsfChartPart *parts,
                       unsigned n_parts, unsigned n, unsigned named) {
    double at[QSF_CHART_PARTS], sum = 0; /* from the top */
    for (unsigned k = 0; k < n_parts; k++) {
        const double v = positive(parts[k].values[n - 1]);
        at[n_parts - 1 - k] = qsf_scale_at(s, sum + v / 2);
        sum += v;
    }
    qsf_spread(at, n_parts, LABEL_GAP, f->y, f->y + f->h - 2);
    for (unsigned k = 0; k < n_parts; k++) {
        char value[QSF_NUMBER_BYTES], text[120];
        const double y = at[n_parts - 1 - k], x = f->x + f->w + 6;
        const QsfSvgText t = { x + 14, y + 4, QSF_CHART_SMALL, QSF_INK_TEXT, QSF_ANCHOR_START, false };
        qsf_svg_number(positive(parts[k].values[named]), value);
        snprintf(text, sizeof text, "%.60s %s", parts[k].name, value);
        qsf_svg_rect(b, parts[k].ink, x, y - 5, 9, 9);
        qsf_svg_text(b, &t, text);
    }
}

void qsf_chart_stacks(QsfStrbuf *b, const QsfChartFrame *f, const QsfChartPart *parts, unsigned n_parts,
                      unsigned n, unsigned named, const double *limits) {
    double most = 0;
    for (unsigned i = 0; i < n; i++) {
        double sum = 0;
        for (unsigned k = 0; k < n_parts; k++) sum += positive(parts[k].values[i]);
        most = sum > most ? sum : most;
    }
    const double far = most * LIMIT_MOST;
    for (unsigned i = 0; limits != NULL && i < n; i++)
        if (limits[i] <= far && limits[i] > most) most = limits[i];
    const double w = column_width(f, n);
    const QsfScale s = qsf_chart_grid(b, f, most, 4);
    for (unsigned i = 0; i < n; i++) {
        const double x = qsf_chart_column(f, i, n);
        draw_stack(b, &s, x, w, parts, n_parts, i);
        if (limits == NULL || limits[i] > far) continue;
        const double y = qsf_scale_at(&s, positive(limits[i]));
        qsf_svg_line(b, QSF_INK_TEXT, (QsfPoint){ x - w / 2 - 3, y }, (QsfPoint){ x + w / 2 + 3, y });
    }
    name_parts(b, f, &s, parts, n_parts, n, named);
}
