/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/svg/scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WHOLE_MOST 1e15 /* larger numbers are written as this one */

double qsf_scale_at(const QsfScale *s, double v) {
    double part;
    if (s->logarithmic)
        part = (log2(v) - log2(s->lo)) / (log2(s->hi) - log2(s->lo));
    else
        part = (v - s->lo) / (s->hi - s->lo);
    if (!(part > 0)) part = 0; /* also what is not a number */
    return s->from + (s->to - s->from) * (part < 1 ? part : 1);
}

/* ---- ticks ---- */

/* 10^e, exact where a double can be. */
static double ten(int e) {
    double v = 1;
    for (int i = 0; i < (e < 0 ? -e : e); i++) v *= 10;
    return e < 0 ? 1 / v : v;
}

static const int leading[] = { 1, 2, 5 };

unsigned qsf_ticks(double most, unsigned n, double out[QSF_TICKS_MOST]) {
    if (!(most > 0) || most > WHOLE_MOST) most = 1;
    if (most < 1e-9) most = 1e-9;
    int e = (int)floor(log10(most)) - 2;
    for (unsigned k = 0;; k++) {
        const double unit = ten(e + (int)(k / 3)), lead = leading[k % 3];
        const double steps = ceil(most / (lead * unit) - 1e-9);
        if (steps > n) continue;
        const int power = e + (int)(k / 3);
        for (unsigned i = 0; i <= (unsigned)steps; i++)
            out[i] = power < 0 ? i * lead / ten(-power) : i * lead * unit;
        return (unsigned)steps + 1;
    }
}

/* ---- numbers ---- */

/* Digits with commas. */
static void put_whole(unsigned long long v, char *dst, size_t cap) {
    char digits[24];
    const size_t n = (size_t)snprintf(digits, sizeof digits, "%llu", v);
    size_t at = 0;
    for (size_t i = 0; i < n && at + 2 < cap; i++) {
        if (i > 0 && (n - i) % 3 == 0) dst[at++] = ',';
        dst[at++] = digits[i];
    }
    dst[at] = '\0';
}

/* Numbers are written as multiples of 1 / this. */
static unsigned long long unit_of(double size) {
    static const double below[] = { 0.00995, 0.0995, 9.995, 99.95 };
    static const unsigned units[] = { 10000, 1000, 100, 10 };
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        if (size < below[i]) return units[i];
    return 1;
}

void qsf_svg_number(double v, char dst[QSF_NUMBER_BYTES]) {
    char whole[QSF_NUMBER_BYTES - 4];
    if (!isfinite(v)) {
        snprintf(dst, QSF_NUMBER_BYTES, "-");
        return;
    }
    const char *sign = v < 0 ? "-" : "";
    double size = fabs(v);
    if (size > WHOLE_MOST) size = WHOLE_MOST;
    const unsigned long long unit = unit_of(size), scaled = (unsigned long long)(size * (double)unit + 0.5);
    unsigned rest = (unsigned)(scaled % unit), places = 0;
    for (unsigned long long u = unit; u > 1; u /= 10) places++;
    put_whole(scaled / unit, whole, sizeof whole);
    for (; places > 0 && rest % 10 == 0; places--) rest /= 10;
    if (places == 0)
        snprintf(dst, QSF_NUMBER_BYTES, "%s%.26s", scaled > 0 ? sign : "", whole);
    else
        snprintf(dst, QSF_NUMBER_BYTES, "%s%.20s.%0*u", sign, whole, (int)places, rest);
}

/* ---- labels ---- */

void qsf_spread(double *at, size_t n, double gap, double lo, double hi) {
    if (n == 0) return;
    const double room = hi - lo;
    if (gap * (double)(n - 1) > room) {
        for (size_t i = 0; i < n; i++) at[i] = n > 1 ? lo + room * (double)i / (double)(n - 1) : lo;
        return;
    }
    /* Push down from the top, then up from the bottom. */
    double least = lo;
    for (size_t i = 0; i < n; i++, least += gap) {
        if (at[i] < least) at[i] = least;
        least = at[i];
    }
    double most = hi;
    for (size_t i = n; i-- > 0; most -= gap) {
        if (at[i] > most) at[i] = most;
        most = at[i];
    }
}
