/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Transformers with multi-head latent attention. What an architecture differs in is a row of QsfMla in table.c. */
#include "src/model/mla.h"

#include <math.h>

#include "src/model/family/families.h"
#include "src/model/moe.h"
#include "src/model/rope.h"

typedef struct Model {
    QsfBuilder *b;
    const QsfHparams *hp;
    const QsfMla *d;
    QsfMlaSpec attention;
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

static void block(const Model *m, uint32_t i) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b);
    qsf_build_norm(b, QSF_NORM_RMS, "attn_norm", x, branch);
    const QsfSlice y = qsf_build_mla(b, &m->attention, branch);
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
    for (uint32_t i = 0; i < hp->n_layers && !qsf_build_failed(b); i++) {
        qsf_build_block(b, i);
        block(&m, i);
    }
    qsf_build_head(b, QSF_NORM_RMS, "output_norm");
    qsf_build_scale(b, "logit_scale", qsf_build_logits(b), m.d->minicpm ? 256.0f / (float)hp->hidden : 1.0f);
}
