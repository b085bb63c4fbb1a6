/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recurrent states for any vector of v_<isa>.h; needs exp.h and exp2.h. */
#ifndef QSF_KERNELS_GENERIC_OPS_STATE_H
#define QSF_KERNELS_GENERIC_OPS_STATE_H

#include "kernels/unroll.h"

enum {
    TILE = QK_STATE_TILE,
    POSITIONS = QK_SCAN_POSITIONS,
    ROWS = V_REGISTERS / 2,             /* of a state that stay in registers */
    CHAINS = 4,                         /* sums, which hide the latency of the addition */
    WIDE = TILE / V < 4 ? TILE / V : 4, /* vectors of a row that are handled together */
    GANG = WIDE < 4 ? 4 : 2, /* rows whose sums are separate: eight chains hide the latency of a sum */
    AHEAD = 8                /* positions of a scan that are prefetched: they are far apart in memory */
};

/* Columns [at, at + V) of a row of `cols` columns, with zeros after the last. */
QK_INLINE vf take(const float *p, size_t cols, size_t at) {
    if (at + V <= cols) return v_load(p + at);
    return at < cols ? v_load_some(p + at, cols - at) : v_set(0);
}

QK_INLINE void give(float *p, size_t cols, size_t at, vf v) {
    if (at + V <= cols)
        v_store(p + at, v);
    else if (at < cols)
        v_store_some(p + at, cols - at, v);
}

/* ---- scans: some rows of a vector of columns stay in registers for all positions ---- */

QK_INLINE void put(float *p, vf v, int stream) {
    if (stream)
        v_stream(p, v);
    else
        v_store(p, v);
}

/* Prefetches the line of V columns of a position some positions later. */
QK_INLINE void scan_ahead(const float *x, size_t stride, const qk_scan *p, size_t c) {
    if (c + AHEAD < p->n_pos) __builtin_prefetch(x + (c + AHEAD) * stride);
}

typedef struct scan_sums {
    vf t[POSITIONS]; /* time step */
    vf x[POSITIONS]; /* input */
    vf y[POSITIONS]; /* sum over the rows so far */
} scan_sums;

QK_INLINE void load_rows(vf *s, const qk_scan *p, size_t row, size_t at, size_t n) {
    QK_UNROLL for (size_t r = 0; r < n; r++) s[r] = v_load(p->old + (row + r) * TILE + at);
}

QK_INLINE void store_rows(const vf *s, const qk_scan *p, size_t row, size_t at, size_t n) {
    QK_UNROLL for (size_t r = 0; r < n; r++) put(p->s + (row + r) * TILE + at, s[r], p->stream);
}

QK_INLINE vf sum_chains(const vf *y) { return v_add(v_add(y[0], y[1]), v_add(y[2], y[3])); }

/* Inputs of all positions for some rows of a state, next to each other. */
typedef struct scan_rows {
    float b[POSITIONS][ROWS], c[POSITIONS][ROWS];
} scan_rows;

QK_INLINE void gather_rows(scan_rows *to, const qk_scan *p, size_t row, size_t n) {
    for (size_t c = 0; c < p->n_pos; c++) {
        memcpy(to->b[c], p->b + c * p->bc_stride + row, n * sizeof(float));
        memcpy(to->c[c], p->c + c * p->bc_stride + row, n * sizeof(float));
    }
}

QK_INLINE void one_rows(const qk_scan *p, const qk_scan_one *o, const scan_rows *in, const vf *inputs,
                        vf *sums, size_t row, size_t at, size_t n) {
    vf s[ROWS];
    load_rows(s, p, row, at, n);
    for (size_t c = 0; c < p->n_pos; c++) {
        const vf x = inputs[c];
        vf y[CHAINS] = { sums[c], v_set(0), v_set(0), v_set(0) };
        if (!(o->keep[c] >= 1.0f && o->keep[c] <= 1.0f))
            QK_UNROLL for (size_t r = 0; r < n; r++) s[r] = v_mul(s[r], v_set(o->keep[c]));
        QK_UNROLL for (size_t r = 0; r < n; r++) {
            s[r] = v_fma(v_set(in->b[c][r]), x, s[r]);
            y[r % CHAINS] = v_fma(v_set(in->c[c][r]), s[r], y[r % CHAINS]);
        }
        sums[c] = sum_chains(y);
    }
    store_rows(s, p, row, at, n);
}

