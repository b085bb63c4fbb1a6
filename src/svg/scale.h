/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scales of charts: where a value lies, which values get a line of the grid, how numbers are written, and
 * labels that do not overlap. Pure functions. */
#ifndef QSF_SVG_SCALE_H
#define QSF_SVG_SCALE_H

#include <stdbool.h>
#include <stddef.h>

#define QSF_TICKS_MOST   12
#define QSF_NUMBER_BYTES 32

/* Values lo to hi lie at the pixels from to to. A logarithmic one has 0 < lo. */
typedef struct QsfScale {
    double lo, hi, from, to;
    bool logarithmic;
} QsfScale;

/* Returns the pixel of a value; values outside lie at the ends, and so does what is not a number. */
double qsf_scale_at(const QsfScale *s, double v);

/* Sets out to round values that cover 0 to `most`, the last one at least `most`: multiples of 1, 2 or 5 times
 * a power of ten, at most n of them besides 0, with n from 2 to QSF_TICKS_MOST - 1. Returns how many there
 * are; 0 is the first. For `most` that is not a positive number they cover 0 to 1. */
unsigned qsf_ticks(double most, unsigned n, double out[QSF_TICKS_MOST]);

/* Writes v with two or three significant digits, all digits of a larger one, and commas between thousands:
 * "0.06", "4.4", "31.5", "12,400". No locale. "-" for what is not a number. */
void qsf_svg_number(double v, char dst[QSF_NUMBER_BYTES]);

/* Moves the n positions at, which ascend, down and at the end up again, so that neighbors are at least `gap`
 * apart and all lie between lo and hi; if there is not enough room, they are spread evenly. */
void qsf_spread(double *at, size_t n, double gap, double lo, double hi);

#endif
