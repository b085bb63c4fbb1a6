/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parts of programs that families share: the embedding, attention, recurrences, the
 * feed-forward network, the head. */
#include <stdio.h>

#include "src/model/build.h"
#include "src/model/nextn.h"

void qsf_build_embed_named(QsfBuilder *b, const char *name) {
    const QsfHparams *hp = qsf_build_hp(b);
    if (qsf_build_is_nextn(b) && qsf_nextn_embed(b)) return;
    b->p.embed = qsf_build_matrix(b, QSF_REQUIRED, hp->hidden, hp->n_vocab, name);
}

void qsf_build_embed(QsfBuilder *b) { qsf_build_embed_named(b, "token_embd.weight"); }

uint32_t qsf_build_blocks(QsfBuilder *b) {
    if (qsf_build_is_nextn(b)) qsf_nextn_begin(b);
    return b->first;
}

/* A table whose rows are read when they are needed. */
static const QsfTensor *table(QsfBuilder *b, const char *name, uint32_t width, uint32_t rows) {
    char full[QSF_KEY_MAX];
    snprintf(full, sizeof full, "%s.weight", name);
    const QsfTensor *t = qsf_build_matrix(b, QSF_REQUIRED, width, rows, full);
    if (t != NULL && (t->x16 || t->compressed != NULL))
        qsf_build_fail(b, "tensor '%s' is interleaved or compressed, which is not supported for it", t->name);
    return t;
}

void qsf_build_token_rows(QsfBuilder *b, const char *name, QsfSlice out) {
    b->p.token_table = table(b, name, out.width, qsf_build_hp(b)->n_vocab);
    (void)qsf_build_step(b, QSF_OP_TOKEN_ROWS, name, qsf_slice_none(), out);
}

void qsf_build_positions(QsfBuilder *b, const char *name, uint32_t n, QsfSlice x) {
    b->p.position_table = table(b, name, x.width, n);
    b->p.max_ctx = n;
    (void)qsf_build_step(b, QSF_OP_POSITION, "position", qsf_slice_none(), x);
}

QsfQkv qsf_build_qkv(QsfBuilder *b, const QsfBlockSizes *n, QsfSlice in) {
    const QsfHparams *hp = qsf_build_hp(b);
    const uint32_t q = n->heads * hp->head_dim, k = n->kv_heads * hp->head_dim, v = n->kv_heads * hp->v_dim;
    if (qsf_build_has(b, "attn_qkv.weight")) {
        const QsfSlice all = qsf_build_buffer(b, q + k + v);
        qsf_build_project(b, QSF_MATMUL_ATTN_IN, "attn_qkv", in, all);
        return (QsfQkv){ qsf_slice_part(all, 0, q), qsf_slice_part(all, q, k),
                         qsf_slice_part(all, q + k, v) };
    }
    const QsfQkv y = { qsf_build_buffer(b, q), qsf_build_buffer(b, k), qsf_build_buffer(b, v) };
    const QsfMatrixSpec mats[] = { { "attn_q", y.q, QSF_REQUIRED },
                                   { "attn_k", y.k, QSF_REQUIRED },
                                   { "attn_v", y.v, QSF_REQUIRED } };
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, in, mats, 3, QSF_ACT_NONE);
    return y;
}

/* ---- attention: its cache, its steps, and heads of different sizes ---- */

void qsf_build_heads(QsfBuilder *b, const char *label, QsfSlice in, QsfSlice out, uint32_t heads, uint32_t n,
                     uint32_t in_stride, uint32_t out_stride) {
    QsfStep *s = qsf_build_step(b, QSF_OP_HEADS, label, in, out);
    if (s != NULL) s->u.heads = (QsfHeadsStep){ heads, n, in_stride, out_stride, false };
}

QsfAttentionStep qsf_attention_plain(uint32_t heads, float scale) {
    return (QsfAttentionStep){
        .kv = QSF_NONE, .heads = heads, .scale = scale, .sinks = QSF_NONE, .slopes = QSF_NONE
    };
}

void qsf_build_temperature(QsfBuilder *b, QsfSlice q) {
    const uint32_t original = qsf_build_u32(b, "rope.scaling.original_context_length", 1u << 28, 1, 1u << 28);
    const QsfTemperatureStep t = { .scale = qsf_build_f32(b, "attention.temperature_scale", 0, 0, 1e6f),
                                   .length = qsf_build_u32(b, "attention.temperature_length", original, 1,
                                                           1u << 28) };
    QsfStep *s = t.scale > 0 ? qsf_build_step(b, QSF_OP_TEMPERATURE, "temperature", qsf_slice_none(), q)
                             : NULL;
    if (s != NULL) s->u.temperature = t;
}

/* Returns x with heads of dim elements instead of n. */
static QsfSlice padded(QsfBuilder *b, QsfSlice x, uint32_t heads, uint32_t n, uint32_t dim) {
    if (n == dim || qsf_build_failed(b)) return x;
    const QsfSlice y = qsf_build_buffer(b, heads * dim);
    qsf_build_heads(b, "pad_heads", x, y, heads, n, n, dim);
    return y;
}

