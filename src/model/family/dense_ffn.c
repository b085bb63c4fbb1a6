/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The feed-forward network of a dense transformer's block, with or without experts. */
#include "src/model/family/dense.h"
#include "src/model/moe.h"

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

void qsf_dense_ffn(const QsfDenseModel *m, QsfSlice in, QsfSlice out) {
    QsfBuilder *b = m->b;
    if (qsf_moe_has(b, m->d->moe)) {
        qsf_dense_experts(m, in, out);
        return;
    }
    if (m->d->moe != NULL) qsf_build_unused(b, "exp_probs_b.bias"); /* some files have it in dense blocks */
    qsf_dense_mlp(m, m->hp->block[b->block].ffn / (m->d->half_ffn ? 2 : 1), in, out);
}

QsfSlice qsf_dense_early_router(const QsfDenseModel *m, QsfSlice in) {
    QsfBuilder *b = m->b;
    if (m->d->moe == NULL || !m->d->moe->early_router || !qsf_moe_has(b, m->d->moe)) return qsf_slice_none();
    const QsfSlice logits = qsf_build_buffer(b, qsf_build_need_u32(b, "expert_count", 1, QSF_MAX_EXPERTS));
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "ffn_gate_inp", in, logits);
    return logits;
}
