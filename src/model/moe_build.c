/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Routers, routed experts and shared experts. Names of tensors: ggml-org/llama.cpp gguf-py. */
#include <stdio.h>
#include <string.h>

#include "src/model/moe.h"

#define NAME_BYTES 64

/* ---- the router ---- */

static uint32_t selection_bias(QsfBuilder *b, uint32_t n) {
    const char *name = qsf_build_has(b, "exp_probs_b.bias") ? "exp_probs_b.bias" : "exp_probs_b";
    return qsf_build_param(b, QSF_OPTIONAL, n, name);
}

static bool is_adjugate(const QsfMoeSpec *s) { return strcmp(s->tensors, "exps") != 0; }

/* The name of a tensor of the experts: ffn_gate_exps.weight, ... */
static const char *name(const QsfMoeSpec *s, const char *part, const char *kind, char *buf) {
    snprintf(buf, NAME_BYTES, "ffn_%s_%s.%s", part, s->tensors, kind);
    return buf;
}

static QsfSlice router_logits(QsfBuilder *b, const QsfMoeSpec *s, QsfSlice in) {
    const QsfSlice logits = qsf_build_buffer(b, s->n_expert);
    qsf_build_project(b, QSF_MATMUL_FFN_IN, "ffn_gate_inp", s->router_in.buf == QSF_NONE ? in : s->router_in,
                      logits);
    return logits;
}

/* Returns ids and weights. */
static QsfSlice build_route(QsfBuilder *b, const QsfMoeSpec *s, QsfSlice in) {
    const QsfSlice logits = s->router_logits.buf == QSF_NONE ? router_logits(b, s, in) : s->router_logits;
    char buf[NAME_BYTES];
    const bool plain = !is_adjugate(s);
    const QsfSlice route = qsf_build_buffer(b, 2 * s->n_used);
    const QsfRouteStep r = { .gating = s->gating,
                             .n_expert = logits.width,
                             .group = plain ? 0 : s->group,
                             .n_used = s->n_used,
                             .n_groups = s->n_groups,
                             .n_groups_used = s->n_groups_used,
                             .group_scores = s->group_scores,
                             .bias = plain ? selection_bias(b, s->n_expert) : QSF_NONE,
                             .expert_scale = qsf_build_param(b, QSF_OPTIONAL, s->n_expert,
                                                             name(s, "down", "scale", buf)),
                             .by_logit = s->scale_input,
                             .norm = s->norm,
                             .scale = s->scale };
    QsfStep *step = qsf_build_step(b, QSF_OP_ROUTE, "route", logits, route);
    if (step != NULL) step->u.route = r;
    return route;
}

/* ---- routed experts ---- */

/* The tensors of all experts of a block; in[1] is NULL without a gate, and in[0] if both are
 * in one tensor. */
typedef struct Tensors {
    const QsfTensor *in[2], *out;
    bool fused;
} Tensors;

static Tensors find_tensors(QsfBuilder *b, const QsfMoeSpec *s, uint32_t cols, uint32_t rows,
                            QsfExpertsStep *e) {
    char buf[NAME_BYTES];
    Tensors t = { .fused = qsf_build_has(b, name(s, "gate_up", "weight", buf)) };
    const uint64_t ne[2] = { s->ffn, s->n_expert }, ne_out[2] = { rows, s->n_expert };
    unsigned n = 0;
    if (t.fused) {
        t.in[0] = t.in[1] = qsf_build_matrices(b, QSF_REQUIRED, cols, 2ull * s->ffn, s->n_expert,
                                               name(s, "gate_up", "weight", buf));
    } else {
        if (s->gated) {
            e->bias_in[n] = qsf_build_param_nd(b, QSF_OPTIONAL, ne, 2, name(s, "gate", "bias", buf));
            t.in[n++] = qsf_build_matrices(b, QSF_REQUIRED, cols, s->ffn, s->n_expert,
                                           name(s, "gate", "weight", buf));
        }
        e->bias_in[n] = qsf_build_param_nd(b, QSF_OPTIONAL, ne, 2, name(s, "up", "bias", buf));
        t.in[n] = qsf_build_matrices(b, QSF_REQUIRED, cols, s->ffn, s->n_expert,
                                     name(s, "up", "weight", buf));
    }
    e->bias_out = qsf_build_param_nd(b, QSF_OPTIONAL, ne_out, 2, name(s, "down", "bias", buf));
    t.out = qsf_build_matrices(b, QSF_REQUIRED, s->ffn, rows, s->n_expert, name(s, "down", "weight", buf));
    return t;
}

