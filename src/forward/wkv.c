/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Linear attention of RWKV (QsfWkvStep). As in delta.c, loops run over the columns of a tile. */
#include <string.h>

#include "src/forward/matstate.h"

enum { TILE = QSF_STATE_TILE };

typedef struct Position {
    const float *in[QSF_WKV_SLOTS]; /* of one head */
    float decay;                    /* FIXED */
} Position;

static void v6(const Position *p, float *restrict s, size_t dim, const float *restrict v,
               float *restrict out) {
    for (size_t i = 0; i < dim; i++) {
        float *row = s + i * TILE;
        const float r = p->in[QSF_WKV_R][i], w = p->in[QSF_WKV_W][i], k = p->in[QSF_WKV_K][i];
        for (size_t j = 0; j < TILE; j++) {
            out[j] += r * row[j];
            row[j] = w * row[j] + k * v[j];
        }
    }
}

static void gla(const Position *p, float *restrict s, size_t dim, const float *restrict v,
                float *restrict out) {
    for (size_t i = 0; i < dim; i++) {
        float *row = s + i * TILE;
        const float r = p->in[QSF_WKV_R][i], w = p->in[QSF_WKV_W][i], k = p->in[QSF_WKV_K][i];
        const float open = k - k * w;
        for (size_t j = 0; j < TILE; j++) {
            row[j] = w * row[j] + open * v[j];
            out[j] += r * row[j];
        }
    }
}

static void fixed(const Position *p, float *restrict s, size_t dim, const float *restrict v,
                  float *restrict out) {
    for (size_t i = 0; i < dim; i++) {
        float *row = s + i * TILE;
        const float r = p->in[QSF_WKV_R][i], k = p->in[QSF_WKV_K][i];
        for (size_t j = 0; j < TILE; j++) {
            row[j] = p->decay * row[j] + k * v[j];
            out[j] += r * row[j];
        }
    }
}

static void v7(const Position *p, float *restrict s, size_t dim, const float *restrict v,
               float *restrict out) {
    float seen[TILE] = { 0 };
    for (size_t i = 0; i < dim; i++) {
        const float *row = s + i * TILE, a = p->in[QSF_WKV_A][i];
        for (size_t j = 0; j < TILE; j++) seen[j] += a * row[j];
    }
    for (size_t i = 0; i < dim; i++) {
        float *row = s + i * TILE;
        const float r = p->in[QSF_WKV_R][i], w = p->in[QSF_WKV_W][i], k = p->in[QSF_WKV_K][i],
                    b = p->in[QSF_WKV_B][i];
        for (size_t j = 0; j < TILE; j++) {
            row[j] = w * row[j] + k * v[j] - b * seen[j];
            out[j] += r * row[j];
        }
    }
}

static void (*const kinds[])(const Position *p, float *restrict s, size_t dim, const float *restrict v,
                             float *restrict out) = {
    [QSF_WKV_V6] = v6,
    [QSF_WKV_GLA] = gla,
    [QSF_WKV_FIXED] = fixed,
    [QSF_WKV_V7] = v7,
};

/* Returns input i of a head. */
static const float *input(const float *in, const QsfWkvStep *p, unsigned i, uint32_t head) {
    const uint32_t h = i == QSF_WKV_K || i == QSF_WKV_V ? head / (p->heads / p->kv_heads) : head;
    return in + (size_t)i * p->slot + (size_t)h * p->dim;
}

static void through_positions(const QsfForward *f, const QsfStep *s, const QsfStateTile *t) {
    const QsfWkvStep *p = &s->u.wkv;
    const float decay = p->kind == QSF_WKV_FIXED ? f->model->prog.slopes[p->decays][t->head] : 0.0f;
    const unsigned n = p->kind == QSF_WKV_V7 ? QSF_WKV_SLOTS : QSF_WKV_A;
    for (size_t c = f->col0; c < f->col0 + f->n_cols; c++) {
        const float *in = qsf_col(f, s->in, c);
        float v[TILE], out[TILE] = { 0 };
        Position pos = { .decay = decay };
        for (unsigned i = 0; i < n; i++) pos.in[i] = input(in, p, i, t->head);
        qsf_tile_load(v, pos.in[QSF_WKV_V] + t->col, t->n);
        kinds[p->kind](&pos, t->s, p->dim, v, out);
        memcpy(qsf_col(f, s->out[0], c) + (size_t)t->head * p->dim + t->col, out, t->n * sizeof *out);
    }
}

int qsf_wkv(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfWkvStep *p = &s->u.wkv;
    (void)err;
    qsf_matrix_state_run(f, s, p->state, p->heads, p->dim, p->dim, through_positions);
    return QSF_OK;
}

void qsf_wkv_bonus(const QsfForward *f, const QsfStep *s, size_t c) {
    const QsfWkvStep *p = &s->u.wkv;
    const float *in = qsf_col(f, s->in, c), *u = qsf_param(f, p->param);
    float *y = qsf_col(f, s->out[0], c);
    for (uint32_t h = 0; h < p->heads; h++, y += p->dim, u += p->dim) {
        const float *r = input(in, p, QSF_WKV_R, h), *k = input(in, p, QSF_WKV_K, h),
                    *v = input(in, p, QSF_WKV_V, h);
        double sum = 0;
        for (uint32_t i = 0; i < p->dim; i++) sum += (double)(r[i] * u[i]) * (double)k[i];
        for (uint32_t i = 0; i < p->dim; i++) y[i] += (float)sum * v[i];
    }
}
