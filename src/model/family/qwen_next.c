/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Qwen3-Next and Qwen3.5: most blocks are linear attention with a gated delta rule, every few one is
 * attention with a sigmoid gate on its output. */
#include <math.h>

#include "src/model/family/families.h"
#include "src/model/moe.h"
#include "src/model/rope.h"

typedef struct QwenNext {
    QsfBuilder *b;
    const QsfHparams *hp;
    const QsfQwenNext *t;
    uint32_t rope;
    uint32_t kernel, dim, k_heads, v_heads; /* of linear attention; heads of K and V are of one size */
    uint32_t is_linear[QSF_MAX_LAYERS];
} QwenNext;

/* Applies the parameter `name`, out.width elements. */
static void with_param(QsfBuilder *b, QsfOp op, const char *name, QsfSlice out) {
    const uint32_t param = qsf_build_param(b, QSF_REQUIRED, out.width, name);
    qsf_build_with_param(b, op, name, param, out);
}

/* ---- attention ---- */

static void attention(const QwenNext *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const QsfBlockSizes *n = &m->hp->block[block];
    const uint32_t dim = m->hp->head_dim, width = n->heads * dim;
    const QsfSlice x = qsf_build_branch(b), both = qsf_build_buffer(b, 2 * width),
                   q = qsf_build_buffer(b, width), gate = qsf_build_buffer(b, width),
                   k = qsf_build_buffer(b, n->kv_heads * dim), v = qsf_build_buffer(b, n->kv_heads * dim);
    const QsfMatrixSpec in[] = { { "attn_q", both, QSF_REQUIRED },
                                 { "attn_k", k, QSF_REQUIRED },
                                 { "attn_v", v, QSF_REQUIRED } };
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, x, in, 3, QSF_ACT_NONE);
    /* Each head of attn_q is a query and a gate. */
    qsf_build_heads(b, "query", both, q, n->heads, dim, 2 * dim, dim);
    qsf_build_heads(b, "gate", qsf_slice_part(both, dim, 2 * width - dim), gate, n->heads, dim, 2 * dim, dim);
    qsf_build_head_norm(b, QSF_NORM_RMS, "attn_q_norm", q, n->heads, false);
    qsf_build_head_norm(b, QSF_NORM_RMS, "attn_k_norm", k, n->kv_heads, false);
    qsf_build_rope(b, m->rope, q, n->heads, dim, 0);
    qsf_build_rope(b, m->rope, k, n->kv_heads, dim, 0);
    const QsfAttentionSpec attn = { .step = qsf_attention_plain(n->heads, 1.0f / sqrtf((float)dim)),
                                    .kv_heads = n->kv_heads,
                                    .k_dim = dim,
                                    .v_dim = dim,
                                    .q = q,
                                    .k = k,
                                    .v = v };
    qsf_build_act(b, "attn_gate", QSF_ACT_SIGMOID, qsf_build_attention(b, &attn), gate);
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", gate, x);
}

/* ---- linear attention ---- */

typedef struct Inputs {
    QsfSlice qkv, z, alpha, beta;
} Inputs;

/* Older files have q, k, v and z of each K head side by side. */
static void split_qkvz(const QwenNext *m, const Inputs *in) {
    QsfBuilder *b = m->b;
    const uint32_t per_head = m->v_heads / m->k_heads * m->dim, group = 2 * m->dim + 2 * per_head,
                   keys = m->k_heads * m->dim, values = m->v_heads * m->dim;
    const QsfSlice all = qsf_build_buffer(b, m->k_heads * group);
    const struct {
        uint32_t at, n;
        QsfSlice out;
    } parts[] = {
        { 0, m->dim, qsf_slice_part(in->qkv, 0, keys) },
        { m->dim, m->dim, qsf_slice_part(in->qkv, keys, keys) },
        { 2 * m->dim, per_head, qsf_slice_part(in->qkv, 2 * keys, values) },
        { 2 * m->dim + per_head, per_head, in->z },
    };
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "ssm_in", qsf_build_branch(b), all);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        qsf_build_heads(b, "split", qsf_slice_part(all, parts[i].at, all.width - parts[i].at), parts[i].out,
                        m->k_heads, parts[i].n, group, parts[i].n);
}

