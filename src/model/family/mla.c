/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Transformers with multi-head latent attention. What an architecture differs in is a row of
 * QsfMla in table.c. */
#include "src/model/mla.h"

#include <math.h>
#include <stdio.h>

#include "src/model/family/families.h"
#include "src/model/moe.h"
#include "src/model/rope.h"

typedef struct Model {
    QsfBuilder *b;
    const QsfHparams *hp;
    const QsfMla *d;
    QsfMlaSpec attention, window_attention;
    QsfIndexer indexer;
    uint32_t has_window[QSF_MAX_LAYERS];
    bool has_indexer[QSF_MAX_LAYERS], own_indexer[QSF_MAX_LAYERS]; /* tensors of one; it is used */
    float residual_scale;
} Model;

/* The multiplier of YaRN in the files of DeepSeek-V2 is a tenth of the model's. */
#define YARN_LOG_UNIT 0.1

static void read_attention(Model *m) {
    QsfBuilder *b = m->b;
    double factor = 1;
    QsfMlaSpec *a = &m->attention;
    qsf_mla_read(b, a);
    if (qsf_build_failed(b)) return;
    QsfRopeSpec spec = { .kind = m->d->rope,
                         .head_dim = a->rope,
                         .n_rot = a->rope,
                         .base_key = "rope.freq_base",
                         .base = 10000.0f };
    if (m->d->yarn != QSF_MLA_YARN_PLAIN) {
        spec.log_unit = YARN_LOG_UNIT;
        spec.unit_magnitude = m->d->yarn == QSF_MLA_YARN_UNIT;
        spec.score_factor = &factor;
    }
    a->table = qsf_rope_table(b, &spec);
    a->scale = (float)(factor * factor / sqrt((double)(a->nope + a->rope)));
    a->temperature = m->d->yarn != QSF_MLA_YARN_PLAIN;
}

/* Blocks without their own indexer read what the one before chose. Next-token blocks read all positions
 * (ggml-org/llama.cpp src/models). */
static void read_indexer(Model *m) {
    static const char *const types = "attention.indexer.types";
    QsfBuilder *b = m->b;
    const uint32_t n = m->hp->n_layers + m->hp->n_extra;
    uint32_t own[QSF_MAX_LAYERS];
    if (m->d->indexer == QSF_ROPE_NONE) return;
    qsf_indexer_read(b, m->d->indexer, &m->indexer);
    m->indexer.maybe_norm = m->d->maybe_key_norm;
    for (uint32_t i = b->first; i < b->p.n_blocks && !qsf_build_failed(b); i++) {
        qsf_build_block(b, i);
        m->has_indexer[i] = qsf_build_has(b, "indexer.attn_k.weight");
        m->own_indexer[i] = m->has_indexer[i] && !qsf_build_is_nextn(b);
    }
    qsf_build_no_block(b);
    if (!qsf_build_failed(b) && qsf_keys_has(&b->keys, types)) {
        qsf_build_check(b, qsf_keys_u32_each(&b->keys, types, 1, 0, 1, n, own));
        for (uint32_t i = 0; !qsf_build_failed(b) && i < m->hp->n_layers; i++)
            m->own_indexer[i] = own[i] != 0;
    }
    if (!qsf_build_failed(b) && !qsf_build_is_nextn(b) && !m->own_indexer[0] && !m->has_window[0]) {
        (void)qsf_keys_name(&b->keys, types);
        qsf_build_fail(b,
                       "the first block has no indexer (metadata key '%s', or tensor "
                       "'blk.0.indexer.attn_k.weight' if that is absent)",
                       b->keys.key);
    }
}

