/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Charts with rows, and curves. */
#include <math.h>

#include "src/svg/chart.h"

#define BAR_TEXT    130.0 /* pixels for what follows a bar */
#define BAR_HEIGHT  13.0
#define POINT_LABEL 11.0 /* above a point */

static double positive(double v) { return isfinite(v) && v > 0 ? v : 0; }

void qsf_chart_bars(QsfStrbuf *b, const QsfChartFrame *f, const QsfChartBar *bars, unsigned n, double step) {
    double most = 0;
    for (unsigned i = 0; i < n; i++) most = positive(bars[i].value) > most ? bars[i].value : most;
    const QsfScale s = { .hi = most > 0 ? most : 1, .from = f->x, .to = f->x + f->w - BAR_TEXT };
    for (unsigned i = 0; i < n; i++) {
        const double y = f->y + step * (i + 0.5), x = qsf_scale_at(&s, positive(bars[i].value));
        const QsfSvgText name = { f->x - 8, y + 4, QSF_CHART_LABEL, QSF_INK_TEXT, QSF_ANCHOR_END, false };
        const QsfSvgText text = { x + 7, y + 4, QSF_CHART_SMALL, QSF_INK_FAINT, QSF_ANCHOR_START, false };
        qsf_svg_text(b, &name, bars[i].name);
        qsf_svg_rect(b, bars[i].ink, f->x, y - BAR_HEIGHT / 2, x - f->x, BAR_HEIGHT);
        qsf_svg_text(b, &text, bars[i].text);
    }
    qsf_svg_line(b, QSF_INK_FAINT, (QsfPoint){ f->x, f->y }, (QsfPoint){ f->x, f->y + step * n });
}

/* ---- curves ---- */

/* A label of the axis at each point, but for those that would overlap the one before. */
static void draw_points_axis(QsfStrbuf *b, const QsfChartFrame *f, const QsfScale *x, const QsfPoint *at,
                             unsigned n, const char *axis) {
    double end = -1e9;
    char label[QSF_NUMBER_BYTES];
    for (unsigned i = 0; i < n; i++) {
        const double px = qsf_scale_at(x, at[i].x);
        qsf_svg_number(at[i].x, label);
        const double half = qsf_svg_width(label, QSF_CHART_SMALL) / 2;
        if (px - half < end) continue;
        end = px + half + 6;
        const QsfSvgText t = {
            px, f->y + f->h + 17, QSF_CHART_SMALL, QSF_INK_FAINT, QSF_ANCHOR_MIDDLE, false
        };
        qsf_svg_text(b, &t, label);
    }
    const QsfSvgText t = { f->x + f->w / 2, f->y + f->h + 35,  QSF_CHART_SMALL,
                           QSF_INK_FAINT,   QSF_ANCHOR_MIDDLE, false };
    qsf_svg_text(b, &t, axis);
}

/* Above a point, but below one that lies lower than the curve around it, if there is room. */
static double label_y(const QsfChartFrame *f, const QsfPoint *place, unsigned n, unsigned i) {
    const double left = place[i > 0   ? i - 1
                              : n > 1 ? 1
                                      : 0]
                            .y,
                 right = place[i + 1 < n ? i + 1
                               : n > 1   ? n - 2
                                         : 0]
                             .y;
    const double below = place[i].y + POINT_LABEL + QSF_CHART_SMALL - 3;
    return place[i].y > (left + right) / 2 + 1 && below < f->y + f->h - 2 ? below : place[i].y - POINT_LABEL;
}

void qsf_chart_curve(QsfStrbuf *b, const QsfChartFrame *f, const QsfPoint *at, unsigned n, QsfInk ink,
                     const char *axis) {
    QsfPoint place[QSF_CHART_POINTS];
    char label[QSF_NUMBER_BYTES];
    double most = 0, end = -1e9;
    if (n > QSF_CHART_POINTS) n = QSF_CHART_POINTS;
    for (unsigned i = 0; i < n; i++) most = positive(at[i].y) > most ? at[i].y : most;
    const QsfScale y = qsf_chart_grid(b, f, most * 1.08, 4); /* with room for a label above */
    const double inset = 14;
    QsfScale x = {
        .lo = at[0].x, .hi = at[n - 1].x, .from = f->x + inset, .to = f->x + f->w - inset, .logarithmic = true
    };
    if (!(x.hi > x.lo)) x.lo /= 2, x.hi *= 2; /* one point lies in the middle */
    for (unsigned i = 0; i < n; i++)
        place[i] = (QsfPoint){ qsf_scale_at(&x, at[i].x), qsf_scale_at(&y, positive(at[i].y)) };
    qsf_svg_curve(b, ink, place, n);
    for (unsigned i = 0; i < n; i++) {
        qsf_svg_mark(b, ink, QSF_MARK_CIRCLE, place[i]);
        qsf_svg_number(positive(at[i].y), label);
        const double half = qsf_svg_width(label, QSF_CHART_SMALL) / 2;
        if (place[i].x - half < end) continue;
        end = place[i].x + half + 4;
        const QsfSvgText t = { place[i].x,   label_y(f, place, n, i), QSF_CHART_SMALL,
                               QSF_INK_TEXT, QSF_ANCHOR_MIDDLE,       false };
        qsf_svg_text(b, &t, label);
    }
    draw_points_axis(b, f, &x, at, n, axis);
}
