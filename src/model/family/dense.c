/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Transformers whose blocks are attention and a feed-forward network, each with norms and a residual. What an
 * architecture differs in is a row of QsfDense in table.c. */
#include "src/model/family/dense.h"

#include <math.h>

#include "src/model/moe.h"

/* --- attention of a dense transformer --- */

static void clamp(const QsfDenseModel *m, QsfSlice x) {
    QsfStep *s = m->clamp > 0 ? qsf_build_step(m->b, QSF_OP_CLAMP, "clamp", qsf_slice_none(), x) : NULL;
    if (s == NULL) return;
    s->u.clamp.low = -m->clamp;
    s->u.clamp.high = m->clamp;
}

static void qk_norm(const QsfDenseModel *m, const QsfBlockSizes *n, const QsfQkv *x) {
    QsfBuilder *b = m->b;
    const QsfNormKind kind = m->hp->norm;
    const bool own = m->d->qk_norm == QSF_QK_NORM_OPTIONAL, row = m->d->qk_norm == QSF_QK_NORM_ROW;
    const bool optional = own || m->d->qk_norm == QSF_QK_NORM_HEAD_OPTIONAL;
    if (!optional || qsf_build_maybe(b, "attn_q_norm.weight"))
        qsf_build_head_norm(b, kind, "attn_q_norm", x->q, row ? 1 : n->heads, own);
    if (!optional || qsf_build_maybe(b, "attn_k_norm.weight"))
        qsf_build_head_norm(b, kind, "attn_k_norm", x->k, row ? 1 : n->kv_heads, own);
}

/* The factors of attention's output: one for each element, or for each head. */
static QsfSlice output_gate(const QsfDenseModel *m, const QsfBlockSizes *n, QsfSlice in) {
    QsfBuilder *b = m->b;
    if (m->d->gate == QSF_ACT_NONE || (m->d->maybe_gate && !qsf_build_maybe(b, "attn_gate.weight")))
        return qsf_slice_none();
    const bool by_head = qsf_build_rows_of(b, "attn_gate.weight") == n->heads;
    const QsfSlice gate = qsf_build_buffer(b, n->heads * (by_head ? 1 : m->hp->v_dim));
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, in, &(QsfMatrixSpec){ "attn_gate", gate, QSF_REQUIRED }, 1,
                     m->d->gate);
    return gate;
}

void qsf_dense_rotate(const QsfDenseModel *m, uint32_t block, const QsfQkv *x) {
    const uint32_t table = m->no_rope[block] ? QSF_NONE : m->has_window[block] ? m->window_rope : m->rope;
    const QsfBlockSizes *n = &m->hp->block[block];
    qsf_build_rope(m->b, table, x->q, n->heads, m->hp->head_dim, 0);
    qsf_build_rope(m->b, table, x->k, n->kv_heads, m->hp->head_dim, 0);
}

void qsf_dense_heads(const QsfDenseModel *m, uint32_t block, const QsfQkv *x) {
    const QsfBlockSizes *n = &m->hp->block[block];
    const bool after = m->d->qk_norm == QSF_QK_NORM_HEAD_AFTER;
    clamp(m, x->q);
    clamp(m, x->k);
    clamp(m, x->v);
    if (m->d->qk_norm != QSF_QK_NORM_NONE && !after) qk_norm(m, n, x);
    qsf_dense_rotate(m, block, x);
    if (after) qk_norm(m, n, x);
    if (m->d->temperature) qsf_build_temperature(m->b, x->q);
}

QsfAttentionSpec qsf_dense_attention_spec(const QsfDenseModel *m, uint32_t block, const QsfQkv *x) {
    const QsfBlockSizes *n = &m->hp->block[block];
    QsfAttentionSpec attn = { .step = qsf_attention_plain(n->heads, m->score_scale),
                              .kv_heads = n->kv_heads,
                              .k_dim = m->hp->head_dim,
                              .v_dim = m->hp->v_dim,
                              .q = x->q,
                              .k = x->k,
                              .v = x->v };
    attn.step.window = m->has_window[block] ? m->window : 0;
    attn.step.softcap = m->score_cap;
    attn.step.slopes = m->slopes;
    attn.step.sinks = qsf_build_param(m->b, QSF_OPTIONAL, n->heads, "attn_sinks.weight");
    return attn;
}