/* All columns for some rows, then the next rows, whose inputs then stay in the first cache. */
void QK_FN(scan_one)(const qk_scan *at_tile, const qk_scan_one *one) {
    const qk_scan p = *at_tile;
    const qk_scan_one o = *one;
    vf x[TILE / V][POSITIONS], y[TILE / V][POSITIONS];
    scan_rows in;
    for (size_t at = 0; at < p.cols; at += V)
        for (size_t c = 0; c < p.n_pos; c++) {
            x[at / V][c] = v_mul(v_set(o.gain[c]), take(p.x + c * p.x_stride, p.cols, at));
            y[at / V][c] = v_set(0);
        }
    for (size_t row = 0, n; row < p.rows; row += n) {
        n = row + ROWS <= p.rows ? ROWS : 1;
        if (n == ROWS)
            gather_rows(&in, &p, row, ROWS);
        else
            gather_rows(&in, &p, row, 1);
        for (size_t at = 0; at < p.cols; at += V)
            if (n == ROWS)
                one_rows(&p, &o, &in, x[at / V], y[at / V], row, at, ROWS);
            else
                one_rows(&p, &o, &in, x[at / V], y[at / V], row, at, 1);
    }
    for (size_t at = 0; at < p.cols; at += V)
        for (size_t c = 0; c < p.n_pos; c++) {
            const vf in_x = take(p.x + c * p.x_stride, p.cols, at),
                     out = v_mul(v_set(o.out[c]), y[at / V][c]);
            give(p.y + c * p.y_stride, p.cols, at, v_fma(v_set(o.d), in_x, out));
        }
    if (p.stream) v_streamed();
}

QK_INLINE void each_rows(const qk_scan *p, const qk_scan_each *e, scan_sums *m, size_t row, size_t at,
                         size_t n) {
    vf s[ROWS / 2], a[ROWS / 2];
    QK_UNROLL for (size_t r = 0; r < n; r++)
        a[r] = v_mul(v_load(e->a + (row + r) * TILE + at), v_set(V_LOG2E));
    load_rows(s, p, row, at, n);
    for (size_t c = 0; c < p->n_pos; c++) {
        const float *b = p->b + c * p->bc_stride + row, *cc = p->c + c * p->bc_stride + row;
        const vf x = m->x[c], t = m->t[c];
        vf y = m->y[c];
        QK_UNROLL for (size_t r = 0; r < n; r++) {
            const vf keep = v_exp2(v_min(v_set(100.0f), v_mul(t, a[r])));
            s[r] = v_fma(s[r], keep, v_mul(v_set(b[r]), x));
            y = v_fma(v_set(cc[r]), s[r], y);
        }
        m->y[c] = y;
    }
    store_rows(s, p, row, at, n);
}

void QK_FN(scan_each)(const qk_scan *p, const qk_scan_each *e) {
    scan_sums m;
    for (size_t at = 0; at < p->cols; at += V) {
        size_t row = 0;
        for (size_t c = 0; c < p->n_pos; c++) {
            scan_ahead(e->dt + at, e->dt_stride, p, c);
            scan_ahead(p->x + at, p->x_stride, p, c);
            m.t[c] = v_softplus(take(e->dt + c * e->dt_stride, p->cols, at));
            m.x[c] = v_mul(m.t[c], take(p->x + c * p->x_stride, p->cols, at));
            m.y[c] = v_set(0);
        }
        for (; row + ROWS / 2 <= p->rows; row += ROWS / 2) each_rows(p, e, &m, row, at, ROWS / 2);
        for (; row < p->rows; row++) each_rows(p, e, &m, row, at, 1);
        for (size_t c = 0; c < p->n_pos; c++) {
            const vf x = take(p->x + c * p->x_stride, p->cols, at);
            give(p->y + c * p->y_stride, p->cols, at, v_fma(take(e->d, p->cols, at), x, m.y[c]));
        }
    }
    if (p->stream) v_streamed();
}