/* The sizes of blocks with a window; the size of the rotated part is the same. */
static void read_windows(Model *m) {
    QsfBuilder *b = m->b;
    QsfMlaSpec *w = &m->window_attention;
    if (!m->d->windows || qsf_build_failed(b)) return;
    m->attention.gate = QSF_ACT_SIGMOID;
    m->attention.k_norm = true;
    *w = m->attention;
    w->window = qsf_build_need_u32(b, "attention.sliding_window", 1, UINT32_MAX);
    w->kv_lora = qsf_build_need_u32(b, "attention.kv_lora_rank_swa", 1, QSF_MAX_HEAD_DIM - w->rope);
    w->v_dim = qsf_build_need_u32(b, "attention.value_length_mla_swa", 1, QSF_MAX_HEAD_DIM);
    const uint32_t k_dim = qsf_build_need_u32(b, "attention.key_length_mla_swa", w->rope + 1,
                                              QSF_MAX_HEAD_DIM);
    if (qsf_build_failed(b)) return;
    if ((uint64_t)w->heads * (w->kv_lora + k_dim + w->v_dim) > QSF_MAX_HIDDEN)
        qsf_build_fail(b, "%u heads with a latent of %u elements are more than supported", w->heads,
                       w->kv_lora);
    w->nope = k_dim - w->rope;
    w->scale = 1.0f / sqrtf((float)k_dim);
    const QsfRopeSpec spec = { .kind = m->d->rope,
                               .head_dim = w->rope,
                               .n_rot = w->rope,
                               .base_key = "rope.freq_base_swa",
                               .base = 10000.0f };
    w->table = qsf_rope_table(b, &spec);
    if (qsf_build_failed(b)) return;
    if (!qsf_keys_has(&b->keys, "attention.sliding_window_pattern"))
        qsf_build_check(b, qsf_keys_bad(&b->keys, "is missing"));
    else
        qsf_build_check(b, qsf_keys_u32_each(&b->keys, "attention.sliding_window_pattern", 0, 0, 1,
                                             m->hp->n_layers + m->hp->n_extra, m->has_window));
}

/* Tensors of an indexer that the file says is not used. */
static void unused_indexer(const Model *m, uint32_t i) {
    static const char *const name[] = { "attn_k.weight", "attn_q_b.weight", "proj.weight", "k_norm.weight",
                                        "k_norm.bias" };
    char full[64];
    if (!m->has_indexer[i] || m->own_indexer[i]) return;
    for (size_t k = 0; k < sizeof name / sizeof *name; k++) {
        snprintf(full, sizeof full, "indexer.%s", name[k]);
        qsf_build_unused(m->b, full);
    }
}

static QsfSlice attend(Model *m, uint32_t i, QsfSlice in) {
    QsfMlaSpec *a = m->has_window[i] ? &m->window_attention : &m->attention;
    unused_indexer(m, i);
    a->indexer = !m->has_window[i] && m->own_indexer[i] ? &m->indexer : NULL;
    return qsf_build_mla(m->b, a, in);
}

static void feed_forward(const Model *m, uint32_t block, QsfSlice x) {
    QsfBuilder *b = m->b;
    if (qsf_moe_has(b, m->d->moe)) {
        QsfMoeSpec spec;
        qsf_moe_read(b, m->d->moe, &spec);
        qsf_build_moe(b, &spec, x, x);
        return;
    }
    const QsfFfnSpec f = { .n = m->hp->block[block].ffn, .act = m->d->act, .gated = m->d->gated };
    qsf_build_ffn(b, &f, x, x);
}

static void add(const Model *m, QsfSlice branch) {
    qsf_build_scale(m->b, "residual_scale", branch, m->residual_scale);
    qsf_build_add(m->b, "residual", branch, qsf_build_x(m->b));
}

static void block(Model *m, uint32_t i) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b);
    qsf_build_norm(b, QSF_NORM_RMS, "attn_norm", x, branch);
    const QsfSlice y = attend(m, i, branch);
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", y, branch);
    add(m, branch);
    qsf_build_norm(b, QSF_NORM_RMS, "ffn_norm", x, branch);
    feed_forward(m, i, branch);
    add(m, branch);
}

void qsf_family_mla(QsfBuilder *b) {
    const QsfHparams *hp = qsf_build_hp(b);
    Model m = { .b = b, .hp = hp, .d = hp->arch->traits, .residual_scale = 1 };
    /* The scales of MiniCPM3 are fixed numbers. */
    if (m.d->minicpm) m.residual_scale = 1.4f / sqrtf((float)hp->n_layers);
    qsf_build_embed(b);
    qsf_build_scale(b, "embed_scale", qsf_build_x(b), m.d->minicpm ? 12.0f : 1.0f);
    read_attention(&m);
    read_windows(&m);
    read_indexer(&m);
    for (uint32_t i = qsf_build_blocks(b); i < b->p.n_blocks && !qsf_build_failed(b); i++) {
        qsf_build_block(b, i);
        block(&m, i);
    }
    qsf_build_head(b, QSF_NORM_RMS, "output_norm");
    qsf_build_scale(b, "logit_scale", qsf_build_logits(b), m.d->minicpm ? 256.0f / (float)hp->hidden : 1.0f);
}
