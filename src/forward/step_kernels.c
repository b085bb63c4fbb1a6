/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names the kernels that a step uses, for receipts. A kernel's level is the lowest one whose table has it:
 * tables of higher levels keep what they cannot do faster. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "src/forward/forward_impl.h"
#include "src/forward/ops/ops.h"

typedef void (*AnyFn)(void);

typedef struct Names {
    const QsfForward *f;
    QsfKernel *out;
    unsigned n;
} Names;

/* Returns the level that provides the kernel at this offset of the table. */
static qk_level level_of(const qk_table *t, size_t offset) {
    AnyFn want, have;
    memcpy(&want, (const char *)t + offset, sizeof want);
    for (qk_level level = QK_LEVEL_REF; level < t->level; level++) {
        qk_table lower;
        qk_table_init(&lower, level);
        memcpy(&have, (const char *)&lower + offset, sizeof have);
        if (have == want) return level;
    }
    return t->level;
}

static void put(Names *n, const char *name, const char *level) {
    for (unsigned i = 0; i < n->n; i++)
        if (!strcmp(n->out[i].name, name)) return;
    if (n->n == QSF_STEP_KERNELS) return;
    QsfKernel *k = &n->out[n->n++];
    (void)snprintf(k->name, sizeof k->name, "%s", name);
    k->level = level;
}

static void put_at(Names *n, const char *name, size_t offset) {
    put(n, name, qk_level_name(level_of(n->f->table, offset)));
}
#define PUT(n, member) put_at(n, #member, offsetof(qk_table, member))

static void put_portable(Names *n, const char *name) { put(n, name, "portable"); }

static void put_act(Names *n, QsfActKind kind) {
    size_t at;
    const char *name = qsf_act_kernel(kind, &at);
    if (name != NULL)
        put_at(n, name, at);
    else if (kind != QSF_ACT_NONE)
        put_portable(n, qsf_act_name(kind));
}

static void put_norm(Names *n, const QsfStep *s) {
    if (s->u.norm.kind == QSF_NORM_RMS)
        PUT(n, rms_norm);
    else if (s->u.norm.kind == QSF_NORM_LAYER)
        PUT(n, layer_norm);
    else
        PUT(n, l2_norm);
}

static void put_matmul(Names *n, uint32_t unit) {
    const QsfUnit *u = qsf_weights_unit(n->f->weights, unit);
    for (unsigned i = 0; i < u->n; i++) {
        const size_t at = offsetof(qk_table, weight) + (size_t)u->type[i] * sizeof(qk_weight_ops);
        if (n->f->exact)
            PUT(n, matmul_exact);
        else
            put_at(n, n->f->table->weight[u->type[i]].name, at + offsetof(qk_weight_ops, matmul));
    }
}

static void put_kv(Names *n, uint32_t kv, const char *verb, size_t member) {
    char name[40];
    const qk_kv_ops *ops = qsf_kvcache_ops(&n->f->kv, kv, 0);
    (void)snprintf(name, sizeof name, "%s_%s", ops->name, verb);
    put_at(n, name, (size_t)((const char *)ops - (const char *)n->f->table) + member);
}

static void put_rope(Names *n, const QsfStep *s) {
    if (n->f->model->prog.rope[s->u.rope.table].kind == QSF_ROPE_PAIRS)
        PUT(n, rope_pairs_batch);
    else
        PUT(n, rope_halves_batch);
}

static void put_factor(Names *n, bool one) {
    if (one)
        PUT(n, scale);
    else
        PUT(n, mul);
}

static bool gain_is_blockwise(const QsfForward *f, const QsfStep *s) {
    return f->model->prog.param[s->u.param].n != s->out[0].width;
}

unsigned qsf_forward_step_kernels(const QsfForward *f, const QsfStep *s, QsfKernel *out) {
    Names n = { .f = f, .out = out };
    switch (s->op) {
    case QSF_OP_NORM: put_norm(&n, s); break;
    case QSF_OP_ADD:
    case QSF_OP_BIAS:
    case QSF_OP_POSITION: PUT(&n, add); break;
    case QSF_OP_SCALE:
    case QSF_OP_TEMPERATURE: PUT(&n, scale); break;
    case QSF_OP_MUL: put_factor(&n, s->in.width == 1); break;
    case QSF_OP_GAIN: put_factor(&n, gain_is_blockwise(f, s)); break;
    case QSF_OP_CLAMP: PUT(&n, clamp); break;
    case QSF_OP_SOFTCAP: PUT(&n, softcap); break;
    case QSF_OP_LERP: PUT(&n, lerp); break;
    case QSF_OP_PREDICT: PUT(&n, mix_streams); break;
    case QSF_OP_CORRECT: PUT(&n, correct_streams); break;
    case QSF_OP_SPARSE: PUT(&n, keep_above); break;
    case QSF_OP_ACT: put_act(&n, s->u.act.kind); break;
    case QSF_OP_ROPE: put_rope(&n, s); break;
    case QSF_OP_SCAN1: PUT(&n, scan_each); break;
    case QSF_OP_SCAN2: PUT(&n, scan_one); break;
    case QSF_OP_DELTA: PUT(&n, delta); break;
    case QSF_OP_WKV: PUT(&n, wkv); break;
    case QSF_OP_CONV:
        PUT(&n, conv);
        put_act(&n, s->u.conv.act);
        break;
    case QSF_OP_KV_STORE: put_kv(&n, s->u.kv, "store", offsetof(qk_kv_ops, store)); break;
    case QSF_OP_ATTENTION: put_kv(&n, s->u.attention.kv, "attend", offsetof(qk_kv_ops, attend)); break;
    case QSF_OP_HEAD_LINEAR: put_matmul(&n, s->u.head_linear.unit); break;
    case QSF_OP_LINEAR:
        put_matmul(&n, s->u.linear.unit);
        put_act(&n, s->u.linear.act);
        break;
    case QSF_OP_EXPERTS:
        put_matmul(&n, s->u.experts.unit);
        put_matmul(&n, s->u.experts.unit + 1);
        put_act(&n, s->u.experts.act.kind);
        break;
    default: put_portable(&n, qsf_op_name(s->op));
    }
    return n.n;
}

QsfKernel qsf_forward_quantize_kernel(const QsfForward *f, qk_act act) {
    static const char *const name[QK_ACT_N] = { "quantize_f32", "quantize_q8", "quantize_q8k" };
    QsfKernel k;
    put_at(&(Names){ .f = f, .out = &k }, name[act], offsetof(qk_table, quantize) + act * sizeof(AnyFn));
    return k;
}

QsfKernel qsf_forward_embed_kernel(const QsfForward *f) {
    const qk_type type = qk_type_of(f->model->prog.embed->dtype);
    const size_t at = offsetof(qk_table, weight) + (size_t)type * sizeof(qk_weight_ops);
    QsfKernel k;
    put_at(&(Names){ .f = f, .out = &k }, "dequant", at + offsetof(qk_weight_ops, dequant));
    return k;
}
