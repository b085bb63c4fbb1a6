/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gemma 3n: several residual streams, of which a block computes one and predicts and corrects the others
 * (AltUp), a low-rank branch beside attention (Laurel), and inputs of each block from the token. Constants
 * that files do not contain: ggml-org/llama.cpp src/models/gemma3n.cpp. */
#include <inttypes.h>
#include <math.h>

#include "src/model/family/gemma.h"
#include "src/model/rope.h"

#define LAUREL_RANK   64u
#define INPUT_WIDTH   256u /* default of embedding_length_per_layer_input */
#define FIRST_SHARED  20u  /* this block and later ones share keys and values */
#define SPARSE_BLOCKS 10u  /* in the first blocks, about 5 % of the feed-forward network are active: */
#define SPARSE_DEV    1.6448533535003662f /* values above the mean by this many standard deviations */

typedef struct Model {
    QsfGemma g;
    uint32_t n_streams;
    QsfSlice streams; /* (n_streams, hidden) */
    uint32_t router;  /* parameter of the current block */
} Model;

static QsfSlice stream(const Model *m, uint32_t i) {
    const uint32_t hidden = m->g.hp->hidden;
    return qsf_slice_part(m->streams, i * hidden, hidden);
}

/* Streams 1 and later. */
static QsfSlice others(const Model *m) {
    const uint32_t hidden = m->g.hp->hidden;
    return qsf_slice_part(m->streams, hidden, (m->n_streams - 1) * hidden);
}

static void read_keys(Model *m) {
    QsfGemma *g = &m->g;
    QsfBuilder *b = g->b;
    const QsfHparams *hp = g->hp;
    qsf_gemma_windows(g, 5);
    g->n_own = hp->n_layers < FIRST_SHARED ? hp->n_layers : FIRST_SHARED;
    m->n_streams = qsf_build_u32(b, "altup.num_inputs", 4, 2, QSF_MAX_STREAMS);
    if (qsf_build_u32(b, "altup.active_idx", 0, 0, m->n_streams - 1) != 0 && !qsf_build_failed(b))
        qsf_build_check(b, qsf_keys_bad(&b->keys, "is not 0, which is not supported"));
    QsfRopeSpec rope = {
        .kind = QSF_ROPE_HALVES, .head_dim = hp->head_dim, .base_key = "rope.freq_base", .base = 10000.0f
    };
    g->heads[0] = (QsfGemmaHeads){ hp->head_dim, hp->v_dim, qsf_rope_table(b, &rope) };
    rope.base_key = "rope.freq_base_swa";
    rope.plain = true;
    g->heads[1] = (QsfGemmaHeads){ hp->head_dim, hp->v_dim, qsf_rope_table(b, &rope) };
    for (uint32_t i = 0; !qsf_build_failed(b) && i < hp->n_layers; i++)
        if (i < SPARSE_BLOCKS && hp->block[i].ffn < 2)
            qsf_build_fail(b,
                           "the feed-forward length of block %" PRIu32 " (feed_forward_length) is %" PRIu32
                           ", expected 2 or more",
                           i, hp->block[i].ffn);
}

/* ---- streams ---- */

static uint32_t matrix(QsfBuilder *b, const char *name, uint32_t cols, uint32_t rows) {
    const uint64_t ne[2] = { cols, rows };
    return qsf_build_param_nd(b, QSF_REQUIRED, ne, 2, name);
}

static QsfSlice matvec(QsfBuilder *b, const char *label, uint32_t param, QsfSlice in, uint32_t rows) {
    const QsfSlice out = qsf_build_buffer(b, rows);
    QsfStep *s = qsf_build_step(b, QSF_OP_MATVEC, label, in, out);
    if (s != NULL) s->u.param = param;
    return out;
}

