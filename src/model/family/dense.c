/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Transformers whose blocks are attention and a feed-forward network, each with norms and a residual. What an
 * architecture differs in is a row of QsfDense in table.c. */
#include "src/model/family/dense.h"

#include <math.h>

#include "src/model/moe.h"
#include "src/model/rope.h"

static bool has(const QsfDenseModel *m, unsigned quirk) { return (m->d->quirks & quirk) != 0; }

/* ---- numbers of the whole model ---- */

static bool uses_alibi(const QsfDenseModel *m) {
    return m->d->alibi > 0 && (m->d->alibi_blocks == 0 || m->d->alibi_blocks == m->hp->n_layers);
}

static void read_windows(QsfDenseModel *m) {
    QsfBuilder *b = m->b;
    const QsfDense *d = m->d;
    if (d->window_period == 0 || (d->window_blocks != 0 && d->window_blocks != m->hp->n_layers)) return;
    m->window = qsf_build_u32(b, "attention.sliding_window", 0, 1, UINT32_MAX);
    if (m->window == 0 || qsf_build_failed(b)) return;
    const uint32_t n = m->hp->n_layers;
    if (qsf_keys_is_array(&b->keys, "attention.sliding_window_pattern")) {
        uint32_t pattern[QSF_MAX_LAYERS];
        qsf_build_check(b, qsf_keys_u32_each(&b->keys, "attention.sliding_window_pattern", 0, 0, 1,
                                             n + m->hp->n_extra, pattern));
        for (uint32_t i = 0; i < n; i++) m->has_window[i] = pattern[i] != 0;
        return;
    }
    const uint32_t period = qsf_build_u32(b, "attention.sliding_window_pattern", d->window_period, 1,
                                          QSF_MAX_LAYERS);
    for (uint32_t i = 0; i < n; i++) m->has_window[i] = i % period + 1 < period;
}

static void read_scales(QsfDenseModel *m) {
    QsfBuilder *b = m->b;
    const QsfHparams *hp = m->hp;
    m->score_scale = 1.0f / sqrtf((float)hp->head_dim);
    m->embed_scale = m->residual_scale = m->logit_scale = 1;
    if (has(m, QSF_DENSE_SCALE_27B) && (hp->n_layers == 46 || hp->n_layers == 62))
        m->score_scale = 1.0f / sqrtf((float)hp->hidden / (float)hp->n_heads);
    if (has(m, QSF_DENSE_SCALE_BY_DIM)) m->score_scale = 1.0f / (float)hp->head_dim;
    if (has(m, QSF_DENSE_EMBED_SQRT)) m->embed_scale = sqrtf((float)hp->hidden);
    if (has(m, QSF_DENSE_LOGIT_SCALE)) m->logit_scale = qsf_build_f32(b, "logit_scale", 1, -1e6f, 1e6f);
    if (has(m, QSF_DENSE_SCALES)) {
        const bool own = has(m, QSF_DENSE_MINICPM);
        const float residual = own ? 1.4f / sqrtf((float)hp->n_layers) : 1,
                    logit = own ? 256.0f / (float)hp->hidden : 1;
        m->embed_scale = qsf_build_f32(b, "embedding_scale", own ? 12 : 1, 1e-6f, 1e6f);
        m->residual_scale = qsf_build_f32(b, "residual_scale", residual, 1e-6f, 1e6f);
        m->logit_scale = 1.0f / qsf_build_f32(b, "logit_scale", own ? logit : 1, 1e-6f, 1e6f);
        const float scale = qsf_build_f32(b, "attention.scale", 0, 0, 1e6f);
        if (scale > 0) m->score_scale = scale;
    }
    if (has(m, QSF_DENSE_SOFTCAPS)) {
        m->score_cap = qsf_build_f32(b, "attn_logit_softcapping", 50, 0, 1e6f);
        m->logit_cap = qsf_build_f32(b, "final_logit_softcapping", 30, 0, 1e6f);
    }
    if (has(m, QSF_DENSE_CLAMP_QKV)) m->clamp = qsf_build_f32(b, "attention.clamp_kqv", 0, 0, 1e6f);
    m->slopes = QSF_NONE;
    if (uses_alibi(m))
        m->slopes = qsf_build_alibi(b, qsf_build_f32(b, "attention.max_alibi_bias", m->d->alibi, 0, 1e3f));
}

