/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small tensors: norms, biases and rotation frequencies, always in RAM as floats. */
#include <math.h>
#include <string.h>

#include "src/base/file.h"
#include "src/format/dtype.h"
#include "src/forward/state.h"

#define PIECE_ELEMS 256u /* a multiple of every block length */

static int read_floats(QsfForward *f, const QsfTensor *t, float *dst, QsfErr *err) {
    const QsfFile *file = qsf_source_file(f->model->src, t->file);
    const QsfDtype *d = qsf_dtype(t->dtype);
    const qk_weight_ops *ops = &f->table->weight[qk_type_of(t->dtype)];
    uint64_t n = t->ne[0] * t->ne[1], off = t->offset;
    uint8_t raw[PIECE_ELEMS * sizeof(float)];
    for (uint64_t i = 0; i < n; i += PIECE_ELEMS) {
        uint64_t left = n - i, m = left < PIECE_ELEMS ? left : PIECE_ELEMS;
        size_t bytes = (size_t)(m / d->block_elems * d->block_bytes);
        int rc = qsf_file_pread(file, raw, bytes, off, err);
        if (rc != QSF_OK) return rc;
        ops->dequant(raw, dst + i, (size_t)m);
        off += bytes;
    }
    return QSF_OK;
}

static int load_role(QsfForward *f, QsfRole role, uint32_t layer, float **at, const float **slot,
                     QsfErr *err) {
    const QsfTensor *t = qsf_model_tensor(f->model, role, layer);
    if (t == NULL || qsf_role_is_matrix(role)) return QSF_OK;
    *slot = *at;
    int rc = t->compressed == NULL ? read_floats(f, t, *at, err) : QSF_OK; /* otherwise qsf_params_of_layer,
                                                                              when the layer is loaded */
    *at += qsf_pad16((uint32_t)(t->ne[0] * t->ne[1]));
    return rc;
}

void qsf_params_of_layer(void *arg, uint32_t layer, const uint8_t *whole) {
    QsfForward *f = arg;
    for (unsigned r = 0; r < QSF_ROLE_LAYER_N; r++) {
        const QsfTensor *t = qsf_model_tensor(f->model, (QsfRole)r, layer);
        if (t == NULL || qsf_role_is_matrix((QsfRole)r)) continue;
        float *dst = f->params.mem + (qsf_param(f, (QsfRole)r, layer) - f->params.mem);
        f->table->weight[qk_type_of(t->dtype)].dequant(whole + t->offset, dst, (size_t)(t->ne[0] * t->ne[1]));
    }
}

/* Radians per position of pair i: base^(-2i / n_rot), divided by the linear scale and by the model's own
 * factor (Su et al. 2021, RoFormer; ggml-org/llama.cpp for rope_freqs.weight). */
static void make_freq(QsfForward *f) {
    const QsfHparams *hp = &f->model->hp;
    const float *factor = qsf_param(f, QSF_ROLE_ROPE_FREQS, 0);
    for (uint32_t i = 0; i < hp->n_rot / 2; i++) {
        double w = pow((double)hp->rope_base, -2.0 * i / hp->n_rot) / (double)hp->rope_scale;
        f->params.freq[i] = factor != NULL ? w / (double)factor[i] : w;
    }
}

static int map_params(QsfForward *f, QsfErr *err) {
    QsfParams *p = &f->params;
    QsfShape s;
    void *mem;
    qsf_shape_make(&s, f->model, f->table);
    p->bytes = qsf_pages(4 * s.param_floats);
    int rc = qsf_mem_map(f->ledger, QSF_MEM_PINNED, p->bytes, "norm weights", &mem, err);
    if (rc != QSF_OK) return rc;
    p->mem = mem;
    p->layer_bytes = qsf_pages((uint64_t)f->model->hp.n_layers * QSF_ROLE_LAYER_N * sizeof *p->layer);
    rc = qsf_mem_map(f->ledger, QSF_MEM_META, p->layer_bytes, "norm table", &mem, err);
    p->layer = mem;
    return rc;
}

int qsf_params_load(QsfForward *f, QsfErr *err) {
    QsfParams *p = &f->params;
    uint32_t n_layers = f->model->hp.n_layers;
    int rc = map_params(f, err);
    if (rc != QSF_OK) return rc;
    p->freq = (double *)(void *)p->mem;
    float *at = p->mem + qsf_pad16(f->model->hp.n_rot);
    for (uint32_t l = 0; rc == QSF_OK && l < n_layers; l++) {
        for (unsigned r = 0; rc == QSF_OK && r < QSF_ROLE_LAYER_N; r++) {
            rc = load_role(f, (QsfRole)r, l, &at, &p->layer[(size_t)l * QSF_ROLE_LAYER_N + r], err);
        }
    }
    for (unsigned r = QSF_ROLE_LAYER_N; rc == QSF_OK && r < QSF_ROLE_N; r++) {
        rc = load_role(f, (QsfRole)r, 0, &at, &p->global[r - QSF_ROLE_LAYER_N], err);
    }
    if (rc == QSF_OK) make_freq(f);
    return rc;
}

void qsf_params_free(QsfForward *f) {
    qsf_mem_unmap(f->ledger, QSF_MEM_META, (void *)f->params.layer, f->params.layer_bytes);
    qsf_mem_unmap(f->ledger, QSF_MEM_PINNED, f->params.mem, f->params.bytes);
}
