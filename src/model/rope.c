/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Frequencies of rotary position embeddings (Su et al. 2021, RoFormer), with linear scaling (Chen et al.
 * 2023) and YaRN (Peng et al. 2023). Key names and defaults: ggml-org/llama.cpp src/llama-model.cpp,
 * src/llama-context.cpp. */
#include "src/model/rope.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/file/model_keys.h"

#define PI 3.14159265358979323846

typedef enum Scaling { SCALING_NONE, SCALING_LINEAR, SCALING_YARN, SCALING_LONGROPE } Scaling;

typedef struct Scale {
    Scaling kind;
    double factor;       /* positions are divided by it */
    double original_ctx; /* of YaRN, and where long factors begin */
    double beta_fast, beta_slow, ext_factor;
    bool truncate;         /* the ends of YaRN's ramp are whole pairs */
    double attn_factor;    /* of cos and sin, beside YaRN's own */
    double log_multiplier; /* rope.scaling.yarn_log_multiplier; 0 = absent */
} Scale;

static Scaling scaling_kind(QsfBuilder *b) {
    const char *type = NULL;
    /* Older files have the factor alone. */
    qsf_build_check(b, qsf_keys_str(&b->keys, "rope.scaling.type", "linear", &type));
    if (qsf_build_failed(b)) return SCALING_NONE;
    if (strcmp(type, "none") == 0) return SCALING_NONE;
    if (strcmp(type, "linear") == 0) return SCALING_LINEAR;
    if (strcmp(type, "yarn") == 0) return SCALING_YARN;
    if (strcmp(type, "longrope") == 0) return SCALING_LONGROPE;
    qsf_build_fail(b, "RoPE scaling of type '%s' (%s) is not supported, only linear, yarn and longrope are",
                   type, b->keys.key);
    return SCALING_NONE;
}

static double read_factor(QsfBuilder *b) {
    static const char *const usual = "rope.scaling.factor", *const old = "rope.scale_linear";
    const char *name = !qsf_keys_has(&b->keys, usual) && qsf_keys_has(&b->keys, old) ? old : usual;
    float f = qsf_build_f32(b, name, 1.0f, 0.0f, 1e6f);
    if (fpclassify(f) == FP_ZERO) f = 1.0f; /* 0 means "none" */
    if (f < 1e-6f) qsf_build_check(b, qsf_keys_bad(&b->keys, "is out of range"));
    return (double)f;
}

static Scale read_scale(QsfBuilder *b) {
    Scale s = { .kind = scaling_kind(b), .factor = 1, .attn_factor = 1 };
    if (qsf_build_failed(b)) return s;
    const QsfHparams *hp = qsf_build_hp(b);
    s.original_ctx = qsf_build_u32(b, "rope.scaling.original_context_length", hp->n_ctx_train, 1, 1u << 28);
    s.attn_factor = (double)qsf_build_f32(b, "rope.scaling.attn_factor", 1.0f, 1e-6f, 1e6f);
    if (s.kind == SCALING_NONE) return s;
    s.factor = read_factor(b);
    s.log_multiplier = (double)qsf_build_f32(b, "rope.scaling.yarn_log_multiplier", 0.0f, 0.0f, 1e6f);
    if (s.kind != SCALING_YARN) return s;
    s.ext_factor = (double)qsf_build_f32(b, "rope.scaling.yarn_ext_factor", 1.0f, 0.0f, 1e6f);
    s.beta_fast = (double)qsf_build_f32(b, "rope.scaling.yarn_beta_fast", 32.0f, 1e-6f, 1e6f);
    s.beta_slow = (double)qsf_build_f32(b, "rope.scaling.yarn_beta_slow", 1.0f, 1e-6f, 1e6f);
    s.truncate = qsf_build_bool(b, QSF_KEY_YARN_TRUNCATE, true);
    return s;
}

/* Index of the pair that turns beta times over the original context. */
static double pair_of(double beta, double base, uint32_t n_rot, double ctx) {
    return n_rot * log(ctx / (beta * 2 * PI)) / (2 * log(base));
}

