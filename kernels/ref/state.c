/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recurrent states and short convolutions. */
#include <math.h>

#include "kernels/ref/ref.h"

static float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

void qk_scan_each_ref(const qk_scan *p, const qk_scan_each *e) {
    const float *old = p->old;
    for (size_t c = 0; c < p->n_pos; c++, old = p->s)
        for (size_t j = 0; j < p->cols; j++) {
            const float *b = p->b + c * p->bc_stride, *cc = p->c + c * p->bc_stride;
            const float t = softplus(e->dt[c * e->dt_stride + j]), x = p->x[c * p->x_stride + j];
            double sum = 0;
            for (size_t i = 0; i < p->rows; i++) {
                const size_t at = i * QK_STATE_TILE + j;
                p->s[at] = old[at] * expf(t * e->a[at]) + b[i] * (t * x);
                sum += (double)cc[i] * (double)p->s[at];
            }
            p->y[c * p->y_stride + j] = (float)sum + e->d[j] * x;
        }
}

void qk_scan_one_ref(const qk_scan *p, const qk_scan_one *o) {
    const float *old = p->old;
    for (size_t c = 0; c < p->n_pos; c++, old = p->s)
        for (size_t j = 0; j < p->cols; j++) {
            const float *b = p->b + c * p->bc_stride, *cc = p->c + c * p->bc_stride;
            const float x = p->x[c * p->x_stride + j];
            double sum = 0;
            for (size_t i = 0; i < p->rows; i++) {
                const size_t at = i * QK_STATE_TILE + j;
                p->s[at] = old[at] * o->keep[c] + b[i] * (o->gain[c] * x);
                sum += (double)cc[i] * (double)p->s[at];
            }
            p->y[c * p->y_stride + j] = o->out[c] * (float)sum + o->d * x;
        }
}

void qk_delta_ref(float *s, const qk_delta *p) {
    for (size_t j = 0; j < p->cols; j++) {
        float seen = 0, y = 0;
        for (size_t i = 0; i < p->rows; i++)
            seen += p->decay[i * p->decay_step] * p->k[i] * p->old[i * QK_STATE_TILE + j];
        const float v = p->beta * (p->v[j] - seen);
        for (size_t i = 0; i < p->rows; i++) {
            const size_t at = i * QK_STATE_TILE + j;
            s[at] = p->decay[i * p->decay_step] * p->old[at] + p->k[i] * v;
            y += p->q[i] * s[at];
        }
        p->y[j] = p->scale * y;
    }
}

void qk_wkv_ref(float *s, const qk_wkv *p) {
    for (size_t j = 0; j < p->cols; j++) {
        float seen = 0, y = 0;
        for (size_t i = 0; p->a != NULL && i < p->rows; i++) seen += p->a[i] * p->old[i * QK_STATE_TILE + j];
        for (size_t i = 0; i < p->rows; i++) {
            const size_t at = i * QK_STATE_TILE + j;
            const float w = p->w[i * p->w_step], k = p->open ? p->k[i] - p->k[i] * w : p->k[i],
                        old = p->old[at];
            s[at] = w * old + k * p->v[j];
            if (p->a != NULL) s[at] -= p->b[i] * seen;
            y += p->r[i] * (p->before ? old : s[at]);
        }
        p->y[j] = y;
    }
}

void qk_conv_ref(float *y, const float *const *x, const float *const *w, size_t kernel, const float *bias,
                 size_t n) {
    for (size_t i = 0; i < n; i++) {
        float sum = 0;
        for (size_t k = 0; k < kernel; k++) sum += x[k][i] * w[k][i];
        y[i] = bias != NULL ? sum + bias[i] : sum;
    }
}