void qsf_dense_attention(const QsfDenseModel *m, uint32_t block, QsfSlice in, QsfSlice out) {
    QsfBuilder *b = m->b;
    const QsfBlockSizes *n = &m->hp->block[block];
    const QsfQkv x = qsf_build_qkv(b, n, in);
    const QsfSlice gate = output_gate(m, n, in);
    qsf_dense_heads(m, block, &x);
    const QsfAttentionSpec attn = qsf_dense_attention_spec(m, block, &x);
    const QsfSlice y = qsf_build_attention(b, &attn);
    if (gate.buf != QSF_NONE) (void)qsf_build_step(b, QSF_OP_MUL, "attn_gate", gate, y);
    qsf_build_scale(b, "value_scale", y, m->value_scale);
    if (m->d->sub_norms) qsf_build_norm(b, QSF_NORM_RMS, "attn_sub_norm", y, y);
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", y, out);
}

/* --- the feed-forward network of a dense transformer's block, with or without experts --- */

/* Parameters of xIELU, one number or one for each block. */
static void xielu(const QsfDenseModel *m, QsfSlice x) {
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
        v[i] = all[b->block];
    }
    if (qsf_build_failed(b)) return;
    QsfStep *s = qsf_build_step(b, QSF_OP_ACT, "xielu", qsf_slice_none(), x);
    if (s != NULL) s->u.act = (QsfActStep){ QSF_ACT_XIELU, v[0], v[1], v[2], v[3] };
}

static bool is_gated(const QsfDenseModel *m) {
    if (!m->d->gated || m->d->moe == NULL || !m->d->moe->maybe_gated) return m->d->gated;
    return qsf_build_maybe(m->b, "ffn_gate.weight");
}

/* Multiplies by gate and up, and applies the activation. */
static QsfSlice inner(const QsfDenseModel *m, uint32_t ffn, QsfSlice in) {
    QsfBuilder *b = m->b;
    const QsfActStep limit = qsf_moe_dense_act(b, m->d->moe);
    const bool gated = is_gated(m), special = m->d->act == QSF_ACT_XIELU || limit.kind != QSF_ACT_NONE;
    if (gated && m->d->fused_up && !qsf_build_has(b, "ffn_gate.weight")) {
        const QsfSlice both = qsf_build_buffer(b, 2 * ffn), gate = qsf_slice_part(both, 0, ffn);
        qsf_build_project(b, QSF_MATMUL_FFN_IN, "ffn_up", in, both);
        qsf_build_act(b, "ffn_act", m->d->act, qsf_slice_part(both, ffn, ffn), gate);
        return gate;
    }
    const QsfSlice gate = qsf_build_buffer(b, ffn), up = gated ? qsf_build_buffer(b, ffn) : gate;
    const QsfMatrixSpec mats[] = { { "ffn_gate", gate, QSF_REQUIRED }, { "ffn_up", up, QSF_REQUIRED } };
    const unsigned first = gated ? 0 : 1;
    qsf_build_linear(b, QSF_MATMUL_FFN_IN, in, mats + first, 2 - first, special ? QSF_ACT_NONE : m->d->act);
    if (m->d->act == QSF_ACT_XIELU) xielu(m, gate);
    QsfStep *s = limit.kind != QSF_ACT_NONE ? qsf_build_step(b, QSF_OP_ACT, "ffn_act", up, gate) : NULL;
    if (s != NULL) s->u.act = limit;
    return gate;
}

void qsf_dense_mlp(const QsfDenseModel *m, uint32_t ffn, QsfSlice in, QsfSlice out) {
    QsfBuilder *b = m->b;
    const QsfSlice x = inner(m, ffn, in);
    if (m->d->sub_norms) qsf_build_norm(b, QSF_NORM_RMS, "ffn_sub_norm", x, x);
    qsf_build_project(b, QSF_MATMUL_FFN_OUT, "ffn_down", x, out);
}

void qsf_dense_experts(const QsfDenseModel *m, QsfSlice in, QsfSlice out) {
    QsfMoeSpec spec;
    qsf_moe_read(m->b, m->d->moe, &spec);
    spec.router_logits = m->router_logits;
    qsf_build_moe(m->b, &spec, in, out);
}

/* In families that decide by the tensors of a router, those of a network without experts beside it. */
static void unused_mlp(const QsfDenseModel *m) {
    static const char *const name[] = { "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight" };
    const QsfMoeRow *moe = m->d->moe;
    if (moe->blocks != QSF_MOE_BLOCKS_TENSORS || moe->dense_shared) return;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) qsf_build_unused(m->b, name[i]);
}

void qsf_dense_ffn(const QsfDenseModel *m, QsfSlice in, QsfSlice out) {
    QsfBuilder *b = m->b;
    if (qsf_moe_has(b, m->d->moe)) {
        qsf_dense_experts(m, in, out);
        unused_mlp(m);
        return;
    }
    if (m->d->moe != NULL) qsf_build_unused(b, "exp_probs_b.bias"); /* some files have it in dense blocks */
    qsf_dense_mlp(m, m->hp->block[b->block].ffn / (m->d->half_ffn ? 2 : 1), in, out);
}

