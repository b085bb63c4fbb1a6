/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sets of code points: implements charset.h. */
#include "src/grammar/charset.h"

#include <stdlib.h>

#define SURROGATES 0xD800u
#define BEYOND     0xE000u

void qsf_charset_add(QsfCharset *s, uint32_t lo, uint32_t hi) {
    if (lo > hi || s->failed) return;
    if (s->n == s->cap) {
        const uint32_t cap = s->cap > 0 ? s->cap * 2 : 8;
        QsfRange *r = s->n < QSF_CHARSET_MAX ? realloc(s->r, cap * sizeof *r) : NULL;
        if (r == NULL) {
            s->failed = true;
            return;
        }
        s->r = r;
        s->cap = cap;
    }
    s->r[s->n++] = (QsfRange){ lo, hi };
}

void qsf_charset_add_all(QsfCharset *s, const QsfRange *r, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) qsf_charset_add(s, r[i].lo, r[i].hi);
}

static int by_lo(const void *a, const void *b) {
    const QsfRange *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Splits the ranges that contain surrogates. */
static void drop_surrogates(QsfCharset *s) {
    const uint32_t n = s->n;
    for (uint32_t i = 0; i < n; i++) {
        const QsfRange r = s->r[i];
        if (r.hi < SURROGATES || r.lo >= BEYOND) continue;
        if (r.hi >= BEYOND) qsf_charset_add(s, BEYOND, r.hi);
        s->r[i] = (QsfRange){ r.lo, SURROGATES - 1 }; /* empty if it begins there: normalize drops it */
    }
}

void qsf_charset_normalize(QsfCharset *s) {
    uint32_t n = 0;
    drop_surrogates(s);
    if (s->n > 0) qsort(s->r, s->n, sizeof *s->r, by_lo);
    for (uint32_t i = 0; i < s->n; i++) {
        QsfRange r = s->r[i];
        if (r.hi > QSF_CODE_MAX) r.hi = QSF_CODE_MAX;
        if (r.lo > r.hi) continue;
        if (n > 0 && r.lo <= s->r[n - 1].hi + 1)
            s->r[n - 1].hi = r.hi > s->r[n - 1].hi ? r.hi : s->r[n - 1].hi;
        else
            s->r[n++] = r;
    }
    s->n = n;
}

void qsf_charset_negate(QsfCharset *s) {
    QsfCharset out = { .failed = s->failed };
    uint32_t from = 0;
    qsf_charset_normalize(s);
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->r[i].lo > from) qsf_charset_add(&out, from, s->r[i].lo - 1);
        from = s->r[i].hi + 1;
    }
    if (from <= QSF_CODE_MAX) qsf_charset_add(&out, from, QSF_CODE_MAX);
    qsf_charset_normalize(&out);
    qsf_charset_free(s);
    *s = out;
}

void qsf_charset_intersect(QsfCharset *out, const QsfRange *a, uint32_t n_a, const QsfRange *b,
                           uint32_t n_b) {
    out->n = 0;
    for (uint32_t i = 0, j = 0; i < n_a && j < n_b;) {
        const uint32_t lo = a[i].lo > b[j].lo ? a[i].lo : b[j].lo;
        const uint32_t hi = a[i].hi < b[j].hi ? a[i].hi : b[j].hi;
        qsf_charset_add(out, lo, hi);
        if (a[i].hi < b[j].hi)
            i++;
        else
            j++;
    }
}

void qsf_charset_free(QsfCharset *s) {
    free(s->r);
    *s = (QsfCharset){ .failed = s->failed };
}