/* Returns `rows` coefficients of the streams that follow from x. */
static QsfSlice coefficients(const Model *m, QsfSlice x, const char *name, uint32_t rows) {
    QsfBuilder *b = m->g.b;
    const QsfSlice in = qsf_build_buffer(b, x.width);
    qsf_build_norm(b, QSF_NORM_RMS, "altup_router_norm", x, in);
    qsf_build_scale(b, "altup_router_scale", in, 1.0f / (float)x.width);
    const QsfSlice router = matvec(b, "altup_router", m->router, in, m->n_streams);
    qsf_build_act(b, "altup_router_tanh", QSF_ACT_TANH, qsf_slice_none(), router);
    return matvec(b, "altup_coef", matrix(b, name, m->n_streams, rows), router, rows);
}

static void predict(const Model *m) {
    QsfBuilder *b = m->g.b;
    const uint32_t n = m->n_streams;
    const QsfSlice coef = coefficients(m, stream(m, 0), "altup_predict_coef.weight", n * n);
    QsfStep *s = qsf_build_step(b, QSF_OP_PREDICT, "altup_predict", coef, m->streams);
    if (s != NULL) s->u.streams = n;
    (void)qsf_build_step(b, QSF_OP_COPY, "altup_active", stream(m, 0), qsf_build_x(b));
}

static void correct(const Model *m) {
    QsfBuilder *b = m->g.b;
    const QsfSlice x = qsf_build_x(b), coef = coefficients(m, x, "altup_correct_coef.weight", m->n_streams);
    QsfStep *s = qsf_build_step(b, QSF_OP_CORRECT, "altup_correct", x, m->streams);
    if (s == NULL) return;
    s->in2 = coef;
    s->u.streams = m->n_streams;
}

/* Multiplies each of the other streams' inputs, in_stride elements apart, by its matrix, and gives the result
 * the length of stream 0's values in x. */
static void project_others(const Model *m, const char *name, QsfSlice in, uint32_t in_stride, QsfSlice x,
                           QsfSlice out) {
    QsfBuilder *b = m->g.b;
    const uint32_t hidden = m->g.hp->hidden;
    qsf_build_head_linear(b, QSF_MATMUL_ATTN_IN, name, m->n_streams - 1, hidden, hidden, in, in_stride, out,
                          hidden);
    (void)qsf_build_step(b, QSF_OP_MATCH, "altup_length", x, out);
}

static void split(Model *m) {
    QsfBuilder *b = m->g.b;
    const QsfSlice x = qsf_build_x(b);
    m->streams = qsf_build_buffer(b, m->n_streams * x.width);
    qsf_build_units_in(b, 0);
    project_others(m, "altup_proj", x, 0, x, others(m));
    qsf_build_units_in(b, QSF_NONE);
    (void)qsf_build_step(b, QSF_OP_COPY, "altup_active", x, stream(m, 0));
}

static void merge(const Model *m) {
    QsfBuilder *b = m->g.b;
    const QsfSlice x = qsf_build_x(b), rest = qsf_build_buffer(b, (m->n_streams - 1) * x.width);
    qsf_build_block(b, m->g.hp->n_layers);
    qsf_build_units_in(b, m->g.hp->n_layers - 1);
    project_others(m, "altup_unembd_proj", others(m), x.width, stream(m, 0), rest);
    qsf_build_units_in(b, QSF_NONE);
    (void)qsf_build_step(b, QSF_OP_COPY, "altup_active", stream(m, 0), x);
    for (uint32_t i = 0; i + 1 < m->n_streams; i++)
        qsf_build_add(b, "altup_merge", qsf_slice_part(rest, i * x.width, x.width), x);
    qsf_build_scale(b, "altup_mean", x, 1.0f / (float)m->n_streams);
}

/* ---- blocks ---- */

/* Returns in + norm(R L in), L and R of low rank. */
static QsfSlice laurel(const Model *m, QsfSlice in) {
    QsfBuilder *b = m->g.b;
    const QsfSlice low = qsf_build_buffer(b, LAUREL_RANK), out = qsf_build_buffer(b, in.width);
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "laurel_l", in, low);
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "laurel_r", low, out);
    qsf_build_norm(b, QSF_NORM_RMS, "laurel_post_norm", out, out);
    qsf_build_add(b, "laurel_add", in, out);
    return out;
}