static void make_ropes(QsfDenseModel *m) {
    QsfRopeSpec spec = { .kind = uses_alibi(m) && m->d->alibi_blocks != 0 ? QSF_ROPE_NONE : m->d->rope,
                         .head_dim = m->hp->head_dim,
                         .base_key = "rope.freq_base",
                         .base = 10000.0f };
    m->rope = m->window_rope = qsf_rope_table(m->b, &spec);
    if (m->window == 0 || m->d->window_rope == QSF_WINDOW_ROPE_SAME) return;
    spec.plain = true;
    if (m->d->window_rope == QSF_WINDOW_ROPE_OWN) spec.base_key = "rope.freq_base_swa";
    m->window_rope = qsf_rope_table(m->b, &spec);
}

/* Returns the rotation of a block; QSF_NONE = none. */
static uint32_t rope_of(const QsfDenseModel *m, uint32_t block) {
    const bool window = m->has_window[block];
    if (m->d->rope_blocks == QSF_ROPE_BLOCKS_WINDOW && m->window > 0 && !window) return QSF_NONE;
    if (m->d->rope_blocks == QSF_ROPE_BLOCKS_NOT_FOURTH && block % 4 == 3) return QSF_NONE;
    return window ? m->window_rope : m->rope;
}

/* ---- attention ---- */

static void clamp(const QsfDenseModel *m, QsfSlice x) {
    QsfStep *s = m->clamp > 0 ? qsf_build_step(m->b, QSF_OP_CLAMP, "clamp", qsf_slice_none(), x) : NULL;
    if (s == NULL) return;
    s->u.clamp.low = -m->clamp;
    s->u.clamp.high = m->clamp;
}

static void qk_norm(const QsfDenseModel *m, const QsfBlockSizes *n, const QsfQkv *x) {
    QsfBuilder *b = m->b;
    const QsfNormKind kind = m->hp->arch->norm;
    const bool own = m->d->qk_norm == QSF_QK_NORM_OPTIONAL, row = m->d->qk_norm == QSF_QK_NORM_ROW;
    const bool optional = own || m->d->qk_norm == QSF_QK_NORM_HEAD_OPTIONAL;
    if (optional && !qsf_build_has(b, "attn_q_norm.weight")) return;
    qsf_build_head_norm(b, kind, "attn_q_norm", x->q, row ? 1 : n->heads, own);
    qsf_build_head_norm(b, kind, "attn_k_norm", x->k, row ? 1 : n->kv_heads, own);
}

/* Llama 4: blocks with rotation see chunks of 8192 positions and normalize rotated heads, unless the model has 128
 * experts; the others scale queries by their position. Only models with sliding_window 0 do neither
 * (ggml-org/llama.cpp). */
static void llama4(const QsfDenseModel *m, const QsfBlockSizes *n, bool rotated, QsfAttentionSpec *attn) {
    QsfBuilder *b = m->b;
    const uint32_t length = 8192;
    const bool chunks = qsf_build_u32(b, "attention.sliding_window", length, 0, UINT32_MAX) > 0;
    if (!chunks) {
        qsf_build_fail(b, "models with the metadata key '%s' of 0 are not supported", b->keys.key);
        return;
    }
    attn->step.chunk = rotated ? length : 0;
    if (!rotated) {
        QsfStep *s = qsf_build_step(b, QSF_OP_TEMPERATURE, "temperature", qsf_slice_none(), attn->q);
        if (s != NULL)
            s->u.temperature = (QsfTemperatureStep){ .scale = 0.1f, .length = length, .offset = 1 };
    } else if (qsf_build_u32(b, "expert_count", 0, 0, UINT32_MAX) != 128) {
        qsf_build_head_norm(b, QSF_NORM_RMS, NULL, attn->q, n->heads, false);
        qsf_build_head_norm(b, QSF_NORM_RMS, NULL, attn->k, n->kv_heads, false);
    }
}

static void attention(const QsfDenseModel *m, uint32_t block, QsfSlice in, QsfSlice out) {
    QsfBuilder *b = m->b;
    const QsfBlockSizes *n = &m->hp->block[block];
    const uint32_t dim = m->hp->head_dim, rope = rope_of(m, block);
    const QsfQkNorm norm = m->d->qk_norm;
    const QsfQkv x = qsf_build_qkv(b, n, in);
    clamp(m, x.q);
    clamp(m, x.k);
    clamp(m, x.v);
    if (norm != QSF_QK_NORM_NONE && norm != QSF_QK_NORM_HEAD_AFTER) qk_norm(m, n, &x);
    qsf_build_rope(b, rope, x.q, n->heads, dim, 0);
    qsf_build_rope(b, rope, x.k, n->kv_heads, dim, 0);
    if (norm == QSF_QK_NORM_HEAD_AFTER) qk_norm(m, n, &x);
    if (has(m, QSF_DENSE_TEMPERATURE)) qsf_build_temperature(b, x.q);
    QsfAttentionSpec attn = { .step = qsf_attention_plain(n->heads, m->score_scale),
                              .kv_heads = n->kv_heads,
                              .k_dim = dim,
                              .v_dim = m->hp->v_dim,
                              .q = x.q,
                              .k = x.k,
                              .v = x.v };
    attn.step.window = m->has_window[block] ? m->window : 0;
    attn.step.softcap = m->score_cap;
    attn.step.slopes = m->slopes;
    attn.step.sinks = qsf_build_param(b, QSF_OPTIONAL, n->heads, "attn_sinks.weight");
    if (has(m, QSF_DENSE_LLAMA4)) llama4(m, n, rope != QSF_NONE, &attn);
    const QsfSlice y = qsf_build_attention(b, &attn);
    if (has(m, QSF_DENSE_SUB_NORMS)) qsf_build_norm(b, QSF_NORM_RMS, "attn_sub_norm", y, y);
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", y, out);
}

