/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products of thin matrices, which adapters have, for any vector of v_<isa>.h. A lane is a row, so that no
 * sum runs across a vector, and a row of few elements costs little. The elements of a row are added in two
 * chains, the even ones and the odd ones, whatever the number of columns. */
#ifndef QSF_KERNELS_GENERIC_OPS_THIN_H
#define QSF_KERNELS_GENERIC_OPS_THIN_H

#include "kernels/unroll.h"

/* Columns whose sums fit half of the registers; bytes that are requested early, as of a group of quantized
 * rows (kernels/x16/mm_direct.h): groups follow each other in memory. */
enum { THIN_V = QK_THIN_ROWS / V, THIN_COLS = V_REGISTERS / (4 * THIN_V), THIN_AHEAD = 8192, THIN_LINE = 64 };

QK_INLINE vf thin_load(const uint8_t *w, int bytes) {
    return bytes == 2 ? v_load_half(w) : v_load((const float *)(const void *)w);
}

/* Rows of one group times nc columns, the first of which is x. */
QK_INLINE void thin_sums(vf (*sum)[THIN_V], const qk_thin *m, const uint8_t *w, const float *x, int nc,
                         int bytes) {
    vf odd[THIN_COLS][THIN_V];
    size_t i = 0;
    QK_UNROLL for (int c = 0; c < nc; c++) QK_UNROLL for (int v = 0; v < THIN_V; v++)
        sum[c][v] = odd[c][v] = v_set(0);
    for (; i + 2 <= m->k; i += 2, w += 2 * QK_THIN_ROWS * bytes) {
        for (int at = 0; at < 2 * QK_THIN_ROWS * bytes; at += THIN_LINE)
            __builtin_prefetch(w + THIN_AHEAD + at);
        QK_UNROLL for (int v = 0; v < THIN_V; v++) {
            const vf w0 = thin_load(w + v * V * bytes, bytes),
                     w1 = thin_load(w + (QK_THIN_ROWS + v * V) * bytes, bytes);
            QK_UNROLL for (int c = 0; c < nc; c++) {
                const float *at = x + (size_t)c * m->x_stride + i;
                sum[c][v] = v_fma(w0, v_set(at[0]), sum[c][v]);
                odd[c][v] = v_fma(w1, v_set(at[1]), odd[c][v]);
            }
        }
    }
    if (i < m->k) QK_UNROLL for (int v = 0; v < THIN_V; v++) {
            const vf w0 = thin_load(w + v * V * bytes, bytes);
            QK_UNROLL for (int c = 0; c < nc; c++)
                sum[c][v] = v_fma(w0, v_set(x[(size_t)c * m->x_stride + i]), sum[c][v]);
        }
    QK_UNROLL for (int c = 0; c < nc; c++) QK_UNROLL for (int v = 0; v < THIN_V; v++)
        sum[c][v] = v_add(sum[c][v], odd[c][v]);
}

/* Adds rows [lo, hi) of a group to nc columns; y: its row lo in the first one. */
QK_INLINE void thin_block(const qk_thin *m, const uint8_t *w, float *y, size_t c, size_t lo, size_t hi,
                          int nc, int bytes) {
    vf sum[THIN_COLS][THIN_V];
    thin_sums(sum, m, w, m->x + c * m->x_stride, nc, bytes);
    y += c * m->y_stride;
    if (hi - lo == QK_THIN_ROWS) {
        QK_UNROLL for (int j = 0; j < nc; j++) QK_UNROLL for (int v = 0; v < THIN_V; v++) {
            float *to = y + (size_t)j * m->y_stride + v * V;
            v_store(to, v_add(v_load(to), sum[j][v]));
        }
        return;
    }
    for (int j = 0; j < nc; j++) {
        float row[QK_THIN_ROWS];
        for (int v = 0; v < THIN_V; v++) v_store(row + v * V, sum[j][v]);
        for (size_t r = lo; r < hi; r++) y[(size_t)j * m->y_stride + r - lo] += row[r];
    }
}

/* Rows [lo, hi) of a group times all columns: as many at a time as fit, then half of them, and so on. */
QK_INLINE void thin_group(const qk_thin *m, const uint8_t *w, float *y, size_t lo, size_t hi, int bytes) {
    size_t c = 0;
    for (; c + THIN_COLS <= m->n_cols; c += THIN_COLS) thin_block(m, w, y, c, lo, hi, THIN_COLS, bytes);
    if (THIN_COLS > 4 && c + 4 <= m->n_cols) {
        thin_block(m, w, y, c, lo, hi, THIN_COLS < 4 ? 1 : 4, bytes);
        c += 4;
    }
    if (THIN_COLS > 2 && c + 2 <= m->n_cols) {
        thin_block(m, w, y, c, lo, hi, THIN_COLS < 2 ? 1 : 2, bytes);
        c += 2;
    }
    if (c < m->n_cols) thin_block(m, w, y, c, lo, hi, 1, bytes);
}

QK_INLINE void thin(const qk_thin *m, int bytes) {
    const uint8_t *w = m->w;
    size_t lo = m->first;
    for (size_t r = 0; r < m->rows; lo = 0, w += m->group_bytes) {
        const size_t left = m->rows - r, hi = lo + left < QK_THIN_ROWS ? lo + left : QK_THIN_ROWS;
        thin_group(m, w, m->y + r, lo, hi, bytes);
        r += hi - lo;
    }
}

void QK_FN(thin_f16)(const qk_thin *m) { thin(m, 2); }
void QK_FN(thin_f32)(const qk_thin *m) { thin(m, 4); }

#endif