static void feed_forward(const Model *m, uint32_t block, QsfSlice x) {
    QsfBuilder *b = m->g.b;
    const uint32_t ffn = m->g.hp->block[block].ffn;
    const bool sparse = block < SPARSE_BLOCKS;
    const QsfSlice gate = qsf_build_buffer(b, ffn), up = qsf_build_buffer(b, ffn);
    const QsfMatrixSpec in[] = { { "ffn_gate", gate, QSF_REQUIRED }, { "ffn_up", up, QSF_REQUIRED } };
    qsf_build_linear(b, QSF_MATMUL_FFN_IN, x, in, 2, sparse ? QSF_ACT_NONE : QSF_ACT_GELU);
    if (sparse) {
        QsfStep *s = qsf_build_step(b, QSF_OP_SPARSE, "ffn_sparse", qsf_slice_none(), gate);
        if (s != NULL) s->u.scale = SPARSE_DEV;
        qsf_gemma_geglu(&m->g, gate, up);
    }
    qsf_build_project(b, QSF_MATMUL_FFN_OUT, "ffn_down", gate, x);
}

/* Adds the block's input from the token to the streams that it did not compute. */
static void add_input(const Model *m, uint32_t block) {
    QsfBuilder *b = m->g.b;
    const QsfSlice branch = qsf_build_branch(b);
    const uint32_t gain = qsf_build_param(b, QSF_REQUIRED, branch.width, "altup_correct_scale.weight");
    (void)qsf_build_step(b, QSF_OP_COPY, "altup_active", stream(m, 0), branch);
    qsf_build_with_param(b, QSF_OP_GAIN, "altup_correct_scale", gain, branch);
    qsf_gemma_block_input(&m->g, block, branch, branch);
    for (uint32_t i = 1; i < m->n_streams; i++) qsf_build_add(b, "per_layer_input", branch, stream(m, i));
}

static void build_block(Model *m, uint32_t block) {
    QsfBuilder *b = m->g.b;
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b), in = qsf_build_buffer(b, x.width);
    qsf_build_block(b, block);
    m->router = matrix(b, "altup_router.weight", x.width, m->n_streams);
    predict(m);
    qsf_build_norm(b, QSF_NORM_RMS, "attn_norm", x, in);
    const QsfSlice low = laurel(m, in);
    qsf_gemma_attention(&m->g, block, in, branch);
    qsf_build_norm(b, QSF_NORM_RMS, "post_attention_norm", branch, branch);
    qsf_build_add(b, "residual", branch, x);
    qsf_build_add(b, "laurel", low, x);
    qsf_build_scale(b, "laurel_scale", x, 1.0f / sqrtf(2.0f));
    qsf_build_norm(b, QSF_NORM_RMS, "ffn_norm", x, branch);
    feed_forward(m, block, branch);
    qsf_build_norm(b, QSF_NORM_RMS, "post_ffw_norm", branch, branch);
    qsf_build_add(b, "residual", branch, x);
    correct(m);
    add_input(m, block);
}

void qsf_family_gemma3n(QsfBuilder *b) {
    Model m = { .g = { .b = b, .hp = qsf_build_hp(b) } };
    const uint32_t n = m.g.hp->n_layers;
    read_keys(&m);
    qsf_gemma_embed(&m.g);
    qsf_gemma_inputs(&m.g, qsf_build_u32(b, "embedding_length_per_layer_input", INPUT_WIDTH, 1,
                                         QSF_MAX_HIDDEN / n));
    if (qsf_build_failed(b)) return;
    split(&m);
    for (uint32_t i = 0; i < n && !qsf_build_failed(b); i++) build_block(&m, i);
    merge(&m);
    qsf_build_head(b, QSF_NORM_RMS, "output_norm");
    qsf_build_logit_cap(b, qsf_build_f32(b, "final_logit_softcapping", 30.0f, 0, 1e6f));
}
