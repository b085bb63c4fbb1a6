/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Multi-head latent attention. Keys and tensors: ggml-org/llama.cpp src/models/deepseek2.cpp. */
#include "src/model/mla.h"

#include <inttypes.h>
#include <math.h>

void qsf_mla_read(QsfBuilder *b, QsfMlaSpec *m) {
    const QsfHparams *hp = qsf_build_hp(b);
    *m = (QsfMlaSpec){ .heads = hp->n_heads, .table = QSF_NONE, .selected = qsf_slice_none() };
    m->kv_lora = qsf_build_need_u32(b, "attention.kv_lora_rank", 1, QSF_MAX_HEAD_DIM);
    /* attention.value_length_mla, else attention.value_length, else as many as of the model per head */
    const bool known = !qsf_build_failed(b) && qsf_keys_has(&b->keys, "attention.value_length");
    const uint32_t usual = known || hp->n_heads == 0 ? hp->v_dim : hp->hidden / hp->n_heads;
    m->v_dim = qsf_build_u32(b, "attention.value_length_mla", usual, 1, QSF_MAX_HEAD_DIM);
    const uint32_t k_dim = qsf_build_u32(b, "attention.key_length_mla", hp->head_dim, 1, QSF_MAX_HEAD_DIM);
    m->rope = qsf_build_need_u32(b, "rope.dimension_count", 1, QSF_MAX_HEAD_DIM);
    if (qsf_build_failed(b)) return;
    if (m->rope >= k_dim)
        qsf_build_fail(b,
                       "metadata key '%s' is %" PRIu32 ", expected less than the %" PRIu32
                       " elements of a key (attention.key_length_mla, or attention.key_length)",
                       b->keys.key, m->rope, k_dim);
    m->nope = k_dim - m->rope;
    m->scale = 1.0f / sqrtf((float)k_dim);
    const uint64_t widest = (uint64_t)m->heads * (m->kv_lora + k_dim + m->v_dim);
    if (widest > QSF_MAX_HIDDEN)
        qsf_build_fail(b, "%" PRIu32 " heads with a latent of %" PRIu32 " elements are more than supported",
                       m->heads, m->kv_lora);
}

/* The inputs of attention: queries (heads, nope + rope), and the latent followed by the rotated key. */
typedef struct Inputs {
    QsfSlice q, kv, gate;
} Inputs;

static QsfSlice output_gate(QsfBuilder *b, const QsfMlaSpec *m, QsfSlice in) {
    if (m->gate == QSF_ACT_NONE || (m->maybe_gate && !qsf_build_maybe(b, "attn_gate.weight")))
        return qsf_slice_none();
    const bool by_head = qsf_build_rows_of(b, "attn_gate.weight") == m->heads;
    const QsfSlice gate = qsf_build_buffer(b, m->heads * (by_head ? 1 : m->v_dim));
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, in, &(QsfMatrixSpec){ "attn_gate", gate, QSF_REQUIRED }, 1,
                     m->gate);
    return gate;
}

static Inputs project(QsfBuilder *b, QsfMlaSpec *m, QsfSlice in) {
    const uint32_t k_dim = m->nope + m->rope;
    const bool direct = !qsf_build_has(b, "attn_q_a.weight");
    Inputs x = { qsf_build_buffer(b, m->heads * k_dim), qsf_build_buffer(b, m->kv_lora + m->rope),
                 qsf_slice_none() };
    const uint32_t q_lora = direct ? 0 : qsf_build_need_u32(b, "attention.q_lora_rank", 1, QSF_MAX_HIDDEN);
    const QsfSlice a = direct ? x.q : qsf_build_buffer(b, q_lora);
    const QsfMatrixSpec first[] = { { direct ? "attn_q" : "attn_q_a", a, QSF_REQUIRED },
                                    { "attn_kv_a_mqa", x.kv, QSF_REQUIRED } };
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, in, first, 2, QSF_ACT_NONE);
    if (!direct) {
        qsf_build_norm(b, QSF_NORM_RMS, "attn_q_a_norm", a, a);
        qsf_build_project(b, QSF_MATMUL_ATTN_IN, "attn_q_b", a, x.q);
    } else if (m->indexer != NULL) {
        qsf_build_require(b, "attn_q_a.weight");
    }
    if (m->indexer != NULL) m->selected = qsf_build_indexer(b, m->indexer, a, in);
    x.gate = output_gate(b, m, in);
    const QsfSlice latent = qsf_slice_part(x.kv, 0, m->kv_lora);
    qsf_build_norm(b, QSF_NORM_RMS, "attn_kv_a_norm", latent, latent);
    const QsfSlice key = qsf_slice_part(x.kv, m->kv_lora, m->rope);
    if (m->k_norm) qsf_build_norm(b, QSF_NORM_RMS, "attn_k_norm", key, key);
    qsf_build_rope(b, m->table, x.kv, 1, m->kv_lora + m->rope, m->kv_lora);
    qsf_build_rope(b, m->table, x.q, m->heads, k_dim, m->nope);
    if (m->temperature) qsf_build_temperature(b, x.q);
    return x;
}

