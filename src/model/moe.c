/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keys of experts. Names: ggml-org/llama.cpp gguf-py. */
#include "src/model/moe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/file/model_keys.h"

/* ---- metadata ---- */

/* Are the matrices of each expert tensors of their own? */
static bool is_separate(const QsfBuilder *b) { return qsf_build_has(b, "ffn_up.0.weight"); }

/* Checks the width that the tensors have against the keys. */
static uint32_t expert_width(QsfBuilder *b) {
    const char *fused = "ffn_gate_up_exps.weight", *name = "ffn_up_exps.weight";
    const QsfHparams *hp = qsf_build_hp(b);
    const bool is_fused = qsf_build_has(b, fused);
    const uint64_t rows = is_separate(b) ? qsf_build_rows_of(b, "ffn_up.0.weight")
                                         : qsf_build_rows_of(b, is_fused ? fused : name) / (is_fused ? 2 : 1);
    const uint32_t dense = b->block < b->p.n_blocks ? hp->block[b->block].ffn : 0,
                   own = qsf_build_u32(b, "expert_feed_forward_length", 0, 0, QSF_MAX_FFN);
    if (qsf_build_failed(b)) return 0;
    if (rows == 0) {
        qsf_build_fail(b, "tensor 'blk.%" PRIu32 ".%s' is missing", b->block, name);
        return 0;
    }
    if (rows == own || rows == dense || (own == 0 && rows <= dense)) return (uint32_t)rows;
    (void)qsf_keys_name(&b->keys, "expert_feed_forward_length");
    qsf_build_fail(b,
                   "the experts of block %" PRIu32 " have %" PRIu64 " rows, but metadata key '%s' is %" PRIu32
                   " and '%s.feed_forward_length' %" PRIu32,
                   b->block, rows, b->keys.key, own, b->keys.arch, dense);
    return 0;
}

/* Rows of the shared expert's first matrices. */
static uint64_t shared_rows(QsfBuilder *b, const QsfMoeRow *row) {
    const uint64_t rows = qsf_build_rows_of(b, row->dense_shared ? "ffn_up.weight" : "ffn_up_shexp.weight");
    if (row->shared_gate && !qsf_build_maybe(b, "ffn_gate_shexp.weight")) {
        qsf_build_unused(b, "ffn_up_shexp.weight");
        qsf_build_unused(b, "ffn_down_shexp.weight");
        return 0;
    }
    return rows == 0 && row->shared_parts ? qsf_build_rows_of(b, "ffn_gate_shexp.weight") : rows;
}

static uint32_t shared_width(QsfBuilder *b, uint32_t ffn, const QsfMoeRow *row) {
    const uint64_t rows = shared_rows(b, row);
    const uint32_t own = qsf_build_u32(b, "expert_shared_feed_forward_length", 0, 0, QSF_MAX_FFN),
                   n = qsf_build_u32(b, "expert_shared_count", 0, 0, QSF_MAX_EXPERTS);
    const QsfHparams *hp = qsf_build_hp(b);
    const uint32_t block_ffn = b->block < b->p.n_blocks ? hp->block[b->block].ffn : 0;
    const bool skipped = row->shared_gate && !qsf_build_has(b, "ffn_gate_shexp.weight");
    if (rows == 0 && !skipped &&
        (qsf_build_has(b, "ffn_gate_shexp.weight") || qsf_build_has(b, "ffn_down_shexp.weight")))
        qsf_build_require(b, "ffn_up_shexp.weight");
    if (qsf_build_failed(b) || rows == 0) return 0;
    if (rows == own || rows == (uint64_t)n * ffn || (rows == (uint64_t)n * own) || (own == 0 && n == 0) ||
        rows == block_ffn)
        if (rows <= QSF_MAX_FFN) return (uint32_t)rows;
    (void)qsf_keys_name(&b->keys, "expert_shared_feed_forward_length");
    qsf_build_fail(b,
                   "the shared expert of block %" PRIu32 " has %" PRIu64
                   " rows, but metadata key '%s' is %" PRIu32 " and '%s.expert_shared_count' %" PRIu32
                   " (of %" PRIu32 " rows)",
                   b->block, rows, b->keys.key, own, b->keys.arch, n, ffn);
    return 0;
}

static void read_groups(QsfBuilder *b, QsfMoeSpec *s) {
    b->keys.bound = "expert_count";
    s->n_groups = qsf_build_u32(b, "expert_group_count", 0, 0, s->n_expert);
    if (s->n_groups < 2 || qsf_build_failed(b)) return;
    if (s->n_expert % s->n_groups != 0) {
        qsf_build_check(b, qsf_keys_bad(&b->keys, "does not divide expert_count"));
        return;
    }
    b->keys.bound = "expert_group_count";
    s->n_groups_used = qsf_build_need_u32(b, "expert_group_used_count", 1, s->n_groups);
    if (!qsf_build_failed(b) && s->n_expert / s->n_groups * s->n_groups_used < s->n_used)
        qsf_build_check(b, qsf_keys_bad(&b->keys, "is too small for expert_used_count"));
    s->group_scores = qsf_build_u32(b, QSF_KEY_GROUP_SCORES, 2, 1, 2);
}

