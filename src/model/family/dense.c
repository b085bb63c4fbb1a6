/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Transformers whose blocks are attention and a feed-forward network, each with norms and a residual. What an
 * architecture differs in is a row of QsfDense in table.c. */
#include <math.h>

#include "src/model/family/dense.h"

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
    m->router_logits = qsf_dense_early_router(m, qsf_build_x(m->b));
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
    qsf_build_block(b, m->hp->n_layers);
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
    for (uint32_t i = 0; i < m->hp->n_layers && !qsf_build_failed(m->b); i++) block(m, i, two);
    qsf_dense_head(m);
}

void qsf_family_dense(QsfBuilder *b) {
    QsfDenseModel m;
    qsf_dense_init(&m, b);
    qsf_dense_read(&m);
    qsf_dense_build(&m);
}
