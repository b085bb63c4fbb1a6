/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes SVG 1.1: a picture in one file, without scripts, fonts or links. Colors are attributes, for viewers
 * that know nothing else, and a style sheet replaces them where the reader prefers dark pages. Text stays
 * text: markup in it is escaped, and control characters, what is invisible or changes the direction of
 * others, and ill-formed bytes become '?'. The same calls give the same bytes on every machine: coordinates
 * are rounded to tenths of a pixel, and no number depends on the locale. Out of memory is sticky, as in
 * strbuf.h. Coordinates and sizes are pixels, y grows downwards. Any thread. */
#ifndef QSF_SVG_SVG_H
#define QSF_SVG_SVG_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/strbuf.h"

/* What something is drawn for. The colors of data are those of Okabe and Ito, which are
 * distinct for color-blind readers, too; each has a variant for dark pages. */
typedef enum QsfInk {
    QSF_INK_PAGE,  /* the background */
    QSF_INK_TEXT,  /* titles and values */
    QSF_INK_FAINT, /* what explains */
    QSF_INK_GRID,  /* lines of the grid */
    QSF_INK_BAND,  /* behind what is marked */
    QSF_INK_BLUE,
    QSF_INK_ORANGE,
    QSF_INK_GREEN,
    QSF_INK_PURPLE,
    QSF_INK_YELLOW,
    QSF_INK_GRAY,
    QSF_INK_N
} QsfInk;

typedef enum QsfMark { QSF_MARK_CIRCLE, QSF_MARK_SQUARE, QSF_MARK_DIAMOND, QSF_MARK_N } QsfMark;
typedef enum QsfAnchor { QSF_ANCHOR_START, QSF_ANCHOR_MIDDLE, QSF_ANCHOR_END } QsfAnchor;

typedef struct QsfSvgText {
    double x, y; /* of the base line */
    double size;
    QsfInk ink;
    QsfAnchor anchor;
    bool bold;
} QsfSvgText;

typedef struct QsfPoint {
    double x, y;
} QsfPoint;

/* Begins and ends a picture. title and desc, which screen readers read, are untrusted texts. */
void qsf_svg_begin(QsfStrbuf *b, double width, double height, const char *title, const char *desc);
void qsf_svg_end(QsfStrbuf *b);

void qsf_svg_rect(QsfStrbuf *b, QsfInk ink, double x, double y, double w, double h);
/* A thin line. */
void qsf_svg_line(QsfStrbuf *b, QsfInk ink, QsfPoint from, QsfPoint to);
/* A thick line through n points. */
void qsf_svg_curve(QsfStrbuf *b, QsfInk ink, const QsfPoint *at, size_t n);
void qsf_svg_mark(QsfStrbuf *b, QsfInk ink, QsfMark mark, QsfPoint at);
/* text is untrusted. */
void qsf_svg_text(QsfStrbuf *b, const QsfSvgText *t, const char *text);

/* Returns about how wide a text of this size is in an ordinary font without serifs; rather too much. */
double qsf_svg_width(const char *text, double size);
/* Copies text to dst, with an ellipsis in place of its end if it is wider than `width`. */
void qsf_svg_fit(const char *text, double size, double width, char *dst, size_t cap);

#endif