static void project_qkvz(const QwenNext *m, const Inputs *in) {
    const QsfMatrixSpec mats[] = { { "attn_qkv", in->qkv, QSF_REQUIRED },
                                   { "attn_gate", in->z, QSF_REQUIRED } };
    const bool older = m->t->fused_beta && qsf_build_has(m->b, "ssm_in.weight");
    if (older && qsf_build_has(m->b, "attn_qkv.weight")) {
        qsf_build_unused(m->b, "ssm_in.weight"); /* the file has both forms */
        qsf_build_linear(m->b, QSF_MATMUL_ATTN_IN, qsf_build_branch(m->b), mats, 2, QSF_ACT_NONE);
    } else if (older)
        split_qkvz(m, in);
    else
        qsf_build_linear(m->b, QSF_MATMUL_ATTN_IN, qsf_build_branch(m->b), mats, 2, QSF_ACT_NONE);
}

/* ssm_ba has beta and alpha of the V heads of each K head side by side. */
static void project_gates(const QwenNext *m, const Inputs *in) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_branch(b);
    const QsfMatrixSpec mats[] = { { "ssm_beta", in->beta, QSF_REQUIRED },
                                   { "ssm_alpha", in->alpha, QSF_REQUIRED } };
    if (!m->t->fused_beta) {
        qsf_build_linear(b, QSF_MATMUL_ATTN_IN, x, mats, 2, QSF_ACT_NONE);
        return;
    }
    const uint32_t n = m->v_heads / m->k_heads;
    const QsfSlice both = qsf_build_buffer(b, 2 * m->v_heads);
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "ssm_ba", x, both);
    qsf_build_heads(b, "beta", both, in->beta, m->k_heads, n, 2 * n, n);
    qsf_build_heads(b, "alpha", qsf_slice_part(both, n, both.width - n), in->alpha, m->k_heads, n, 2 * n, n);
}

static QsfSlice delta(const QwenNext *m, const Inputs *in) {
    QsfBuilder *b = m->b;
    const QsfSlice y = qsf_build_buffer(b, m->v_heads * m->dim);
    const uint32_t state = qsf_build_state(b, qsf_matrix_state_floats(m->v_heads, m->dim, m->dim));
    QsfStep *s = qsf_build_step(b, QSF_OP_DELTA, "delta", in->qkv, y);
    if (s == NULL) return y;
    s->in2 = in->alpha;
    s->in3 = in->beta;
    s->u.delta = (QsfDeltaStep){ .state = state,
                                 .k_heads = m->k_heads,
                                 .v_heads = m->v_heads,
                                 .k_dim = m->dim,
                                 .v_dim = m->dim,
                                 .tiled = !m->t->fused_beta,
                                 .scale = 1.0f / sqrtf((float)m->dim) };
    return y;
}

static void linear_attention(const QwenNext *m) {
    QsfBuilder *b = m->b;
    const uint32_t keys = m->k_heads * m->dim, values = m->v_heads * m->dim;
    const Inputs in = { qsf_build_buffer(b, 2 * keys + values), qsf_build_buffer(b, values),
                        qsf_build_buffer(b, m->v_heads), qsf_build_buffer(b, m->v_heads) };
    project_qkvz(m, &in);
    project_gates(m, &in);
    qsf_build_conv(b, "ssm_conv1d", in.qkv, in.qkv, m->kernel, QSF_ACT_SILU);
    qsf_build_head_norm(b, QSF_NORM_L2, NULL, qsf_slice_part(in.qkv, 0, 2 * keys), 2 * m->k_heads, false);
    with_param(b, QSF_OP_BIAS, "ssm_dt.bias", in.alpha);
    qsf_build_act(b, "decay", QSF_ACT_SOFTPLUS, qsf_slice_none(), in.alpha);
    with_param(b, QSF_OP_GAIN, "ssm_a", in.alpha);
    qsf_build_act(b, "decay", QSF_ACT_EXP, qsf_slice_none(), in.alpha);
    qsf_build_act(b, "beta", QSF_ACT_SIGMOID, qsf_slice_none(), in.beta);
    const QsfSlice y = delta(m, &in);
    qsf_build_head_norm(b, QSF_NORM_RMS, "ssm_norm", y, m->v_heads, false);
    qsf_build_act(b, "gate", QSF_ACT_SILU, y, in.z);
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "ssm_out", in.z, qsf_build_branch(b));
}