/* The logits of a router that reads the block's input (QsfMoeRow.early_router); none, if it does not. */
static QsfSlice dense_early_router(const QsfDenseModel *m, QsfSlice in) {
    QsfBuilder *b = m->b;
    if (m->d->moe == NULL || !m->d->moe->early_router || !qsf_moe_has(b, m->d->moe)) return qsf_slice_none();
    const QsfSlice logits = qsf_build_buffer(b, qsf_build_need_u32(b, "expert_count", 1, QSF_MAX_EXPERTS));
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "ffn_gate_inp", in, logits);
    return logits;
}

/* ---- blocks ---- */

void qsf_dense_norm(const QsfDenseModel *m, const char *name, QsfSlice in, QsfSlice out) {
    qsf_build_norm(m->b, m->hp->norm, m->d->no_norm_weights ? NULL : name, in, out);
}

static void post_norm(const QsfDenseModel *m, const char *name, QsfSlice x) {
    if (m->d->norms == QSF_NORMS_BEFORE) return;
    qsf_dense_norm(m, name, x, x);
    if (m->d->post_eps > 0 && !qsf_build_failed(m->b))
        m->b->p.step[m->b->p.n_steps - 1].u.norm.eps = m->d->post_eps;
}

void qsf_dense_add(const QsfDenseModel *m, const char *norm_name, QsfSlice branch) {
    post_norm(m, norm_name, branch);
    qsf_build_scale(m->b, "residual_scale", branch, m->residual_scale);
    qsf_build_add(m->b, "residual", branch, qsf_build_x(m->b));
}

/* Attention; without KV heads one matrix in its place, and nothing without heads. */
static void first_branch(const QsfDenseModel *m, uint32_t block) {
    const QsfSlice x = qsf_build_x(m->b), branch = qsf_build_branch(m->b);
    const bool before = m->d->norms != QSF_NORMS_AFTER;
    const QsfBlockSizes *n = &m->hp->block[block];
    if (n->heads == 0) return;
    const QsfSlice in = n->kv_heads == 0 ? qsf_build_buffer(m->b, x.width) : branch;
    if (before) qsf_dense_norm(m, "attn_norm", x, in);
    if (n->kv_heads == 0)
        qsf_build_project(m->b, QSF_MATMUL_ATTN_OUT, "attn_output", before ? in : x, branch);
    else
        qsf_dense_attention(m, block, before ? branch : x, branch);
    qsf_dense_add(m, "post_attention_norm", branch);
}

static bool has_ffn(const QsfDenseModel *m, uint32_t block) {
    return m->hp->block[block].ffn > 0 || m->hp->arch->ffn != QSF_SOME_BLOCKS || m->d->moe != NULL;
}

static void second_branch(const QsfDenseModel *m, uint32_t block) {
    const QsfSlice x = qsf_build_x(m->b), branch = qsf_build_branch(m->b);
    const bool before = m->d->norms != QSF_NORMS_AFTER;
    if (!has_ffn(m, block)) return;
    if (before) qsf_dense_norm(m, m->d->ffn_norm != NULL ? m->d->ffn_norm : "ffn_norm", x, branch);
    qsf_dense_ffn(m, before ? branch : x, branch);
    qsf_dense_add(m, "post_ffw_norm", branch);
}

static void sequential(QsfDenseModel *m, uint32_t block) {
    m->router_logits = dense_early_router(m, qsf_build_x(m->b));
    first_branch(m, block);
    second_branch(m, block);
}

/* Biases of norms whose weights are missing have no effect. */
static void unused_biases(const QsfDenseModel *m, bool own) {
    (void)qsf_build_maybe(m->b, "ffn_norm.weight");
    qsf_build_unused(m->b, "ffn_norm.bias");
    if (!own) qsf_build_unused(m->b, "attn_norm_2.bias");
}

/* Both branches read the block's input. */
static void parallel(const QsfDenseModel *m, uint32_t block) {
    const QsfSlice x = qsf_build_x(m->b), branch = qsf_build_branch(m->b);
    const QsfSlice in = qsf_build_buffer(m->b, m->hp->hidden), out = qsf_build_buffer(m->b, m->hp->hidden);
    const bool own = m->d->branches == QSF_BRANCHES_BY_TENSOR && qsf_build_maybe(m->b, "attn_norm_2.weight");
    if (m->d->branches == QSF_BRANCHES_BY_TENSOR) unused_biases(m, own);
    qsf_dense_norm(m, own ? "attn_norm_2" : "attn_norm", x, in);
    qsf_dense_attention(m, block, in, branch);
    if (m->d->branches == QSF_BRANCHES_BY_KEY) qsf_dense_norm(m, "ffn_norm", x, in);
    if (own) qsf_dense_norm(m, "attn_norm", x, in);
    qsf_dense_ffn(m, in, out);
    qsf_build_add(m->b, "residual", out, branch);
    qsf_dense_add(m, "post_ffw_norm", branch);
}

