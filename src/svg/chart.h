/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Charts: values in a frame of a picture, with a grid and with labels on the data themselves. Names are
 * untrusted texts. Values that are negative or not numbers count as 0. Any thread. */
#ifndef QSF_SVG_CHART_H
#define QSF_SVG_CHART_H

#include "src/svg/scale.h"
#include "src/svg/svg.h"

#define QSF_CHART_SMALL   11.0 /* sizes of text */
#define QSF_CHART_LABEL   12.0
#define QSF_CHART_HEADING 13.0
#define QSF_CHART_TITLE   17.0
#define QSF_CHART_PARTS   8  /* of a stack, at most */
#define QSF_CHART_COLUMNS 16 /* at most */
#define QSF_CHART_POINTS  24 /* of a curve, at most */

/* Where the data of a chart are drawn; tick labels are to the left and below, headings above. */
typedef struct QsfChartFrame {
    double x, y, w, h;
} QsfChartFrame;

/* Draws the title of a picture and what explains it, cut to `width`; the last base line is at y = 52. */
void qsf_chart_title(QsfStrbuf *b, double x, double width, const char *title, const char *note);
/* Draws a heading 20 pixels above a frame. */
void qsf_chart_heading(QsfStrbuf *b, const QsfChartFrame *f, const char *text);
/* Draws the lines of a grid for values from 0 to at least `most`, and their labels. */
QsfScale qsf_chart_grid(QsfStrbuf *b, const QsfChartFrame *f, double most, unsigned lines);

/* Returns the middle of column i of n. */
double qsf_chart_column(const QsfChartFrame *f, unsigned i, unsigned n);
/* Draws n values as columns with their numbers; `marked` is bold. n is at most QSF_CHART_COLUMNS. */
void qsf_chart_columns(QsfStrbuf *b, const QsfChartFrame *f, const double *values, unsigned n,
                       unsigned marked, QsfInk ink);

typedef struct QsfChartPart {
    const char *name;
    QsfInk ink;
    const double *values; /* (n) */
} QsfChartPart;
/* Draws stacks of n_parts parts in n columns; names, with the values of column `named`, are to the right.
 * limits (n): a line above each stack, unless it is far above all of them; or NULL. At most QSF_CHART_PARTS
 * and QSF_CHART_COLUMNS. */
void qsf_chart_stacks(QsfStrbuf *b, const QsfChartFrame *f, const QsfChartPart *parts, unsigned n_parts,
                      unsigned n, unsigned named, const double *limits);

typedef struct QsfChartBar {
    const char *name;
    double value;
    QsfInk ink;
    const char *text; /* after the bar */
} QsfChartBar;
/* Draws n lying bars, one below the other, `step` pixels each; names are to the left, texts have 130 pixels
 * to the right of the longest bar. */
void qsf_chart_bars(QsfStrbuf *b, const QsfChartFrame *f, const QsfChartBar *bars, unsigned n, double step);

/* Draws a curve through n points, 1 to QSF_CHART_POINTS, whose x ascends and is at least 1, over a
 * logarithmic axis with a tick for each point; points are labeled with their y where there is room. */
void qsf_chart_curve(QsfStrbuf *b, const QsfChartFrame *f, const QsfPoint *at, unsigned n, QsfInk ink,
                     const char *axis);

#endif