/* The activation of the current block, from a key with a limit for each block. */
static QsfActStep limit_of(QsfBuilder *b, const char *name) {
    const QsfHparams *hp = qsf_build_hp(b);
    float all[QSF_MAX_LAYERS] = { 0 };
    if (qsf_build_failed(b)) return (QsfActStep){ 0 };
    qsf_build_check(b, qsf_keys_f32_each(&b->keys, name, 0, 0, 1e6f, hp->n_layers + hp->n_extra, all));
    const float limit = all[b->block];
    return (QsfActStep){ .kind = limit > 1e-6f ? QSF_ACT_SWIGLU_LIMIT : QSF_ACT_NONE, .a = limit };
}

static void read_adjugate(QsfBuilder *b, QsfMoeSpec *s) {
    s->group_scale = qsf_build_need_f32(b, "expert_group_scale", 0, 1e6f);
    s->group = qsf_build_need_u32(b, "experts_per_group", 1, s->n_expert);
    if (!qsf_build_failed(b) && s->n_expert % s->group != 0)
        qsf_build_check(b, qsf_keys_bad(&b->keys, "does not divide expert_count"));
}

/* Returns the spec of the adjugate experts (s->group > 0), whose router is that of s. */
static QsfMoeSpec moe_adjugate(QsfBuilder *b, const QsfMoeSpec *s) {
    QsfMoeSpec a = *s;
    a.tensors = "chexps";
    a.n_expert = s->n_expert / s->group;
    if (a.n_used > a.n_expert) a.n_used = a.n_expert;
    a.ffn = qsf_build_u32(b, "expert_chunk_feed_forward_length", 0, 0, QSF_MAX_FFN);
    if (a.ffn == 0) a.ffn = qsf_build_hp(b)->head_dim; /* ggml-org/llama.cpp src/models/grovemoe.cpp */
    return a;
}

static QsfGating read_gating(QsfBuilder *b, const QsfMoeRow *row) {
    static const char *const name = "expert_gating_func";
    const QsfHparams *hp = qsf_build_hp(b);
    const bool large = (hp->n_layers == 47 || hp->n_layers == 48) && hp->n_vocab == 154880;
    const QsfGating usual = row->sigmoid_large && large ? QSF_GATING_SIGMOID : row->gating;
    if (row->fixed_gating) return row->gating;
    const uint32_t gating = row->needs_gating ? qsf_build_need_u32(b, name, 1, QSF_GATING_N - 1)
                                              : qsf_build_u32(b, name, usual, 0, QSF_GATING_N - 1);
    return gating == QSF_GATING_NONE ? usual : (QsfGating)gating;
}

void qsf_moe_read(QsfBuilder *b, const QsfMoeRow *row, QsfMoeSpec *s) {
    *s = (QsfMoeSpec){ .tensors = "exps",
                       .act = row->act,
                       .gated = !row->not_gated,
                       .shared_parts = row->shared_parts,
                       .scale_input = row->scale_input,
                       .dense_shared = row->dense_shared,
                       .sum_scale = row->sum_scale > 0 ? row->sum_scale : 1,
                       .gating = row->gating,
                       .router_in = qsf_slice_none(),
                       .router_logits = qsf_slice_none() };
    if (qsf_build_failed(b)) return;
    qsf_build_check(b, qsf_keys_need_u32(&b->keys, "expert_count", 1, QSF_MAX_EXPERTS, &s->n_expert));
    if (qsf_build_failed(b)) return;
    b->keys.bound = "expert_count";
    qsf_build_check(b, qsf_keys_need_u32(&b->keys, "expert_used_count", 1, s->n_expert, &s->n_used));
    s->gating = read_gating(b, row);
    s->scale = qsf_build_f32(b, "expert_weights_scale", 1, 0, 1e6f);
    if (!(s->scale > 0)) s->scale = 1; /* written by some converters for "none" */
    s->norm = row->norm == QSF_MOE_NORM_BY_KEY ? qsf_build_bool(b, "expert_weights_norm", false)
                                               : row->norm == QSF_MOE_NORM_ALWAYS;
    read_groups(b, s);
    s->shared_gated = s->gated;
    if (row->maybe_gated && s->gated) {
        s->gated = qsf_build_has(b, "ffn_gate_up_exps.weight") || qsf_build_has(b, "ffn_gate.0.weight") ||
                   qsf_build_maybe(b, "ffn_gate_exps.weight");
        s->shared_gated = qsf_build_has(b, row->dense_shared ? "ffn_gate.weight" : "ffn_gate_shexp.weight");
    }
    s->ffn = expert_width(b);
    s->shared_ffn = shared_width(b, s->ffn, row);
    if (row->adjugate) read_adjugate(b, s);
    if (!row->limits) return;
    if (s->gated) s->routed_act = limit_of(b, "swiglu_clamp_exp");
    if (s->shared_gated) s->shared_act = limit_of(b, "swiglu_clamp_shexp");
}