/* ---- the feed-forward network ---- */

/* Parameters of xIELU, one number or one for each block. */
static void xielu(const QsfDenseModel *m, uint32_t block, QsfSlice x) {
    static const char *const name[] = { "alpha_p", "alpha_n", "beta", "eps" };
    QsfBuilder *b = m->b;
    QsfKeys keys = b->keys;
    float v[4], all[QSF_MAX_LAYERS] = { 0 };
    keys.arch = "xielu"; /* these keys do not have the architecture's prefix */
    for (unsigned i = 0; i < 4 && !qsf_build_failed(b); i++) {
        if (!qsf_keys_has(&keys, name[i]))
            qsf_build_check(b, qsf_keys_bad(&keys, "is missing"));
        else
            qsf_build_check(b, qsf_keys_f32_each(&keys, name[i], 0, -1e6f, 1e6f, m->hp->n_layers, all));
        v[i] = all[block];
    }
    if (qsf_build_failed(b)) return;
    QsfStep *s = qsf_build_step(b, QSF_OP_ACT, "xielu", qsf_slice_none(), x);
    if (s != NULL) s->u.act = (QsfActStep){ QSF_ACT_XIELU, v[0], v[1], v[2], v[3] };
}

static void feed_forward(const QsfDenseModel *m, uint32_t block, QsfSlice in, QsfSlice out) {
    QsfBuilder *b = m->b;
    const uint32_t ffn = m->hp->block[block].ffn / (has(m, QSF_DENSE_HALF_FFN) ? 2 : 1);
    if (qsf_moe_has(b, m->d->moe)) {
        QsfMoeSpec spec;
        qsf_moe_read(b, m->d->moe, &spec);
        qsf_build_moe(b, &spec, in, out);
        return;
    }
    const bool fused = m->d->gated && has(m, QSF_DENSE_FUSED_UP) && !qsf_build_has(b, "ffn_gate.weight");
    const bool special = m->d->act == QSF_ACT_XIELU;
    QsfSlice gate = qsf_build_buffer(b, fused ? 2 * ffn : ffn);
    if (fused) {
        qsf_build_project(b, QSF_MATMUL_FFN_IN, "ffn_up", in, gate);
        qsf_build_act(b, "ffn_act", m->d->act, qsf_slice_part(gate, ffn, ffn), qsf_slice_part(gate, 0, ffn));
        gate.width = ffn;
    } else {
        const QsfSlice up = m->d->gated ? qsf_build_buffer(b, ffn) : gate;
        const QsfMatrixSpec mats[] = { { "ffn_gate", gate, QSF_REQUIRED }, { "ffn_up", up, QSF_REQUIRED } };
        const unsigned first = m->d->gated ? 0 : 1;
        qsf_build_linear(b, QSF_MATMUL_FFN_IN, in, mats + first, 2 - first,
                         special ? QSF_ACT_NONE : m->d->act);
        if (special) xielu(m, block, gate);
    }
    if (has(m, QSF_DENSE_SUB_NORMS)) qsf_build_norm(b, QSF_NORM_RMS, "ffn_sub_norm", gate, gate);
    qsf_build_project(b, QSF_MATMUL_FFN_OUT, "ffn_down", gate, out);
}

/* ---- blocks ---- */

static void norm(const QsfDenseModel *m, const char *name, QsfSlice in, QsfSlice out) {
    qsf_build_norm(m->b, m->hp->arch->norm, has(m, QSF_DENSE_NO_NORM_WEIGHTS) ? NULL : name, in, out);
}

static void add(const QsfDenseModel *m, const char *post_norm, QsfSlice branch) {
    if (m->d->norms != QSF_NORMS_BEFORE) norm(m, post_norm, branch, branch);
    qsf_build_scale(m->b, "residual_scale", branch, m->residual_scale);
    qsf_build_add(m->b, "residual", branch, qsf_build_x(m->b));
}

