/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recurrent states for any vector of v_<isa>.h; needs exp.h. */
#ifndef QSF_KERNELS_GENERIC_OPS_STATE_H
#define QSF_KERNELS_GENERIC_OPS_STATE_H

/* For loops with a constant count, so that arrays of vectors are registers. */
#ifdef __clang__
#define QK_REPEAT _Pragma("unroll")
#else
#define QK_REPEAT _Pragma("GCC unroll 32")
#endif

enum {
    TILE = QK_STATE_TILE,
    POSITIONS = QK_SCAN_POSITIONS,
    ROWS = V_REGISTERS / 2,             /* of a state that stay in registers */
    CHAINS = 4,                         /* sums, which hide the latency of the addition */
    WIDE = TILE / V < 4 ? TILE / V : 4, /* vectors of a row that are handled together */
    PAIR = 2                            /* rows whose sums are separate */
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

typedef struct scan_sums {
    vf t[POSITIONS]; /* time step */
    vf x[POSITIONS]; /* input */
    vf y[POSITIONS]; /* sum over the rows so far */
} scan_sums;

QK_INLINE void load_rows(vf *s, const qk_scan *p, size_t row, size_t at, size_t n) {
    QK_REPEAT for (size_t r = 0; r < n; r++) s[r] = v_load(p->old + (row + r) * TILE + at);
}

QK_INLINE void store_rows(const vf *s, const qk_scan *p, size_t row, size_t at, size_t n) {
    QK_REPEAT for (size_t r = 0; r < n; r++) v_store(p->s + (row + r) * TILE + at, s[r]);
}

QK_INLINE vf sum_chains(const vf *y) { return v_add(v_add(y[0], y[1]), v_add(y[2], y[3])); }

QK_INLINE void one_rows(const qk_scan *p, const qk_scan_one *o, scan_sums *m, size_t row, size_t at,
                        size_t n) {
    vf s[ROWS];
    load_rows(s, p, row, at, n);
    for (size_t c = 0; c < p->n_pos; c++) {
        const float *b = p->b + c * p->bc_stride + row, *cc = p->c + c * p->bc_stride + row;
        const vf x = m->x[c];
        vf y[CHAINS] = { m->y[c], v_set(0), v_set(0), v_set(0) };
        if (!(o->keep[c] >= 1.0f && o->keep[c] <= 1.0f))
            QK_REPEAT for (size_t r = 0; r < n; r++) s[r] = v_mul(s[r], v_set(o->keep[c]));
        QK_REPEAT for (size_t r = 0; r < n; r++) {
            s[r] = v_fma(v_set(b[r]), x, s[r]);
            y[r % CHAINS] = v_fma(v_set(cc[r]), s[r], y[r % CHAINS]);
        }
        m->y[c] = sum_chains(y);
    }
    store_rows(s, p, row, at, n);
}

void QK_FN(scan_one)(const qk_scan *p, const qk_scan_one *o) {
    scan_sums m;
    for (size_t at = 0; at < p->cols; at += V) {
        size_t row = 0;
        for (size_t c = 0; c < p->n_pos; c++) {
            m.x[c] = v_mul(v_set(o->gain[c]), take(p->x + c * p->x_stride, p->cols, at));
            m.y[c] = v_set(0);
        }
        for (; row + ROWS <= p->rows; row += ROWS) one_rows(p, o, &m, row, at, ROWS);
        for (; row < p->rows; row++) one_rows(p, o, &m, row, at, 1);
        for (size_t c = 0; c < p->n_pos; c++) {
            const vf x = take(p->x + c * p->x_stride, p->cols, at), y = v_mul(v_set(o->out[c]), m.y[c]);
            give(p->y + c * p->y_stride, p->cols, at, v_fma(v_set(o->d), x, y));
        }
    }
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + u) with u = exp(-|x|) and log(1 + u) = 2 artanh(u / (2 + u)), whose argument is
 * at most 1/3: the series up to z^15 / 15 leaves 1e-9. */
QK_INLINE vf softplus(vf x) {
    const vf size = v_max(v_sub(v_set(0), x), x), u = v_exp(v_sub(v_set(0), size));
    const vf z = v_div(u, v_add(u, v_set(2.0f))), zz = v_mul(z, z);
    vf p = v_set(1.0f / 15);
    QK_REPEAT for (int i = 13; i >= 3; i -= 2) p = v_fma(p, zz, v_set(1.0f / (float)i));
    return v_add(v_max(v_set(0), x), v_mul(v_add(z, z), v_fma(p, zz, v_set(1.0f))));
}

/* Rows [row, row + n) of a, for V columns. */
QK_INLINE void load_rates(vf *a, const qk_scan *p, const qk_scan_each *e, size_t row, size_t at, size_t n) {
    float lane[ROWS / 2][V] = { { 0 } };
    for (size_t i = 0; i < V && at + i < p->cols; i++)
        for (size_t r = 0; r < n; r++) lane[r][i] = e->a[(at + i) * p->rows + row + r];
    QK_REPEAT for (size_t r = 0; r < n; r++) a[r] = v_load(lane[r]);
}

QK_INLINE void each_rows(const qk_scan *p, const qk_scan_each *e, scan_sums *m, size_t row, size_t at,
                         size_t n) {
    vf s[ROWS / 2], a[ROWS / 2];
    load_rates(a, p, e, row, at, n);
    load_rows(s, p, row, at, n);
    for (size_t c = 0; c < p->n_pos; c++) {
        const float *b = p->b + c * p->bc_stride + row, *cc = p->c + c * p->bc_stride + row;
        const vf x = m->x[c], t = m->t[c];
        vf y = m->y[c];
        QK_REPEAT for (size_t r = 0; r < n; r++) {
            s[r] = v_fma(s[r], v_exp(v_mul(t, a[r])), v_mul(v_set(b[r]), x));
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
            m.t[c] = softplus(take(e->dt + c * e->dt_stride, p->cols, at));
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
}

/* ---- one position: the columns of WIDE vectors, all rows ---- */

/* sum[g] = sum over the rows of f * row, f being from[i] * by[i * step], or from[i] where by is NULL. */
QK_INLINE void sum_rows(vf sum[WIDE], const float *s, const float *from, const float *by, size_t rows) {
    vf part[PAIR][WIDE];
    size_t i = 0;
    QK_REPEAT for (int g = 0; g < WIDE; g++) part[0][g] = part[1][g] = v_set(0);
    for (; i + PAIR <= rows; i += PAIR) QK_REPEAT for (size_t u = 0; u < PAIR; u++) {
            const vf f = v_set(by != NULL ? from[i + u] * by[i + u] : from[i + u]);
            QK_REPEAT for (int g = 0; g < WIDE; g++)
                part[u][g] = v_fma(f, v_load(s + (i + u) * TILE + g * V), part[u][g]);
        }
    if (i < rows) {
        const vf f = v_set(by != NULL ? from[i] * by[i] : from[i]);
        QK_REPEAT for (int g = 0; g < WIDE; g++)
            part[0][g] = v_fma(f, v_load(s + i * TILE + g * V), part[0][g]);
    }
    QK_REPEAT for (int g = 0; g < WIDE; g++) sum[g] = v_add(part[0][g], part[1][g]);
}

/* Row i = w * row + k * v - b * seen, b NULL: without the last term; adds r * row, as it was or as it is, to sum. */
QK_INLINE void change_row(vf sum[WIDE], float *row, const vf factor[4], const vf v[WIDE], const vf seen[WIDE],
                          int before) {
    QK_REPEAT for (int g = 0; g < WIDE; g++) {
        const vf old = v_load(row + g * V);
        vf now = v_fma(factor[1], v[g], v_mul(factor[0], old));
        if (seen != NULL) now = v_fnma(factor[3], seen[g], now);
        v_store(row + g * V, now);
        sum[g] = v_fma(factor[2], before ? old : now, sum[g]);
    }
}

QK_INLINE void delta_cols(float *s, const qk_delta *p, size_t at) {
    vf v[WIDE], seen[WIDE], sum[PAIR][WIDE];
    if (p->decay_step == 0)
        sum_rows(seen, s, p->k, NULL, p->rows);
    else
        sum_rows(seen, s, p->k, p->decay, p->rows);
    const vf once = v_set(p->decay_step == 0 ? p->decay[0] : 1.0f);
    for (int g = 0; g < WIDE; g++) {
        const vf x = v_fnma(once, seen[g], take(p->v, p->cols, at + (size_t)g * V));
        v[g] = v_mul(v_set(p->beta), x);
        sum[0][g] = sum[1][g] = v_set(0);
    }
    for (size_t i = 0; i + PAIR <= p->rows; i += PAIR) QK_REPEAT for (size_t u = 0; u < PAIR; u++) {
            const vf f[4] = { v_set(p->decay[(i + u) * p->decay_step]), v_set(p->k[i + u]),
                              v_set(p->q[i + u]) };
            change_row(sum[u], s + (i + u) * TILE, f, v, NULL, 0);
        }
    if (p->rows % PAIR != 0) {
        const size_t i = p->rows - 1;
        const vf f[4] = { v_set(p->decay[i * p->decay_step]), v_set(p->k[i]), v_set(p->q[i]) };
        change_row(sum[0], s + i * TILE, f, v, NULL, 0);
    }
    for (int g = 0; g < WIDE; g++)
        give(p->y, p->cols, at + (size_t)g * V, v_mul(v_set(p->scale), v_add(sum[0][g], sum[1][g])));
}

void QK_FN(delta)(float *s, const qk_delta *p) {
    for (size_t at = 0; at < p->cols; at += WIDE * V) delta_cols(s + at, p, at);
}

QK_INLINE void wkv_row(vf sum[WIDE], float *s, const qk_wkv *p, size_t i, const vf v[WIDE],
                       const vf seen[WIDE], int before) {
    const float w = p->w[i * p->w_step], k = p->open ? p->k[i] - p->k[i] * w : p->k[i];
    const vf f[4] = { v_set(w), v_set(k), v_set(p->r[i]), v_set(seen != NULL ? p->b[i] : 0.0f) };
    change_row(sum, s + i * TILE, f, v, seen, before);
}

QK_INLINE void wkv_cols(float *s, const qk_wkv *p, size_t at, int subtracts, int before) {
    vf v[WIDE], seen[WIDE], sum[PAIR][WIDE];
    if (subtracts) sum_rows(seen, s, p->a, NULL, p->rows);
    for (int g = 0; g < WIDE; g++) {
        v[g] = take(p->v, p->cols, at + (size_t)g * V);
        sum[0][g] = sum[1][g] = v_set(0);
    }
    for (size_t i = 0; i + PAIR <= p->rows; i += PAIR)
        QK_REPEAT for (size_t u = 0; u < PAIR; u++)
            wkv_row(sum[u], s, p, i + u, v, subtracts ? seen : NULL, before);
    if (p->rows % PAIR != 0) wkv_row(sum[0], s, p, p->rows - 1, v, subtracts ? seen : NULL, before);
    for (int g = 0; g < WIDE; g++) give(p->y, p->cols, at + (size_t)g * V, v_add(sum[0][g], sum[1][g]));
}

void QK_FN(wkv)(float *s, const qk_wkv *p) {
    for (size_t at = 0; at < p->cols; at += WIDE * V)
        if (p->a != NULL)
            wkv_cols(s + at, p, at, 1, 0);
        else if (p->before)
            wkv_cols(s + at, p, at, 0, 1);
        else
            wkv_cols(s + at, p, at, 0, 0);
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