QsfSlice qsf_build_attention(QsfBuilder *b, const QsfAttentionSpec *a) {
    const uint32_t dim = a->k_dim > a->v_dim ? a->k_dim : a->v_dim;
    QsfAttentionStep step = a->step;
    const QsfSlice q = padded(b, a->q, step.heads, a->k_dim, dim);
    if (!a->shared) {
        const QsfSlice k = padded(b, a->k, a->kv_heads, a->k_dim, dim),
                       v = padded(b, a->v, a->kv_heads, a->v_dim, dim);
        step.kv = qsf_build_kv(b, a->kv_heads, dim);
        QsfStep *store = qsf_build_step(b, QSF_OP_KV_STORE, "kv_store", k, qsf_slice_none());
        if (store == NULL) return qsf_slice_none();
        store->in2 = v;
        store->u.kv = step.kv;
    }
    QsfStep *s = qsf_build_step(b, QSF_OP_ATTENTION, "attention", q, q);
    if (s == NULL) return qsf_slice_none();
    s->u.attention = step;
    if (a->selected.width > 0) s->in2 = a->selected;
    if (a->v_dim == dim) return q;
    const QsfSlice out = qsf_build_buffer(b, step.heads * a->v_dim);
    qsf_build_heads(b, "unpad_heads", q, out, step.heads, a->v_dim, dim, a->v_dim);
    return out;
}

/* ---- steps that carry a state from one position to the next ---- */

void qsf_build_conv(QsfBuilder *b, const char *name, QsfSlice in, QsfSlice out, uint32_t kernel,
                    QsfActKind act) {
    char full[QSF_KEY_MAX];
    if (!qsf_build_failed(b) && (kernel < 2 || kernel > QSF_CONV_MAX))
        qsf_build_fail(b, "a convolution over %u positions is not supported, expected 2 to %u", kernel,
                       QSF_CONV_MAX);
    if (qsf_build_failed(b)) return;
    QsfConvStep c = { .kernel = kernel, .act = act };
    snprintf(full, sizeof full, "%s.weight", name);
    /* Some converters leave a dimension of 1 in the middle. */
    const QsfTensor *t = qsf_build_peek(b, full);
    const bool flat = t == NULL || t->ne[2] == 1;
    const uint64_t ne[3] = { kernel, flat ? in.width : 1, flat ? 1 : in.width };
    c.weight = qsf_build_param_nd(b, QSF_REQUIRED, ne, 3, full);
    snprintf(full, sizeof full, "%s.bias", name);
    c.bias = qsf_build_param(b, QSF_OPTIONAL, in.width, full);
    c.state = qsf_build_state(b, (uint64_t)(kernel - 1) * in.width);
    QsfStep *s = qsf_build_step(b, QSF_OP_CONV, name, in, out);
    if (s != NULL) s->u.conv = c;
}

void qsf_build_scan(QsfBuilder *b, const QsfScanSpec *spec) {
    const bool one = spec->op == QSF_OP_SCAN1;
    /* Some converters store one number per head without a dimension of 1. */
    const QsfTensor *t = qsf_build_peek(b, "ssm_d");
    const bool flat = !one && t != NULL && t->ne[0] == spec->heads;
    const uint64_t a[2] = { flat ? spec->heads : 1, flat ? 1 : spec->heads },
                   d[2] = { flat ? spec->heads : 1, flat ? 1 : spec->heads };
    QsfScanStep p = { .heads = spec->heads, .n = spec->n, .groups = spec->groups };
    p.a = one ? qsf_build_param_tiles(b, QSF_REQUIRED, spec->n, spec->heads, "ssm_a")
              : qsf_build_param_nd(b, QSF_REQUIRED, a, 2, "ssm_a");
    p.d = one ? qsf_build_param(b, QSF_REQUIRED, spec->heads, "ssm_d")
              : qsf_build_param_nd(b, QSF_REQUIRED, d, 2, "ssm_d");
    if (qsf_build_failed(b)) return;
    p.dim = spec->x.width / spec->heads;
    p.state = qsf_build_state(b, one ? qsf_matrix_state_floats(1, spec->n, spec->heads)
                                     : qsf_matrix_state_floats(spec->heads, spec->n, p.dim) + spec->heads);
    QsfStep *s = qsf_build_step(b, spec->op, "ssm_scan", spec->x, spec->out);
    if (s == NULL) return;
    s->in2 = spec->dt;
    s->in3 = spec->bc;
    s->u.scan = p;
}

/* ---- the feed-forward network and the head ---- */

static bool has_part(QsfBuilder *b, const char *name) {
    char full[QSF_KEY_MAX];
    snprintf(full, sizeof full, "%s.weight", name);
    return qsf_build_maybe(b, full);
}

static void check_width(QsfBuilder *b, const char *name, uint32_t n, uint32_t width) {
    if (n != width && !qsf_build_failed(b))
        qsf_build_fail(b, "tensor 'blk.%u.%s.weight' is missing", b->block, name);
}