QsfActStep qsf_moe_dense_act(QsfBuilder *b, const QsfMoeRow *row) {
    const bool has = row != NULL && row->limits && qsf_build_has(b, "ffn_gate.weight");
    return has ? limit_of(b, "swiglu_clamp_shexp") : (QsfActStep){ 0 };
}

bool qsf_moe_has(QsfBuilder *b, const QsfMoeRow *row) {
    if (row == NULL || qsf_build_failed(b)) return false;
    if (row->optional && qsf_build_u32(b, "expert_count", 0, 0, QSF_MAX_EXPERTS) == 0) return false;
    if (row->blocks == QSF_MOE_BLOCKS_ALL) return true;
    /* With a router or with experts: the error then names the tensor that is missing. */
    if (row->blocks == QSF_MOE_BLOCKS_TENSORS)
        return qsf_build_has(b, "ffn_gate_inp.weight") || qsf_build_has(b, "ffn_down_exps.weight");
    if (b->block < qsf_build_u32(b, "leading_dense_block_count", 0, 0, QSF_MAX_LAYERS)) return false;
    if (row->blocks == QSF_MOE_BLOCKS_LEADING) return true;
    const uint32_t step = qsf_build_u32(b, "interleave_moe_layer_step", 1, 1, QSF_MAX_LAYERS);
    return !qsf_build_failed(b) && (b->block + 1) % step == 0;
}

/* --- routers, routed experts and shared experts. Names of tensors: ggml-org/llama.cpp gguf-py --- */

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
 * in one tensor. separate: all are NULL, because each expert has its own. */
typedef struct Tensors {
    const QsfTensor *in[2], *out;
    bool fused, separate;
} Tensors;

/* The matrix of one expert: ffn_gate.7.weight (GGUF files of early 2024; QSF files). */
static const QsfTensor *own_matrix(QsfBuilder *b, const char *part, uint32_t expert, uint32_t cols,
                                   uint32_t rows) {
    char buf[NAME_BYTES];
    snprintf(buf, sizeof buf, "ffn_%s.%" PRIu32 ".weight", part, expert);
    return qsf_build_matrices(b, QSF_REQUIRED, cols, rows, 1, buf);
}

static Tensors find_tensors(QsfBuilder *b, const QsfMoeSpec *s, uint32_t cols, uint32_t rows,
                            QsfExpertsStep *e) {
    char buf[NAME_BYTES];
    Tensors t = { .separate = !is_adjugate(s) && is_separate(b) };
    t.fused = !t.separate && qsf_build_has(b, name(s, "gate_up", "weight", buf));
    const uint64_t ne[2] = { s->ffn, s->n_expert }, ne_out[2] = { rows, s->n_expert };
    unsigned n = 0;
    if (t.fused) {
        t.in[0] = t.in[1] = qsf_build_matrices(b, QSF_REQUIRED, cols, 2ull * s->ffn, s->n_expert,
                                               name(s, "gate_up", "weight", buf));
    } else {
        if (s->gated) {
            e->bias_in[n] = qsf_build_param_nd(b, QSF_OPTIONAL, ne, 2, name(s, "gate", "bias", buf));
            if (!t.separate)
                t.in[n] = qsf_build_matrices(b, QSF_REQUIRED, cols, s->ffn, s->n_expert,
                                             name(s, "gate", "weight", buf));
            n++;
        }
        e->bias_in[n] = qsf_build_param_nd(b, QSF_OPTIONAL, ne, 2, name(s, "up", "bias", buf));
        if (!t.separate)
            t.in[n] = qsf_build_matrices(b, QSF_REQUIRED, cols, s->ffn, s->n_expert,
                                         name(s, "up", "weight", buf));
    }
    e->bias_out = qsf_build_param_nd(b, QSF_OPTIONAL, ne_out, 2, name(s, "down", "bias", buf));
    if (t.separate) return t;
    t.out = qsf_build_matrices(b, QSF_REQUIRED, s->ffn, rows, s->n_expert, name(s, "down", "weight", buf));
    return t;
}

static void add_units(QsfBuilder *b, const QsfMoeSpec *s, const Tensors *t, uint32_t cols, uint32_t hidden,
                      QsfExpertsStep *e) {
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
            in.tensor[k] = t->separate ? own_matrix(b, s->gated && k == 0 ? "gate" : "up", i, cols, s->ffn)
                                       : t->in[k];
            in.rows[k] = s->ffn;
            in.row0[k] = t->separate ? 0 : t->fused ? ((uint64_t)i * 2 + k) * s->ffn : (uint64_t)i * s->ffn;
            in.n++;
        }
        out.matmul_class = QSF_MATMUL_FFN_OUT;
        out.paired = false;
        out.tensor[out.n++] = t->separate ? own_matrix(b, "down", i, s->ffn, hidden) : t->out;
        out.rows[0] = hidden;
        out.row0[0] = t->separate ? 0 : (uint64_t)i * hidden;
        if (qsf_build_failed(b)) return;
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
    add_units(b, s, &t, in.width, out.width, &e);
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
    const QsfMoeSpec a = moe_adjugate(b, s);
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
