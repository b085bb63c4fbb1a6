/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers of a dense transformer: windows, scales, rotation. */
#include <math.h>

#include "src/model/family/dense.h"
#include "src/model/rope.h"

static bool uses_alibi(const QsfDenseModel *m) {
    return m->d->alibi && (m->d->alibi_blocks == 0 || m->d->alibi_blocks == m->hp->n_layers);
}

/* ---- windows ---- */

/* Reads one flag per block, also for those that are not run. */
static void read_flags(QsfDenseModel *m, const char *name, uint32_t fallback, bool *out) {
    QsfBuilder *b = m->b;
    uint32_t flag[QSF_MAX_LAYERS] = { 0 };
    if (qsf_build_failed(b)) return;
    qsf_build_check(b, qsf_keys_u32_each(&b->keys, name, fallback, 0, 1, m->hp->n_layers + m->hp->n_extra,
                                         flag));
    for (uint32_t i = 0; i < b->p.n_blocks; i++) out[i] = flag[i] != 0;
}

static void read_windows(QsfDenseModel *m) {
    static const char *const pattern = "attention.sliding_window_pattern";
    QsfBuilder *b = m->b;
    const QsfDense *d = m->d;
    if (d->window_period == 0 || (d->window_blocks != 0 && d->window_blocks != m->hp->n_layers)) return;
    const uint32_t low = (d->window_needed && !d->window_zero) || d->window_default > 0 ? 1 : 0;
    m->window = d->window_needed
                    ? qsf_build_need_u32(b, "attention.sliding_window", low, UINT32_MAX)
                    : qsf_build_u32(b, "attention.sliding_window", d->window_default, low, UINT32_MAX);
    if (m->window == 0 || qsf_build_failed(b)) return;
    if (d->window_size != 0) m->window = d->window_size;
    if (qsf_keys_is_array(&b->keys, pattern)) {
        read_flags(m, pattern, 0, m->has_window);
        return;
    }
    const uint32_t period = d->pattern_needed
                                ? qsf_build_need_u32(b, pattern, 1, QSF_MAX_LAYERS)
                                : qsf_build_u32(b, pattern, d->window_period, 1, QSF_MAX_LAYERS);
    for (uint32_t i = 0; i < b->p.n_blocks; i++)
        m->has_window[i] = i % period != (d->window_not_first ? 0 : period - 1);
}

/* ---- scales ---- */

/* embedding_scale, residual_scale, attention.scale, and logit_scale, which divides. */
static void read_granite_scales(QsfDenseModel *m) {
    QsfBuilder *b = m->b;
    m->embed_scale = qsf_build_f32(b, "embedding_scale", 1, 1e-6f, 1e6f);
    m->residual_scale = qsf_build_f32(b, "residual_scale", 1, 1e-6f, 1e6f);
    m->logit_scale = 1.0f / qsf_build_need_f32(b, "logit_scale", 1e-6f, 1e6f);
    const float scale = qsf_build_f32(b, "attention.scale", 0, 0, 1e6f);
    if (scale > 0) m->score_scale = scale;
}

/* 0 means "none" (ggml-org/llama.cpp). */
static void read_logit_scale(QsfDenseModel *m) {
    const float scale = m->d->logit_scale == QSF_USE_MAYBE
                            ? qsf_build_f32(m->b, "logit_scale", 1, -1e6f, 1e6f)
                            : qsf_build_need_f32(m->b, "logit_scale", -1e6f, 1e6f);
    if (fpclassify(scale) != FP_ZERO) m->logit_scale = scale;
}

static void read_score_scale(QsfDenseModel *m) {
    const QsfHparams *hp = m->hp;
    if (m->d->scores_27b && (hp->n_layers == 46 || hp->n_layers == 62))
        m->score_scale = 1.0f / sqrtf((float)hp->hidden / (float)hp->n_heads);
    if (m->d->scores_by_dim) m->score_scale = 1.0f / (float)hp->head_dim;
}

static void read_limits(QsfDenseModel *m) {
    QsfBuilder *b = m->b;
    const QsfDense *d = m->d;
    if (d->score_cap > 0) m->score_cap = qsf_build_f32(b, "attn_logit_softcapping", d->score_cap, 0, 1e6f);
    if (d->logit_cap > 0) m->logit_cap = qsf_build_f32(b, "final_logit_softcapping", d->logit_cap, 0, 1e6f);
    if (d->clamp_qkv == QSF_USE_MAYBE) m->clamp = qsf_build_f32(b, "attention.clamp_kqv", 0, 0, 1e6f);
    if (d->clamp_qkv == QSF_USE_ALWAYS) m->clamp = qsf_build_need_f32(b, "attention.clamp_kqv", 0, 1e6f);
}