/* Copies n elements of each head and leaves the rest of out's heads as it is. */
static void copy_heads(QsfBuilder *b, const char *label, QsfSlice in, QsfSlice out, uint32_t heads,
                       uint32_t n, uint32_t in_stride, uint32_t out_stride) {
    QsfStep *s = qsf_build_step(b, QSF_OP_HEADS, label, in, out);
    if (s != NULL) s->u.heads = (QsfHeadsStep){ heads, n, in_stride, out_stride, true };
}

static QsfSlice rest(QsfSlice s, uint32_t off) { return qsf_slice_part(s, off, s.width - off); }

/* One key for all heads: the latent and the rotated key. Its latent is also the value. */
static QsfSlice absorbed(QsfBuilder *b, const QsfMlaSpec *m, const Inputs *x) {
    const uint32_t k_dim = m->nope + m->rope, dim = m->kv_lora + m->rope;
    const QsfSlice q = qsf_build_buffer(b, m->heads * dim), y = qsf_build_buffer(b, m->heads * m->v_dim);
    QsfAttentionStep attention = qsf_attention_plain(m->heads, m->scale);
    attention.window = m->window;
    attention.kv = qsf_build_kv_shared(b, 1, dim);
    QsfStep *store = qsf_build_step(b, QSF_OP_KV_STORE, "kv_store", x->kv, qsf_slice_none());
    if (store == NULL) return qsf_slice_none();
    store->u.kv = attention.kv;
    copy_heads(b, "q_rope", rest(x->q, m->nope), rest(q, m->kv_lora), m->heads, m->rope, k_dim, dim);
    qsf_build_head_linear(b, QSF_MATMUL_ATTN_IN, "attn_k_b", m->heads, m->nope, m->kv_lora, x->q, k_dim, q,
                          dim);
    QsfStep *s = qsf_build_step(b, QSF_OP_ATTENTION, "attention", q, q);
    if (s == NULL) return qsf_slice_none();
    s->u.attention = attention;
    s->in2 = m->selected;
    qsf_build_head_linear(b, QSF_MATMUL_ATTN_OUT, "attn_v_b", m->heads, m->kv_lora, m->v_dim, q, dim, y,
                          m->v_dim);
    return y;
}

/* Keys and values of every head. */
static QsfSlice expanded(QsfBuilder *b, const QsfMlaSpec *m, const Inputs *x) {
    const uint32_t k_dim = m->nope + m->rope, both = m->nope + m->v_dim;
    const QsfSlice kv = qsf_build_buffer(b, m->heads * both), k = qsf_build_buffer(b, m->heads * k_dim),
                   v = qsf_build_buffer(b, m->heads * m->v_dim);
    if (qsf_build_failed(b)) return qsf_slice_none();
    const QsfSlice latent = qsf_slice_part(x->kv, 0, m->kv_lora);
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "attn_kv_b", latent, kv);
    copy_heads(b, "k_nope", kv, k, m->heads, m->nope, both, k_dim);
    copy_heads(b, "k_rope", rest(x->kv, m->kv_lora), rest(k, m->nope), m->heads, m->rope, 0, k_dim);
    copy_heads(b, "v", rest(kv, m->nope), v, m->heads, m->v_dim, both, m->v_dim);
    const QsfAttentionSpec attention = { .step = qsf_attention_plain(m->heads, m->scale),
                                         .kv_heads = m->heads,
                                         .k_dim = k_dim,
                                         .v_dim = m->v_dim,
                                         .q = x->q,
                                         .k = k,
                                         .v = v };
    return qsf_build_attention(b, &attention);
}

QsfSlice qsf_build_mla(QsfBuilder *b, QsfMlaSpec *m, QsfSlice in) {
    if (qsf_build_failed(b)) return qsf_slice_none();
    const Inputs x = project(b, m, in);
    if (qsf_build_failed(b)) return qsf_slice_none();
    const bool all_heads = qsf_build_has(b, "attn_kv_b.weight");
    if (all_heads && (m->selected.buf != QSF_NONE || m->window > 0))
        qsf_build_fail(b, "tensor 'blk.%" PRIu32 ".attn_kv_b.weight' is not supported in this architecture",
                       b->block);
    const QsfSlice y = all_heads ? expanded(b, m, &x) : absorbed(b, m, &x);
    if (x.gate.buf != QSF_NONE) (void)qsf_build_step(b, QSF_OP_MUL, "attn_gate", x.gate, y);
    return y;
}
