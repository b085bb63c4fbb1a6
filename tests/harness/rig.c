/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opening and closing rigs; models of shapes only. */
#include "tests/harness/rig.h"

#include <stdlib.h>
#include <string.h>

#include "src/format/dtype.h"
#include "src/plan/layout.h"

static int make_plan(QsfRig *r, const QsfRigOptions *o, QsfErr *err) {
    const QsfPlanOptions po = {
        .budget = 4ull << 30,
        .ctx = o->ctx,
        .kv = -1,
        .pin_cap = o->stream         ? 0
                   : o->pin_cap != 0 ? o->pin_cap
                                     : UINT64_MAX,
        .batch = o->batch,
        .threads = o->threads > 0 ? o->threads : 1,
        .exact = o->exact,
    };
    int rc = qsf_plan_make(&r->plan, &r->model, &po, err);
    if (rc != QSF_OK) return rc;
    if (o->n_slots != 0) r->plan.n_slots = o->n_slots;
    if (o->slot_bytes > 1) r->plan.slot_bytes = o->slot_bytes;
    if (o->slot_bytes == 1) {
        QsfShape s;
        qsf_shape_make(&s, &r->model, &r->table);
        r->plan.slot_bytes = s.min_slot;
    }
    return QSF_OK;
}

int qsf_rig_open(QsfRig *r, const QsfRigOptions *o, QsfErr *err) {
    memset(r, 0, sizeof *r);
    qsf_ledger_init(&r->ledger, 0);
    atomic_init(&r->cancel, 0);
    qk_table_init(&r->table, o->level == QK_LEVEL_UNKNOWN ? qk_cpu_best() : o->level);
    int rc = qsf_model_open(&r->model, o->path, NULL, &r->ledger, err);
    if (rc != QSF_OK) return rc;
    rc = make_plan(r, o, err);
    if (rc == QSF_OK) rc = qsf_pool_create(&r->pool, r->plan.threads, &r->ledger, err);
    const QsfForwardOptions fo = { .model = &r->model,
                                   .plan = &r->plan,
                                   .table = &r->table,
                                   .pool = r->pool,
                                   .ledger = &r->ledger,
                                   .cancel = &r->cancel };
    if (rc == QSF_OK) rc = qsf_forward_create(&r->fwd, &fo, err);
    if (rc != QSF_OK) qsf_rig_close(r);
    return rc;
}

void qsf_rig_close(QsfRig *r) {
    qsf_forward_destroy(r->fwd);
    qsf_pool_destroy(r->pool);
    qsf_plan_free(&r->plan);
    qsf_model_close(&r->model);
    r->fwd = NULL;
    r->pool = NULL;
}

uint64_t qsf_rig_leak(QsfRig *r) {
    QsfLedger now;
    qsf_ledger_snapshot(&r->ledger, &now);
    return now.total;
}

static const QsfTensor *tensor(uint32_t dtype, uint64_t cols, uint64_t rows) {
    QsfTensor *t = calloc(1, sizeof *t);
    uint64_t row = 0;
    if (t == NULL || !qsf_dtype_row_bytes(qsf_dtype(dtype), cols, &row)) abort();
    *t = (QsfTensor){
        .name = "shape", .dtype = dtype, .n_dims = 2, .ne = { cols, rows, 1, 1 }, .bytes = row * rows
    };
    return t;
}

void qsf_shape_model(QsfModel *m, const QsfShapeSpec *s) {
    uint64_t h = s->hidden, hd = s->hidden / s->heads, kv = hd * s->kv_heads;
    memset(m, 0, sizeof *m);
    m->hp = (QsfHparams){ .arch = qsf_arch_find("llama"),
                          .n_layers = s->layers,
                          .hidden = s->hidden,
                          .n_heads = s->heads,
                          .n_kv_heads = s->kv_heads,
                          .head_dim = (uint32_t)hd,
                          .ffn = s->ffn,
                          .n_vocab = s->vocab,
                          .n_ctx_train = s->ctx,
                          .norm_eps = 1e-5f,
                          .n_rot = (uint32_t)hd,
                          .rope_base = 10000,
                          .rope_scale = 1 };
    m->tied_head = s->tied;
    m->layers = calloc(s->layers, sizeof *m->layers);
    if (m->layers == NULL) abort();
    const struct {
        QsfRole role;
        uint64_t cols, rows;
    } mats[] = { { QSF_ROLE_Q, h, h },        { QSF_ROLE_K, h, kv },        { QSF_ROLE_V, h, kv },
                 { QSF_ROLE_O, h, h },        { QSF_ROLE_GATE, h, s->ffn }, { QSF_ROLE_UP, h, s->ffn },
                 { QSF_ROLE_DOWN, s->ffn, h } };
    for (uint32_t l = 0; l < s->layers; l++) {
        m->layers[l][QSF_ROLE_ATTN_NORM] = tensor(0, h, 1);
        m->layers[l][QSF_ROLE_FFN_NORM] = tensor(0, h, 1);
        for (size_t i = 0; i < sizeof mats / sizeof *mats; i++) {
            m->layers[l][mats[i].role] = tensor(s->dtype, mats[i].cols, mats[i].rows);
        }
    }
    m->global[QSF_ROLE_EMBED - QSF_ROLE_LAYER_N] = tensor(s->dtype, h, s->vocab);
    m->global[QSF_ROLE_FINAL_NORM - QSF_ROLE_LAYER_N] = tensor(0, h, 1);
    m->global[QSF_ROLE_HEAD - QSF_ROLE_LAYER_N] = s->tied ? m->global[QSF_ROLE_EMBED - QSF_ROLE_LAYER_N]
                                                          : tensor(s->dtype, h, s->vocab);
}

void qsf_shape_model_free(QsfModel *m) {
    for (uint32_t l = 0; l < m->hp.n_layers; l++) {
        for (unsigned r = 0; r < QSF_ROLE_LAYER_N; r++) free((void *)(uintptr_t)m->layers[l][r]);
    }
    if (m->tied_head) m->global[QSF_ROLE_HEAD - QSF_ROLE_LAYER_N] = NULL;
    for (unsigned r = 0; r < QSF_ROLE_N - QSF_ROLE_LAYER_N; r++) free((void *)(uintptr_t)m->global[r]);
    free(m->layers);
    m->layers = NULL;
}
