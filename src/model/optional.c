/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/model/optional.h"

#include <string.h>

#include "src/model/residual.h"

uint32_t qsf_blocks_count(const QsfBlockSet *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < QSF_MAX_LAYERS; i++) n += qsf_blocks_have(s, i);
    return n;
}

bool qsf_blocks_equal(const QsfBlockSet *a, const QsfBlockSet *b) { return memcmp(a, b, sizeof *a) == 0; }

/* Returns the KV cache that a step reads or writes. */
static uint32_t cache_of(const QsfStep *s) {
    switch (s->op) {
    case QSF_OP_KV_STORE: return s->u.kv;
    case QSF_OP_ATTENTION: return s->u.attention.kv;
    case QSF_OP_INDEX: return s->u.index.kv;
    default: return QSF_NONE;
    }
}

/* A cache that steps of several blocks use belongs to all of them: those that write it are kept. */
static void keep_shared(const QsfProgram *p, QsfBlockSet *out) {
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const uint32_t kv = cache_of(&p->step[i]);
        if (kv == QSF_NONE || kv >= p->n_kv) continue;
        if (p->kv[kv].block != p->step[i].block) qsf_blocks_remove(out, p->kv[kv].block);
        if (p->kv[kv].block != p->step[i].block && p->step[i].op == QSF_OP_KV_STORE)
            qsf_blocks_remove(out, p->step[i].block);
    }
}

static bool has_weights(const QsfProgram *p, uint32_t block) {
    return p->block_unit[block + 1] > p->block_unit[block];
}

int qsf_optional_blocks(const QsfModel *m, QsfBlockSet *out, QsfErr *err) {
    const QsfProgram *p = &m->prog;
    const uint32_t edge = p->n_blocks >= QSF_OPTIONAL_EDGE ? 2 : 1;
    QsfResidual r;
    memset(out, 0, sizeof *out);
    int rc = qsf_residual_make(&r, m, err);
    if (rc == QSF_E_MODEL) return QSF_OK;
    if (rc != QSF_OK) return rc;
    for (uint32_t i = edge; i + edge < p->n_blocks; i++) {
        const QsfResidualBlock *b = &r.block[i];
        if (b->n == 1 && b->width == m->hp.hidden && has_weights(p, i) && !qsf_residual_leaves_more(&r, p, i))
            qsf_blocks_add(out, i);
    }
    keep_shared(p, out);
    qsf_residual_free(&r);
    return QSF_OK;
}