/* ---- the model ---- */

static void feed_forward(const QwenNext *m, uint32_t block) {
    QsfBuilder *b = m->b;
    if (m->t->moe != NULL && qsf_moe_has(b, m->t->moe)) {
        QsfMoeSpec moe;
        qsf_moe_read(b, m->t->moe, &moe);
        qsf_build_moe(b, &moe, qsf_build_branch(b), qsf_build_branch(b));
        return;
    }
    const QsfFfnSpec f = { .n = m->hp->block[block].ffn, .act = QSF_ACT_SILU, .gated = true };
    qsf_build_ffn(b, &f, qsf_build_branch(b), qsf_build_branch(b));
}

static void read_kinds(QwenNext *m) {
    QsfBuilder *b = m->b;
    const uint32_t n = m->hp->n_layers;
    if (!qsf_build_failed(b) && qsf_keys_has(&b->keys, "attention.recurrent_layers")) {
        qsf_build_check(b, qsf_keys_u32_each(&b->keys, "attention.recurrent_layers", 0, 0, 1,
                                             n + m->hp->n_extra, m->is_linear));
        return;
    }
    const uint32_t every = qsf_build_u32(b, "full_attention_interval", 4, 1, QSF_MAX_LAYERS);
    for (uint32_t i = 0; i < n; i++) m->is_linear[i] = (i + 1) % every != 0;
}

static void read_sizes(QwenNext *m) {
    QsfBuilder *b = m->b;
    m->kernel = qsf_build_need_u32(b, "ssm.conv_kernel", 2, QSF_CONV_MAX);
    m->dim = qsf_build_need_u32(b, "ssm.state_size", 1, QSF_MAX_HEAD_DIM);
    m->v_heads = qsf_build_need_u32(b, "ssm.time_step_rank", 1, QSF_MAX_HEADS);
    m->k_heads = qsf_build_need_u32(b, "ssm.group_count", 1, QSF_MAX_HEADS);
    if (m->v_heads % m->k_heads != 0)
        qsf_build_fail(b, "metadata key '%s' is %u, which does not divide the %u heads of ssm.time_step_rank",
                       qsf_keys_name(&b->keys, "ssm.group_count"), m->k_heads, m->v_heads);
    const uint32_t inner = qsf_build_need_u32(b, "ssm.inner_size", 1, QSF_MAX_HIDDEN);
    if ((uint64_t)m->v_heads * m->dim != inner)
        qsf_build_fail(
            b, "metadata key '%s' is %u, expected %u heads of %u (ssm.time_step_rank and ssm.state_size)",
            qsf_keys_name(&b->keys, "ssm.inner_size"), inner, m->v_heads, m->dim);
    if (m->hp->v_dim != m->hp->head_dim)
        qsf_build_fail(b, "metadata key '%s' is %u, expected %u (attention.key_length)",
                       qsf_keys_name(&b->keys, "attention.value_length"), m->hp->v_dim, m->hp->head_dim);
    read_kinds(m);
}

void qsf_family_qwen_next(QsfBuilder *b) {
    const QsfHparams *hp = qsf_build_hp(b);
    QwenNext m = { .b = b, .hp = hp, .t = hp->arch->traits };
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b);
    read_sizes(&m);
    qsf_build_embed(b);
    m.rope = qsf_rope_table(b, &(QsfRopeSpec){ .kind = QSF_ROPE_HALVES,
                                               .head_dim = hp->head_dim,
                                               .base_key = "rope.freq_base",
                                               .base = 10000.0f,
                                               .sections = m.t->sections });
    for (uint32_t i = qsf_build_blocks(b); i < b->p.n_blocks && !qsf_build_failed(b); i++) {
        qsf_build_block(b, i);
        qsf_build_norm(b, QSF_NORM_RMS, "attn_norm", x, branch);
        if (m.is_linear[i] && !qsf_build_is_nextn(b))
            linear_attention(&m);
        else
            attention(&m, i);
        qsf_build_add(b, "attn_residual", branch, x);
        qsf_build_norm(b, QSF_NORM_RMS, "post_attention_norm", x, branch);
        feed_forward(&m, i);
        qsf_build_add(b, "ffn_residual", branch, x);
    }
    qsf_build_head(b, QSF_NORM_RMS, "output_norm");
}