/* Share of the unscaled frequency in pair i. */
static double yarn_ramp(const Scale *s, double base, uint32_t n_rot, uint32_t i) {
    double low = pair_of(s->beta_fast, base, n_rot, s->original_ctx);
    double high = pair_of(s->beta_slow, base, n_rot, s->original_ctx);
    if (s->truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = low > 0 ? low : 0;
    high = high < n_rot - 1 ? high : n_rot - 1;
    double y = ((double)i - low) / fmax(0.001, high - low);
    return 1 - fmin(1, fmax(0, y));
}

static double frequency(const Scale *s, double base, uint32_t n_rot, uint32_t i) {
    const double w = pow(base, -2.0 * i / n_rot), scaled = w / s->factor;
    if (s->kind != SCALING_YARN) return scaled;
    const double mix = yarn_ramp(s, base, n_rot, i) * s->ext_factor;
    return scaled * (1 - mix) + w * mix;
}

/* 1 + 0.1 * multiplier * ln(factor) */
static double log_factor(const Scale *s, double multiplier) {
    return s->factor > 1 ? 1 + 0.1 * multiplier * log(s->factor) : 1;
}

static double magnitude(const QsfRopeSpec *spec, const Scale *s) {
    if (s->kind != SCALING_YARN) return s->attn_factor;
    if (spec->unit_magnitude && s->log_multiplier > 0) return s->attn_factor;
    return s->attn_factor * log_factor(s, 1) / log_factor(s, s->log_multiplier);
}

/* What scores are multiplied with, squared. Models of DeepSeek's line scale them by the factor whatever the
 * kind of scaling is; only with YaRN do cos and sin have a share of it (ggml-org/llama.cpp
 * src/models/deepseek2.cpp). */
static double score_factor(const QsfRopeSpec *spec, const Scale *s) {
    const double share = s->kind == SCALING_YARN ? 1 : log_factor(s, 1);
    return magnitude(spec, s) * share * log_factor(s, s->log_multiplier);
}

/* Divides the frequencies by the factors in a tensor, each a positive number, if there is one. */
static void apply_factors(QsfBuilder *b, const char *name, uint32_t n, double *freq) {
    const uint32_t block = b->block;
    float *factor = calloc(n + 1u, sizeof *factor);
    if (factor == NULL) qsf_build_check(b, qsf_err_memory(b->err, "RoPE factors"));
    qsf_build_no_block(b);
    const bool there = factor != NULL && qsf_build_read(b, QSF_OPTIONAL, n, name, factor);
    qsf_build_block(b, block);
    for (uint32_t i = 0; there && i < n; i++) {
        if (!isfinite(factor[i]) || factor[i] <= 0.0f)
            qsf_build_fail(b, "tensor '%s' contains a factor that is not positive at byte offset %" PRIu64,
                           name, b->p.param[b->p.n_params - 1].tensor->offset + i * sizeof *factor);
        freq[i] /= (double)factor[i];
    }
    free(factor);
}

static bool has_two_factors(QsfBuilder *b) {
    const uint32_t block = b->block;
    qsf_build_no_block(b);
    const bool has = qsf_build_has(b, "rope_factors_long.weight") ||
                     qsf_build_has(b, "rope_factors_short.weight");
    qsf_build_block(b, block);
    return has;
}

/* Adds the table; freq (2, n): frequencies of short contexts, and of long ones. */
static uint32_t add_table(QsfBuilder *b, const QsfRopeSpec *spec, QsfRopeKind kind, const Scale *s,
                          uint32_t n, double *freq) {
    /* The factors are used where they exist, whatever rope.scaling.type is (phimoe); without those of a kind
     * the frequencies stay as they are. */
    const bool two = !spec->plain && (s->kind == SCALING_LONGROPE || has_two_factors(b));
    if (two) {
        apply_factors(b, "rope_factors_short.weight", n, freq);
        apply_factors(b, "rope_factors_long.weight", n, freq + n);
    } else if (!spec->plain) {
        apply_factors(b, "rope_freqs.weight", n, freq);
    }
    const uint32_t table = qsf_build_rope_table(b, kind, 2 * n, freq, magnitude(spec, s));
    if (two && table != QSF_NONE) qsf_build_rope_long(b, table, freq + n, (uint32_t)s->original_ctx);
    return table;
}

static double read_base(QsfBuilder *b, const QsfRopeSpec *spec) {
    const double base = spec->base_key == NULL
                            ? (double)spec->base
                            : (double)qsf_build_f32(b, spec->base_key, spec->base, 1.0f, 3e38f);
    const float alpha = spec->alpha ? qsf_build_f32(b, "rope.scaling.alpha", 0.0f, 0.0f, 1e6f) : 0.0f;
    if (!(alpha > 0.0f)) return base;
    if (spec->head_dim <= 2)
        qsf_build_check(b, qsf_keys_bad(&b->keys, "needs heads of more than 2 elements"));
    const double n = spec->head_dim;
    return spec->head_dim <= 2 ? base : base * pow((double)alpha, n / (n - 2));
}

/* ---- sections ---- */

static void read_sections(QsfBuilder *b, const QsfRopeSpec *spec, uint32_t part[4]) {
    memset(part, 0, 4 * sizeof *part);
    if (spec->sections == QSF_ROPE_SECTIONS_NONE || qsf_build_failed(b)) return;
    qsf_build_check(b,
                    qsf_keys_u32_list(&b->keys, "rope.dimension_sections", 0, QSF_MAX_HEAD_DIM, 3, 4, part));
}

/* Stops the pairs that turn with the fourth position, which is 0 in text. */
static void stop_pairs(const QsfRopeSpec *spec, const uint32_t part[4], uint32_t n, double *freq) {
    const uint32_t turn = part[0] + part[1] + part[2], all = turn + part[3];
    for (uint32_t i = 0; i < n && all > 0; i++) {
        const uint32_t k = i % all;
        const bool turns = spec->sections == QSF_ROPE_SECTIONS_MIXED ? k < 3 * part[k % 3] : k < turn;
        if (!turns) freq[i] = 0;
    }
}

uint32_t qsf_rope_table(QsfBuilder *b, const QsfRopeSpec *spec) {
    if (spec->kind == QSF_ROPE_NONE || qsf_build_failed(b)) return QSF_NONE;
    uint32_t n_rot = spec->n_rot, part[4];
    if (n_rot == 0) {
        b->keys.bound = spec->head_key != NULL ? spec->head_key : "attention.key_length";
        n_rot = qsf_build_u32(b, "rope.dimension_count", spec->head_dim, 1, spec->head_dim);
        if (spec->halve && !qsf_build_failed(b) && n_rot % 4 != 0)
            qsf_build_check(b, qsf_keys_bad(&b->keys, "is not a multiple of 4"));
        if (spec->halve) n_rot /= 2;
    }
    if (!qsf_build_failed(b) && n_rot % 2 != 0) qsf_build_check(b, qsf_keys_bad(&b->keys, "is odd"));
    const double base = read_base(b, spec);
    Scale s = spec->plain ? (Scale){ .factor = 1, .attn_factor = 1 } : read_scale(b);
    if (spec->log_unit > 0) s.log_multiplier /= spec->log_unit;
    if (spec->score_factor != NULL) *spec->score_factor = score_factor(spec, &s);
    read_sections(b, spec, part);
    if (qsf_build_failed(b)) return QSF_NONE;
    double *freq = calloc(n_rot + 1u, sizeof *freq);
    if (freq == NULL) {
        qsf_build_check(b, qsf_err_memory(b->err, "RoPE frequencies"));
        return QSF_NONE;
    }
    for (uint32_t i = 0; i < n_rot; i++) freq[i] = frequency(&s, base, n_rot, i % (n_rot / 2));
    stop_pairs(spec, part, n_rot / 2, freq);
    const QsfRopeKind kind = part[0] > 0 && part[1] > 0 ? QSF_ROPE_HALVES : spec->kind;
    const uint32_t table = add_table(b, spec, kind, &s, n_rot / 2, freq);
    free(freq);
    return table;
}