static void add_units(QsfBuilder *b, const QsfMoeSpec *s, const Tensors *t, QsfExpertsStep *e) {
    const uint32_t hidden = (uint32_t)t->out->ne[1];
    e->unit = b->p.n_units;
    for (uint32_t i = 0; i < s->n_expert && !qsf_build_failed(b); i++) {
        QsfUnitSpec in = { .matmul_class = QSF_MATMUL_FFN_IN,
                           .on_demand = true,
                           .paired = s->gated,
                           .expert = i,
                           .n_expert = s->n_expert,
                           .n_used = s->n_used };
        QsfUnitSpec out = in;
        for (unsigned k = 0; k < (s->gated ? 2u : 1u); k++) {
            in.tensor[k] = t->in[k];
            in.rows[k] = s->ffn;
            in.row0[k] = t->fused ? ((uint64_t)i * 2 + k) * s->ffn : (uint64_t)i * s->ffn;
            in.n++;
        }
        out.matmul_class = QSF_MATMUL_FFN_OUT;
        out.paired = false;
        out.tensor[out.n++] = t->out;
        out.rows[0] = hidden;
        out.row0[0] = (uint64_t)i * hidden;
        (void)qsf_build_unit(b, &in);
        (void)qsf_build_unit(b, &out);
    }
}

void qsf_build_routed(QsfBuilder *b, const QsfMoeSpec *s, QsfSlice in, QsfSlice out) {
    const QsfSlice route = build_route(b, s, in);
    QsfExpertsStep e = { .n_expert = s->n_expert,
                         .n_used = s->n_used,
                         .ffn = s->ffn,
                         .act = s->routed_act.kind != QSF_ACT_NONE ? s->routed_act
                                                                   : (QsfActStep){ .kind = s->act },
                         .bias_in = { QSF_NONE, QSF_NONE },
                         .bias_out = QSF_NONE,
                         .scale_input = s->scale_input };
    const Tensors t = find_tensors(b, s, in.width, out.width, &e);
    if (qsf_build_failed(b)) return;
    add_units(b, s, &t, &e);
    const QsfSlice work = qsf_build_buffer(b, 2 * ((s->ffn + 15u) & ~15u)),
                   gathered = qsf_build_buffer(b, in.width > out.width ? in.width : out.width);
    QsfStep *step = qsf_build_step(b, QSF_OP_EXPERTS, "experts", in, out);
    if (step == NULL) return;
    step->in2 = route;
    step->out[1] = work;
    step->out[2] = gathered;
    step->u.experts = e;
}

/* ---- the shared expert ---- */

/* Returns the logit of the gate, or no slice. It is read before the input is overwritten. */
static QsfSlice shared_gate(QsfBuilder *b, QsfSlice in) {
    const QsfTensor *t;
    if (!qsf_build_has(b, "ffn_gate_inp_shexp.weight")) return qsf_slice_none();
    t = qsf_build_matrix(b, QSF_REQUIRED, in.width, 1, "ffn_gate_inp_shexp.weight");
    const QsfSlice y = qsf_build_buffer(b, 1);
    if (t == NULL) return y;
    qsf_build_linear(b, QSF_MATMUL_FFN_IN, in, &(QsfMatrixSpec){ "ffn_gate_inp_shexp", y, QSF_REQUIRED }, 1,
                     QSF_ACT_SIGMOID);
    return y;
}

void qsf_build_shared_expert(QsfBuilder *b, const QsfMoeSpec *s, QsfSlice in, QsfSlice out) {
    const QsfSlice weight = shared_gate(b, in);
    const QsfFfnSpec f = { .n = s->shared_ffn,
                           .act = s->act,
                           .gated = s->shared_gated,
                           .shared = !s->dense_shared,
                           .parts = s->shared_parts,
                           .with = s->shared_act };
    qsf_build_ffn(b, &f, in, out);
    if (weight.buf == QSF_NONE) return;
    (void)qsf_build_step(b, QSF_OP_MUL, "shared_gate", weight, out);
}

/* They read the sum of the others (ggml-org/llama.cpp). */
static void add_adjugate(QsfBuilder *b, const QsfMoeSpec *s, QsfSlice sum) {
    const QsfSlice y = qsf_build_buffer(b, sum.width);
    const QsfMoeSpec a = qsf_moe_adjugate(b, s);
    qsf_build_routed(b, &a, sum, y);
    qsf_build_scale(b, "expert_group_scale", y, s->group_scale);
    qsf_build_add(b, "adjugate", y, sum);
}

void qsf_build_moe(QsfBuilder *b, const QsfMoeSpec *spec, QsfSlice in, QsfSlice out) {
    if (qsf_build_failed(b)) return;
    QsfMoeSpec s = *spec;
    const bool same = in.buf == out.buf;
    const QsfSlice routed = same || s.shared_ffn > 0 ? qsf_build_buffer(b, in.width) : out;
    if (s.group > 0) s.router_logits = router_logits(b, &s, in); /* of both kinds of experts */
    qsf_build_routed(b, &s, in, routed);
    if (s.group > 0) add_adjugate(b, &s, routed);
    if (s.shared_ffn > 0) {
        qsf_build_shared_expert(b, &s, in, out);
        qsf_build_add(b, "shared", routed, out);
        qsf_build_scale(b, "experts_scale", out, s.sum_scale);
    } else if (same) {
        (void)qsf_build_step(b, QSF_OP_COPY, "experts_out", routed, out);
    }
}
