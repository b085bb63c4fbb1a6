/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keys of experts. Names: ggml-org/llama.cpp gguf-py. */
#include "src/model/moe.h"

#include <inttypes.h>

#include "src/file/model_keys.h"

/* ---- metadata ---- */

/* Checks the width that the tensors have against the keys. */
static uint32_t expert_width(QsfBuilder *b) {
    const char *fused = "ffn_gate_up_exps.weight", *name = "ffn_up_exps.weight";
    const QsfHparams *hp = qsf_build_hp(b);
    const bool is_fused = qsf_build_has(b, fused);
    const uint64_t rows = qsf_build_rows_of(b, is_fused ? fused : name) / (is_fused ? 2 : 1);
    const uint32_t dense = b->block < hp->n_layers ? hp->block[b->block].ffn : 0,
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
    const uint32_t block_ffn = b->block < hp->n_layers ? hp->block[b->block].ffn : 0;
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

QsfMoeSpec qsf_moe_adjugate(QsfBuilder *b, const QsfMoeSpec *s) {
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
        s->gated = qsf_build_has(b, "ffn_gate_up_exps.weight") || qsf_build_maybe(b, "ffn_gate_exps.weight");
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
    if (row->blocks == QSF_MOE_BLOCKS_TENSORS) return qsf_build_has(b, "ffn_gate_inp.weight");
    if (b->block < qsf_build_u32(b, "leading_dense_block_count", 0, 0, QSF_MAX_LAYERS)) return false;
    if (row->blocks == QSF_MOE_BLOCKS_LEADING) return true;
    const uint32_t step = qsf_build_u32(b, "interleave_moe_layer_step", 1, 1, QSF_MAX_LAYERS);
    return !qsf_build_failed(b) && (b->block + 1) % step == 0;
}