static void read_scales(QsfDenseModel *m) {
    QsfBuilder *b = m->b;
    const QsfDense *d = m->d;
    read_score_scale(m);
    if (d->embed_sqrt) m->embed_scale = sqrtf((float)m->hp->hidden);
    if (d->logit_scale != QSF_USE_NEVER) read_logit_scale(m);
    if (d->granite_scales) read_granite_scales(m);
    if (d->value_scale) {
        const float scale = qsf_build_f32(b, "attention.value_scale", 1, 0, 1e6f);
        if (scale > 0) m->value_scale = scale;
    }
    read_limits(m);
    if (uses_alibi(m))
        m->slopes = qsf_build_alibi(b,
                                    qsf_build_f32(b, "attention.max_alibi_bias", d->alibi_default, 0, 1e3f));
}

/* ---- rotation ---- */

/* Returns how blocks with a window rotate. */
static QsfWindowRope window_kind(QsfDenseModel *m) {
    const QsfWindowRope kind = m->d->window_rope;
    if (m->window == 0 || qsf_build_failed(m->b)) return QSF_WINDOW_ROPE_SAME;
    if (kind != QSF_WINDOW_ROPE_BY_KEY) return kind;
    return qsf_keys_has(&m->b->keys, "rope.freq_base_swa") ? QSF_WINDOW_ROPE_BASE : QSF_WINDOW_ROPE_SAME;
}

static void make_window_rope(QsfDenseModel *m, QsfWindowRope kind, QsfRopeSpec *spec) {
    static const char *const own = "rope.freq_base_swa";
    const bool if_there = kind == QSF_WINDOW_ROPE_BASE || kind == QSF_WINDOW_ROPE_PLAIN_BASE;
    const uint32_t n = m->hp->head_dim;
    spec->plain = kind != QSF_WINDOW_ROPE_BASE;
    if (kind == QSF_WINDOW_ROPE_OWN || (if_there && qsf_keys_has(&m->b->keys, own))) spec->base_key = own;
    spec->halve = false;
    if (qsf_keys_has(&m->b->keys, "rope.dimension_count_swa"))
        spec->n_rot = qsf_build_need_u32(m->b, "rope.dimension_count_swa", 2, n);
    m->window_rope = qsf_rope_table(m->b, spec);
}

static void make_ropes(QsfDenseModel *m) {
    const QsfDense *d = m->d;
    QsfRopeSpec spec = { .kind = uses_alibi(m) && d->alibi_blocks != 0 ? QSF_ROPE_NONE : d->rope,
                         .head_dim = m->hp->head_dim,
                         .base_key = "rope.freq_base",
                         .base = 10000.0f,
                         .halve = d->half_rope,
                         .sections = d->sections,
                         .alpha = d->rope_alpha };
    if (d->fixed_rope) {
        spec.base_key = NULL;
        spec.n_rot = spec.head_dim;
        spec.plain = true;
    }
    m->rope = m->window_rope = qsf_rope_table(m->b, &spec);
    const QsfWindowRope kind = window_kind(m);
    if (kind != QSF_WINDOW_ROPE_SAME) make_window_rope(m, kind, &spec);
}

/* As QsfDense.rope_period says. */
static bool rotates_by_period(const QsfDenseModel *m, uint32_t block) {
    const uint32_t n = m->d->rope_period;
    if (n == 0) return true;
    if (!m->d->rope_not_first) return block % n != n - 1;
    return m->window == 0 || m->hp->n_layers == n || block % n != 0;
}

static bool rotates(const QsfDenseModel *m, uint32_t block, uint32_t n_leading) {
    const bool all = m->window == 0 || m->has_window[block];
    switch (m->d->rope_blocks) {
    case QSF_ROPE_BLOCKS_WINDOW: return all;
    case QSF_ROPE_BLOCKS_WINDOW_OR_LEADING:
        return all || block < n_leading || block >= m->hp->n_layers; /* those of next tokens all do */
    default: return rotates_by_period(m, block);
    }
}

static void find_rotated(QsfDenseModel *m) {
    QsfBuilder *b = m->b;
    const uint32_t leading = m->d->rope_blocks == QSF_ROPE_BLOCKS_WINDOW_OR_LEADING
                                 ? qsf_build_u32(b, "leading_dense_block_count", 0, 0, QSF_MAX_LAYERS)
                                 : 0;
    for (uint32_t i = 0; i < b->p.n_blocks; i++) m->no_rope[i] = !rotates(m, i, leading);
    if (m->d->rope_blocks != QSF_ROPE_BLOCKS_PATTERN) return;
    read_flags(m, "attention.rope_pattern", 1, m->no_rope);
    for (uint32_t i = 0; i < b->p.n_blocks; i++) m->no_rope[i] = !m->no_rope[i];
}

void qsf_dense_read(QsfDenseModel *m) {
    read_windows(m);
    read_scales(m);
    make_ropes(m);
    find_rotated(m);
}
