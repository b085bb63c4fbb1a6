/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Vectors of four values, with the vector extensions of gcc and clang: works on every processor with the same
 * results. Private to src/convert/quant. */
#ifndef QSF_CONVERT_QUANT_VEC_H
#define QSF_CONVERT_QUANT_VEC_H

#include <stdint.h>
#include <string.h>

enum { QSF_VEC = 4 };
typedef float QsfVec __attribute__((vector_size(16)));
typedef int32_t QsfVecMask __attribute__((vector_size(16)));
typedef double QsfVecWide __attribute__((vector_size(32)));

static inline QsfVec qsf_vec_all(float v) { return (QsfVec){ v, v, v, v }; }

static inline QsfVec qsf_vec_load(const float *p) {
    QsfVec v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Returns v where the mask is set, 0 elsewhere. */
static inline QsfVec qsf_vec_where(QsfVecMask mask, QsfVec v) { return (QsfVec)((QsfVecMask)v & mask); }

static inline QsfVec qsf_vec_min(QsfVec a, QsfVec b) {
    const QsfVecMask less = a < b;
    return (QsfVec)(((QsfVecMask)a & less) | ((QsfVecMask)b & ~less));
}
static inline QsfVec qsf_vec_max(QsfVec a, QsfVec b) {
    const QsfVecMask more = a > b;
    return (QsfVec)(((QsfVecMask)a & more) | ((QsfVecMask)b & ~more));
}

#endif