static void sequential(const QsfDenseModel *m, uint32_t block) {
    const QsfSlice x = qsf_build_x(m->b), branch = qsf_build_branch(m->b);
    const bool before = m->d->norms != QSF_NORMS_AFTER;
    if (before) norm(m, "attn_norm", x, branch);
    attention(m, block, before ? branch : x, branch);
    add(m, "post_attention_norm", branch);
    if (before) norm(m, m->d->ffn_norm != NULL ? m->d->ffn_norm : "ffn_norm", x, branch);
    feed_forward(m, block, before ? branch : x, branch);
    add(m, "post_ffw_norm", branch);
}

/* Both branches read the block's input. */
static void parallel(const QsfDenseModel *m, uint32_t block) {
    const QsfSlice x = qsf_build_x(m->b), branch = qsf_build_branch(m->b);
    const QsfSlice in = qsf_build_buffer(m->b, m->hp->hidden), out = qsf_build_buffer(m->b, m->hp->hidden);
    const bool own = m->d->branches == QSF_BRANCHES_BY_TENSOR && qsf_build_has(m->b, "attn_norm_2.weight");
    norm(m, own ? "attn_norm_2" : "attn_norm", x, in);
    attention(m, block, in, branch);
    if (m->d->branches == QSF_BRANCHES_BY_KEY) norm(m, "ffn_norm", x, in);
    if (own) norm(m, "attn_norm", x, in);
    feed_forward(m, block, in, out);
    qsf_build_add(m->b, "residual", out, branch);
    add(m, "post_ffw_norm", branch);
}

static void embedding(const QsfDenseModel *m) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_x(b);
    if (has(m, QSF_DENSE_EMBED_IS_HEAD) && !qsf_build_has(b, "token_embd.weight"))
        qsf_build_embed_named(b, "output.weight");
    else
        qsf_build_embed(b);
    qsf_build_scale(b, "embed_scale", x, m->embed_scale);
    if (has(m, QSF_DENSE_EMBED_NORM)) qsf_build_norm(b, m->hp->arch->norm, "token_embd_norm", x, x);
    const bool maybe = has(m, QSF_DENSE_MAYBE_POSITIONS) && qsf_build_has(b, "position_embd.weight");
    if (!has(m, QSF_DENSE_POSITIONS) && !maybe) return;
    const uint64_t ne[2] = { m->hp->hidden, m->hp->n_ctx_train };
    const uint32_t table = qsf_build_param_nd(b, QSF_REQUIRED, ne, 2, "position_embd.weight");
    QsfStep *s = qsf_build_step(b, QSF_OP_POSITION, "position", qsf_slice_none(), x);
    if (s != NULL) s->u.param = table;
    b->p.max_ctx = m->hp->n_ctx_train;
}

static void head(const QsfDenseModel *m) {
    qsf_build_head(m->b, m->hp->arch->norm, has(m, QSF_DENSE_NO_NORM_WEIGHTS) ? NULL : "output_norm");
    qsf_build_scale(m->b, "logit_scale", qsf_build_logits(m->b), m->logit_scale);
    qsf_build_logit_cap(m->b, m->logit_cap);
}

static void refuse_experts(const QsfDenseModel *m) {
    if (m->d->moe != NULL || qsf_build_u32(m->b, "expert_count", 0, 0, UINT32_MAX) == 0) return;
    qsf_build_check(m->b, qsf_keys_bad(&m->b->keys, "is not 0: mixture-of-experts models are not supported"));
}

void qsf_family_dense(QsfBuilder *b) {
    QsfDenseModel m = { .b = b, .hp = qsf_build_hp(b), .d = qsf_build_hp(b)->arch->traits };
    refuse_experts(&m);
    b->rms_bias = has(&m, QSF_DENSE_RMS_BIAS);
    read_windows(&m);
    read_scales(&m);
    const QsfBranches how = m.d->branches;
    const bool two = how == QSF_BRANCHES_BY_KEY && qsf_build_bool(b, "use_parallel_residual", true);
    embedding(&m);
    make_ropes(&m);
    for (uint32_t i = 0; i < m.hp->n_layers && !qsf_build_failed(b); i++) {
        qsf_build_block(b, i);
        if (two || how == QSF_BRANCHES_ONE_NORM ||
            (how == QSF_BRANCHES_BY_TENSOR && !qsf_build_has(b, "ffn_norm.weight")))
            parallel(&m, i);
        else
            sequential(&m, i);
    }
    head(&m);
}