/* ---- one position: the columns of WIDE vectors, all rows ---- */

QK_INLINE void no_sums(vf sum[GANG][WIDE]) {
    QK_UNROLL for (int u = 0; u < GANG; u++) QK_UNROLL for (int g = 0; g < WIDE; g++) sum[u][g] = v_set(0);
}

QK_INLINE vf gang_sum(vf sum[GANG][WIDE], int g) {
    const vf first = v_add(sum[0][g], sum[1][g]);
    return GANG == 2 ? first : v_add(first, v_add(sum[GANG - 2][g], sum[GANG - 1][g]));
}

/* sum[g] = sum over the rows of f * row, f being from[i] * by[i * step], or from[i] where by is NULL. */
QK_INLINE void sum_rows(vf sum[WIDE], const float *s, const float *from, const float *by, size_t rows) {
    vf part[GANG][WIDE];
    size_t i = 0;
    no_sums(part);
    for (; i + GANG <= rows; i += GANG) QK_UNROLL for (size_t u = 0; u < GANG; u++) {
            const vf f = v_set(by != NULL ? from[i + u] * by[i + u] : from[i + u]);
            QK_UNROLL for (int g = 0; g < WIDE; g++)
                part[u][g] = v_fma(f, v_load(s + (i + u) * TILE + g * V), part[u][g]);
        }
    for (; i < rows; i++) {
        const vf f = v_set(by != NULL ? from[i] * by[i] : from[i]);
        QK_UNROLL for (int g = 0; g < WIDE; g++)
            part[0][g] = v_fma(f, v_load(s + i * TILE + g * V), part[0][g]);
    }
    QK_UNROLL for (int g = 0; g < WIDE; g++) sum[g] = gang_sum(part, g);
}

/* Two states that are at the same place of a tile. */
typedef struct states {
    float *s;
    const float *old;
    int stream;
} states;

QK_INLINE states states_at(states t, size_t at) { return (states){ t.s + at, t.old + at, t.stream }; }

/* Row i = w * row + k * v - b * seen, b NULL: without the last term; adds r * row, as it was
 * or as it is, to sum. */
QK_INLINE void change_row(vf sum[WIDE], states row, const vf factor[4], const vf v[WIDE], const vf seen[WIDE],
                          int before) {
    QK_UNROLL for (int g = 0; g < WIDE; g++) {
        const vf old = v_load(row.old + g * V);
        vf now = v_fma(factor[1], v[g], v_mul(factor[0], old));
        if (seen != NULL) now = v_fnma(factor[3], seen[g], now);
        put(row.s + g * V, now, row.stream);
        sum[g] = v_fma(factor[2], before ? old : now, sum[g]);
    }
}

QK_INLINE void delta_row(vf sum[WIDE], states s, const qk_delta *p, size_t i, const vf v[WIDE]) {
    const vf f[4] = { v_set(p->decay[i * p->decay_step]), v_set(p->k[i]), v_set(p->q[i]) };
    change_row(sum, states_at(s, i * TILE), f, v, NULL, 0);
}

QK_INLINE void delta_cols(states s, const qk_delta *p, size_t at) {
    vf v[WIDE], seen[WIDE], sum[GANG][WIDE];
    size_t i = 0;
    if (p->decay_step == 0)
        sum_rows(seen, s.old, p->k, NULL, p->rows);
    else
        sum_rows(seen, s.old, p->k, p->decay, p->rows);
    const vf once = v_set(p->decay_step == 0 ? p->decay[0] : 1.0f);
    for (int g = 0; g < WIDE; g++) {
        const vf x = v_fnma(once, seen[g], take(p->v, p->cols, at + (size_t)g * V));
        v[g] = v_mul(v_set(p->beta), x);
    }
    no_sums(sum);
    for (; i + GANG <= p->rows; i += GANG)
        QK_UNROLL for (size_t u = 0; u < GANG; u++) delta_row(sum[u], s, p, i + u, v);
    for (; i < p->rows; i++) delta_row(sum[0], s, p, i, v);
    for (int g = 0; g < WIDE; g++)
        give(p->y, p->cols, at + (size_t)g * V, v_mul(v_set(p->scale), gang_sum(sum, g)));
}

