/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parts of Gemma 3n and Gemma 4. Names of keys and tensors: ggml-org/llama.cpp gguf-py. */
#include "src/model/family/gemma.h"

#include <inttypes.h>
#include <math.h>

void qsf_gemma_windows(QsfGemma *m, uint32_t period) {
    static const char *const name = "attention.sliding_window_pattern";
    QsfBuilder *b = m->b;
    const uint32_t n = m->hp->n_layers;
    uint32_t pattern[QSF_MAX_LAYERS];
    if (qsf_build_failed(b)) return;
    qsf_build_check(b,
                    qsf_keys_need_u32(&b->keys, "attention.sliding_window", 1, UINT32_MAX / 2, &m->window));
    if (qsf_build_failed(b)) return;
    if (qsf_keys_is_array(&b->keys, name)) {
        qsf_build_check(b, qsf_keys_u32_each(&b->keys, name, 0, 0, 1, n + m->hp->n_extra, pattern));
        for (uint32_t i = 0; !qsf_build_failed(b) && i < n; i++) m->has_window[i] = pattern[i] != 0;
        return;
    }
    if (period == 0 && !qsf_keys_has(&b->keys, name))
        qsf_build_check(b, qsf_keys_bad(&b->keys, "is missing"));
    period = qsf_build_u32(b, name, period, 1, QSF_MAX_LAYERS);
    for (uint32_t i = 0; i < n; i++) m->has_window[i] = i % period + 1 < period;
}

/* ---- inputs of the blocks ---- */

void qsf_gemma_embed(QsfGemma *m) {
    qsf_build_embed(m->b);
    qsf_build_scale(m->b, "embed_scale", qsf_build_x(m->b), sqrtf((float)m->hp->hidden));
}

void qsf_gemma_inputs(QsfGemma *m, uint32_t width) {
    QsfBuilder *b = m->b;
    const uint32_t n = m->hp->n_layers;
    m->input_width = width;
    if (width == 0 || qsf_build_failed(b)) return;
    const QsfSlice token = qsf_build_buffer(b, n * width);
    m->inputs = qsf_build_buffer(b, n * width);
    qsf_build_token_rows(b, "per_layer_token_embd", token);
    qsf_build_units_in(b, 0);
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "per_layer_model_proj", qsf_build_x(b), m->inputs);
    qsf_build_units_in(b, QSF_NONE);
    qsf_build_scale(b, "per_layer_proj_scale", m->inputs, 1.0f / sqrtf((float)m->hp->hidden));
    qsf_build_head_norm(b, QSF_NORM_RMS, "per_layer_proj_norm", m->inputs, n, false);
    qsf_build_scale(b, "per_layer_embd_scale", token, sqrtf((float)width));
    qsf_build_add(b, "per_layer_embd", token, m->inputs);
    qsf_build_scale(b, "per_layer_input_scale", m->inputs, 1.0f / sqrtf(2.0f));
}

void qsf_gemma_geglu(const QsfGemma *m, QsfSlice gate, QsfSlice up) {
    qsf_build_act(m->b, "geglu", QSF_ACT_GELU, up, gate);
}

void qsf_gemma_block_input(const QsfGemma *m, uint32_t block, QsfSlice in, QsfSlice out) {
    QsfBuilder *b = m->b;
    const uint32_t width = m->input_width;
    const QsfSlice gate = qsf_build_buffer(b, width);
    qsf_build_project(b, QSF_MATMUL_FFN_IN, "inp_gate", in, gate);
    qsf_gemma_geglu(m, gate, qsf_slice_part(m->inputs, block * width, width));
    qsf_build_project(b, QSF_MATMUL_FFN_OUT, "proj", gate, out);
    qsf_build_norm(b, QSF_NORM_RMS, "post_norm", out, out);
}

/* ---- attention ---- */

/* The block whose cache a block uses: the last one with its own cache and the same kind of attention. */
static uint32_t cache_of(const QsfGemma *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const QsfBlockSizes *sizes = m->hp->block;
    uint32_t from = m->n_own;
    while (from > 0 && m->has_window[from - 1] != m->has_window[block]) from--;
    if (from == 0)
        qsf_build_fail(b,
                       "block %" PRIu32 " shares the keys and values of a block before block %" PRIu32
                       " with%s a window, but there is none (attention.shared_kv_layers)",
                       block, m->n_own, m->has_window[block] ? "" : "out");
    else if (sizes[from - 1].kv_heads != sizes[block].kv_heads)
        qsf_build_fail(b,
                       "block %" PRIu32 " has %" PRIu32 " KV heads, but block %" PRIu32
                       ", whose keys and values it shares, has %" PRIu32,
                       block, sizes[block].kv_heads, from - 1, sizes[from - 1].kv_heads);
    return from > 0 ? m->kv[from - 1] : QSF_NONE;
}

/* Some files contain the matrices of blocks that do not use them. */
static void ignore_own_cache(QsfBuilder *b) {
    static const char *const name[] = { "attn_k.weight", "attn_v.weight", "attn_k_norm.weight" };
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) qsf_build_unused(b, name[i]);
}

/* Multiplies by Q, and by K and V unless they are shared. Without attn_v, V is K before its norm. */
static void project(const QsfGemma *m, QsfSlice in, const QsfAttentionSpec *a) {
    QsfBuilder *b = m->b;
    const bool v_is_k = !qsf_build_has(b, "attn_v.weight") && a->k_dim == a->v_dim;
    const QsfMatrixSpec mats[] = { { "attn_q", a->q, QSF_REQUIRED },
                                   { "attn_k", a->k, QSF_REQUIRED },
                                   { "attn_v", a->v, QSF_REQUIRED } };
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, in, mats, a->shared ? 1 : v_is_k ? 2 : 3, QSF_ACT_NONE);
    if (!a->shared && v_is_k) (void)qsf_build_step(b, QSF_OP_COPY, "v_is_k", a->k, a->v);
}

void qsf_gemma_attention(QsfGemma *m, uint32_t block, QsfSlice in, QsfSlice out) {
    QsfBuilder *b = m->b;
    const QsfBlockSizes *n = &m->hp->block[block];
    const QsfGemmaHeads *d = &m->heads[m->has_window[block]];
    QsfAttentionSpec a = { .step = qsf_attention_plain(n->heads, 1.0f),
                           .kv_heads = n->kv_heads,
                           .k_dim = d->k_dim,
                           .v_dim = d->v_dim,
                           .shared = block >= m->n_own,
                           .q = qsf_build_buffer(b, n->heads * d->k_dim) };
    a.step.window = m->has_window[block] ? m->window : 0;
    if (a.shared) {
        a.step.kv = cache_of(m, block);
        ignore_own_cache(b);
    } else {
        a.k = qsf_build_buffer(b, n->kv_heads * d->k_dim);
        a.v = qsf_build_buffer(b, n->kv_heads * d->v_dim);
    }
    project(m, in, &a);
    qsf_build_head_norm(b, QSF_NORM_RMS, "attn_q_norm", a.q, n->heads, false);
    qsf_build_rope(b, d->rope, a.q, n->heads, d->k_dim, 0);
    if (!a.shared) {
        qsf_build_head_norm(b, QSF_NORM_RMS, "attn_k_norm", a.k, n->kv_heads, false);
        qsf_build_head_norm(b, QSF_NORM_RMS, NULL, a.v, n->kv_heads, false);
        qsf_build_rope(b, d->rope, a.k, n->kv_heads, d->k_dim, 0);
    }
    const QsfSlice y = qsf_build_attention(b, &a);
    m->kv[block] = a.shared ? a.step.kv : b->p.n_kv - 1;
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", y, out);
}