/* A network some of whose matrices are missing. */
static void build_incomplete(QsfBuilder *b, const QsfFfnSpec *f, QsfSlice in, QsfSlice out) {
    const char *const name[] = { f->shared ? "ffn_gate_shexp" : "ffn_gate",
                                 f->shared ? "ffn_up_shexp" : "ffn_up",
                                 f->shared ? "ffn_down_shexp" : "ffn_down" };
    const bool gate = f->gated && has_part(b, name[0]), up = has_part(b, name[1]),
               down = has_part(b, name[2]);
    const QsfSlice first = qsf_build_buffer(b, f->n), second = up && gate ? qsf_build_buffer(b, f->n) : in;
    if (!up) check_width(b, name[1], f->n, in.width);
    if (!down) check_width(b, name[2], f->n, out.width);
    if (gate) qsf_build_project(b, QSF_MATMUL_FFN_IN, name[0], in, first);
    if (up) qsf_build_project(b, QSF_MATMUL_FFN_IN, name[1], in, gate ? second : first);
    if (!gate && !up) (void)qsf_build_step(b, QSF_OP_COPY, "ffn_in", in, first);
    QsfStep *s = qsf_build_step(b, QSF_OP_ACT, "ffn_act", gate ? second : qsf_slice_none(), first);
    if (s != NULL) s->u.act = f->with.kind != QSF_ACT_NONE ? f->with : (QsfActStep){ .kind = f->act };
    if (down)
        qsf_build_project(b, QSF_MATMUL_FFN_OUT, name[2], first, out);
    else
        (void)qsf_build_step(b, QSF_OP_COPY, "ffn_out", first, out);
}

static bool is_complete(const QsfBuilder *b, const QsfFfnSpec *f) {
    return qsf_build_has(b, f->shared ? "ffn_up_shexp.weight" : "ffn_up.weight") &&
           qsf_build_has(b, f->shared ? "ffn_down_shexp.weight" : "ffn_down.weight") &&
           (!f->gated || qsf_build_has(b, f->shared ? "ffn_gate_shexp.weight" : "ffn_gate.weight"));
}

void qsf_build_ffn(QsfBuilder *b, const QsfFfnSpec *f, QsfSlice in, QsfSlice out) {
    if (f->parts && !is_complete(b, f)) {
        build_incomplete(b, f, in, out);
        return;
    }
    const QsfSlice first = qsf_build_buffer(b, f->n), up = f->gated ? qsf_build_buffer(b, f->n) : first;
    const QsfMatrixSpec mats[] = { { f->shared ? "ffn_gate_shexp" : "ffn_gate", first, QSF_REQUIRED },
                                   { f->shared ? "ffn_up_shexp" : "ffn_up", up, QSF_REQUIRED } };
    const unsigned skip = f->gated ? 0 : 1;
    const bool own = f->with.kind != QSF_ACT_NONE;
    qsf_build_linear(b, QSF_MATMUL_FFN_IN, in, mats + skip, 2 - skip, own ? QSF_ACT_NONE : f->act);
    QsfStep *s = own ? qsf_build_step(b, QSF_OP_ACT, "ffn_act", up, first) : NULL;
    if (s != NULL) s->u.act = f->with;
    qsf_build_project(b, QSF_MATMUL_FFN_OUT, f->shared ? "ffn_down_shexp" : "ffn_down", first, out);
}

void qsf_build_logit_cap(QsfBuilder *b, float cap) {
    if (!(cap > 0)) return;
    QsfStep *s = qsf_build_step(b, QSF_OP_SOFTCAP, "softcap", qsf_slice_none(), qsf_build_logits(b));
    if (s != NULL) s->u.scale = cap;
}

void qsf_build_head(QsfBuilder *b, QsfNormKind kind, const char *norm_name) {
    const QsfHparams *hp = qsf_build_hp(b);
    if (qsf_build_is_nextn(b)) {
        qsf_nextn_head(b, kind, norm_name);
        return;
    }
    qsf_build_no_block(b);
    const QsfSlice x = qsf_build_branch(b);
    qsf_build_norm(b, kind, norm_name, qsf_build_x(b), x);
    const QsfMatrixSpec head = { "output", qsf_build_logits(b), QSF_OPTIONAL };
    qsf_build_linear(b, QSF_MATMUL_HEAD, x, &head, 1, QSF_ACT_NONE);
    if (qsf_build_failed(b)) return;
    QsfUnitSpec *u = &b->p.unit[b->p.n_units - 1];
    QsfStep *s = &b->p.step[b->p.n_steps - 1];
    b->p.tied_head = u->n == 0 || u->tensor[0] == b->p.embed;
    if (u->n > 0) return;
    u->tensor[u->n++] = b->p.embed;
    s->out[0] = head.out;
    s->u.linear.bias[0] = qsf_build_param(b, QSF_OPTIONAL, hp->n_vocab, "output.bias");
}