/* Copied, so that the compiler need not read it again after each store. */
void QK_FN(delta)(float *s, const qk_delta *at_pos) {
    const qk_delta p = *at_pos;
    const states all = { s, p.old, p.stream };
    for (size_t at = 0; at < p.cols; at += WIDE * V) delta_cols(states_at(all, at), &p, at);
    if (p.stream) v_streamed();
}

QK_INLINE void wkv_row(vf sum[WIDE], states s, const qk_wkv *p, size_t i, const vf v[WIDE],
                       const vf seen[WIDE], int before) {
    const float w = p->w[i * p->w_step], k = p->open ? p->k[i] - p->k[i] * w : p->k[i];
    const vf f[4] = { v_set(w), v_set(k), v_set(p->r[i]), v_set(seen != NULL ? p->b[i] : 0.0f) };
    change_row(sum, states_at(s, i * TILE), f, v, seen, before);
}

QK_INLINE void wkv_cols(states s, const qk_wkv *p, size_t at, int subtracts, int before) {
    vf v[WIDE], seen[WIDE], sum[GANG][WIDE];
    size_t i = 0;
    if (subtracts) sum_rows(seen, s.old, p->a, NULL, p->rows);
    for (int g = 0; g < WIDE; g++) v[g] = take(p->v, p->cols, at + (size_t)g * V);
    no_sums(sum);
    for (; i + GANG <= p->rows; i += GANG)
        QK_UNROLL for (size_t u = 0; u < GANG; u++)
            wkv_row(sum[u], s, p, i + u, v, subtracts ? seen : NULL, before);
    for (; i < p->rows; i++) wkv_row(sum[0], s, p, i, v, subtracts ? seen : NULL, before);
    for (int g = 0; g < WIDE; g++) give(p->y, p->cols, at + (size_t)g * V, gang_sum(sum, g));
}

void QK_FN(wkv)(float *s, const qk_wkv *at_pos) {
    const qk_wkv p = *at_pos;
    const states all = { s, p.old, p.stream };
    for (size_t at = 0; at < p.cols; at += WIDE * V)
        if (p.a != NULL)
            wkv_cols(states_at(all, at), &p, at, 1, 0);
        else if (p.before)
            wkv_cols(states_at(all, at), &p, at, 0, 1);
        else
            wkv_cols(states_at(all, at), &p, at, 0, 0);
    if (p.stream) v_streamed();
}

/* ---- convolution ---- */

QK_INLINE vf taps(const float *const *x, const float *const *w, size_t kernel, size_t i, size_t n) {
    vf sum = n == V ? v_mul(v_load(x[0] + i), v_load(w[0] + i))
                    : v_mul(v_load_some(x[0] + i, n), v_load_some(w[0] + i, n));
    for (size_t k = 1; k < kernel; k++)
        sum = n == V ? v_fma(v_load(x[k] + i), v_load(w[k] + i), sum)
                     : v_fma(v_load_some(x[k] + i, n), v_load_some(w[k] + i, n), sum);
    return sum;
}

void QK_FN(conv)(float *y, const float *const *x, const float *const *w, size_t kernel, const float *bias,
                 size_t n) {
    size_t i = 0;
    for (; i + V <= n; i += V) {
        const vf sum = kernel == 4 ? taps(x, w, 4, i, V) : taps(x, w, kernel, i, V);
        v_store(y + i, bias != NULL ? v_add(sum, v_load(bias + i)) : sum);
    }
    if (i < n) {
        const vf sum = taps(x, w, kernel, i, n - i);
        v_store_some(y + i, n - i, bias != NULL ? v_add(sum, v_load_some(bias + i, n - i)) : sum);
    }
}

#endif
