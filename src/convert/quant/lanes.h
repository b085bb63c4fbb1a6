/* SPDX-License-Identifier: GPL-3.0-or-later */
/* 16 floats in as many vectors as the instruction set needs. Lane operations and sums are bit-identical with
 * every instruction set. Private to src/convert/quant; for files that are compiled once for each instruction
 * set and must not share functions with others: everything is static. */
#ifndef QSF_CONVERT_QUANT_LANES_H
#define QSF_CONVERT_QUANT_LANES_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define QSF_LANES_BYTES 64
#elif defined(__AVX2__)
#define QSF_LANES_BYTES 32
#else
#define QSF_LANES_BYTES 16
#endif

enum { QSF_LANES = QSF_LANES_BYTES / 4, QSF_LANES_N = 16, QSF_LANES_VECTORS = QSF_LANES_N / QSF_LANES };
typedef float QsfLanes __attribute__((vector_size(QSF_LANES_BYTES)));
typedef int32_t QsfLanesMask __attribute__((vector_size(QSF_LANES_BYTES)));

/* Applies to all 16 lanes. */
typedef struct QsfSixteen {
    QsfLanes v[QSF_LANES_VECTORS];
} QsfSixteen;

#define QSF_EACH(i) for (int i = 0; i < QSF_LANES_VECTORS; i++)

static inline QsfLanes qsf_lanes_all(float x) { return x - (QsfLanes){ 0 }; }

static inline QsfLanes qsf_lanes_load(const float *p) {
    QsfLanes v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void qsf_lanes_store(float *p, QsfLanes v) { memcpy(p, &v, sizeof v); }

static inline QsfSixteen qsf_sixteen_load(const float *p) {
    QsfSixteen s;
    QSF_EACH(i) s.v[i] = qsf_lanes_load(p + i * QSF_LANES);
    return s;
}

/* Returns v where the mask is set, 0 elsewhere. */
static inline QsfLanes qsf_lanes_where(QsfLanesMask mask, QsfLanes v) {
    return (QsfLanes)((QsfLanesMask)v & mask);
}

/* Returns a where the mask is set, b elsewhere. */
static inline QsfLanes qsf_lanes_choose(QsfLanesMask mask, QsfLanes a, QsfLanes b) {
    return (QsfLanes)(((QsfLanesMask)a & mask) | ((QsfLanesMask)b & ~mask));
}
static inline QsfLanes qsf_lanes_min(QsfLanes a, QsfLanes b) { return qsf_lanes_choose(a < b, a, b); }
static inline QsfLanes qsf_lanes_max(QsfLanes a, QsfLanes b) { return qsf_lanes_choose(a > b, a, b); }

/* Returns the sum of 16 lanes: i and i + 8, then i and i + 4, then those four. */
static inline float qsf_sixteen_total(const QsfSixteen *s) {
    float a[4], x[QSF_LANES_N];
    memcpy(x, s, sizeof x);
    for (int i = 0; i < 4; i++) a[i] = (x[i] + x[i + 8]) + (x[i + 4] + x[i + 12]);
    return (a[0] + a[2]) + (a[1] + a[3]);
}

static inline float qsf_sixteen_max(const QsfSixteen *s) {
    float a[8], x[QSF_LANES_N];
    memcpy(x, s, sizeof x);
    for (int i = 0; i < 8; i++) a[i] = x[i] > x[i + 8] ? x[i] : x[i + 8];
    for (int n = 4; n > 0; n /= 2)
        for (int i = 0; i < n; i++) a[i] = a[i] > a[i + n] ? a[i] : a[i + n];
    return a[0];
}

static inline float qsf_sixteen_min(const QsfSixteen *s) {
    QsfSixteen minus;
    QSF_EACH(i) minus.v[i] = -s->v[i];
    return -qsf_sixteen_max(&minus);
}

#endif