/* Between two passes over the blocks. */
static void loop_norm(QsfDenseModel *m, uint32_t i) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_x(b);
    if (i == 0 || i % m->hp->n_named != 0 || qsf_build_bool(b, "skip_loop_final_norm", false)) return;
    qsf_build_no_block(b);
    qsf_dense_norm(m, "output_norm", x, x);
    if (!qsf_build_failed(b))
        b->p.step[b->p.n_steps - 1].block = i; /* it is computed with the block after it */
}

static void block(QsfDenseModel *m, uint32_t i, bool two) {
    const QsfBranches how = m->d->branches;
    if (m->hp->arch->loops) loop_norm(m, i);
    qsf_build_block(m->b, i);
    if (two || how == QSF_BRANCHES_ONE_NORM ||
        (how == QSF_BRANCHES_BY_TENSOR && !qsf_build_has(m->b, "ffn_norm.weight")))
        parallel(m, i);
    else
        sequential(m, i);
    for (const char *const *name = m->d->unused; name != NULL && *name != NULL; name++)
        qsf_build_unused(m->b, *name);
}

/* ---- before and after the blocks ---- */

void qsf_dense_embed(const QsfDenseModel *m) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_x(b);
    if (m->d->embed_is_head && !qsf_build_has(b, "token_embd.weight"))
        qsf_build_embed_named(b, "output.weight");
    else
        qsf_build_embed(b);
    qsf_build_scale(b, "embed_scale", x, m->embed_scale);
    if (m->d->embed_norm) qsf_build_norm(b, m->hp->norm, "token_embd_norm", x, x);
    if (m->d->embed_plain_norm) qsf_build_norm(b, QSF_NORM_RMS, NULL, x, x);
    if (m->d->positions == QSF_USE_ALWAYS ||
        (m->d->positions == QSF_USE_MAYBE && qsf_build_has(b, "position_embd.weight")))
        qsf_build_positions(b, "position_embd", m->hp->n_ctx_train, x);
}

void qsf_dense_head(const QsfDenseModel *m) {
    qsf_build_head(m->b, m->hp->norm, m->d->no_norm_weights ? NULL : "output_norm");
    qsf_build_scale(m->b, "logit_scale", qsf_build_logits(m->b), m->logit_scale);
    qsf_build_logit_cap(m->b, m->logit_cap);
}

static void refuse_experts(const QsfDenseModel *m) {
    if (m->d->moe != NULL || qsf_build_u32(m->b, "expert_count", 0, 0, UINT32_MAX) == 0) return;
    qsf_build_check(m->b, qsf_keys_bad(&m->b->keys, "is not 0: mixture-of-experts models are not supported"));
}

/* ---- the whole model ---- */

void qsf_dense_init(QsfDenseModel *m, QsfBuilder *b) {
    const QsfHparams *hp = qsf_build_hp(b);
    *m = (QsfDenseModel){ .b = b,
                          .hp = hp,
                          .d = hp->arch->traits,
                          .rope = QSF_NONE,
                          .window_rope = QSF_NONE,
                          .slopes = QSF_NONE,
                          .score_scale = 1.0f / sqrtf((float)hp->head_dim),
                          .embed_scale = 1,
                          .residual_scale = 1,
                          .logit_scale = 1,
                          .value_scale = 1,
                          .router_logits = qsf_slice_none() };
    refuse_experts(m);
    b->rms_bias = m->d->rms_bias;
}

void qsf_dense_build(QsfDenseModel *m) {
    const bool two = m->d->branches == QSF_BRANCHES_BY_KEY &&
                     qsf_build_bool(m->b, "use_parallel_residual", true);
    qsf_dense_embed(m);
    for (uint32_t i = qsf_build_blocks(m->b); i < m->b->p.n_blocks && !qsf_build_failed(m->b); i++)
        block(m, i, two);
    qsf_dense_head(m);
}

void qsf_family_dense(QsfBuilder *b) {
    QsfDenseModel m;
    qsf_dense_init(&m, b);
    qsf_dense_read(&m);
    qsf_dense_build(&m);
}
