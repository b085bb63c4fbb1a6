/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Table of model families. */
#include <stddef.h>
#include <string.h>

#include "src/model/family.h"
#include "src/model/family/families.h"
#include "src/model/family/hybrid.h"
#include "src/model/moe.h"

#define DENSE(arch, norm, ...) \
    { arch, qsf_family_dense, &(const QsfDense){ __VA_ARGS__ }, norm, QSF_EACH_BLOCK, QSF_EACH_BLOCK, ONCE }
#define MLA(arch, ffn, ...) \
    { arch, qsf_family_mla, &(const QsfMla){ __VA_ARGS__ }, QSF_NORM_RMS, QSF_EACH_BLOCK, ffn, ONCE }
/* Experts in some or all blocks, whose feed-forward length may be missing. */
#define SPARSE(arch, experts, ...)                                                                      \
    {                                                                                                   \
        arch, qsf_family_dense, &(const QsfDense){ .moe = &(const QsfMoeRow){ experts }, __VA_ARGS__ }, \
            QSF_NORM_RMS, QSF_EACH_BLOCK, QSF_SOME_BLOCKS, ONCE                                         \
    }
#define ONCE         0
#define LOOPS        QSF_FAMILY_LOOPS
#define LAYER_NORM   QSF_NORM_LAYER
#define RMS_NORM     QSF_NORM_RMS
#define SWIGLU       .act = QSF_ACT_SILU, .gated = true
#define GEGLU        .act = QSF_ACT_GELU, .gated = true
#define NORM         .rope = QSF_ROPE_PAIRS
#define NEOX         .rope = QSF_ROPE_HALVES
#define HEAD_NORM    .qk_norm = QSF_QK_NORM_HEAD
#define PARALLEL     .branches = QSF_BRANCHES_ONE_NORM
#define AROUND       .norms = QSF_NORMS_AROUND
#define AFTER        .norms = QSF_NORMS_AFTER
#define QUIRKS(q)    .quirks = (q)
#define EXPERTS(...) __VA_ARGS__
#define SOFTMAX      .gating = QSF_GATING_SOFTMAX, .fixed_gating = true
#define SIGMOID      .gating = QSF_GATING_SIGMOID
#define FIXED        .fixed_gating = true
#define DIVIDED      .norm = QSF_MOE_NORM_ALWAYS
#define BY_KEY       .norm = QSF_MOE_NORM_BY_KEY
#define SILU         .act = QSF_ACT_SILU
#define SIDE         .sections = QSF_ROPE_SECTIONS_SIDE
#define MIXED        .sections = QSF_ROPE_SECTIONS_MIXED
#define NEEDS_WINDOW .window_needed = true
#define SECOND       .ffn_norm = "post_attention_norm"
#define GEMMA_BITS   QSF_DENSE_EMBED_SQRT | QSF_DENSE_SCALE_27B

/* heads, ffn: as in QsfFamily. */
#define HYBRID(arch, heads, ffn, ...) \
    { arch, qsf_family_hybrid, &(const QsfHybrid){ __VA_ARGS__ }, QSF_NORM_RMS, heads, ffn, ONCE }

#define NEMOTRON_H                                                                             \
    .mixer = QSF_MIXER_MAMBA2, .alone = true, .act = QSF_ACT_RELU2, .conv_bias = QSF_OPTIONAL, \
    .moe = &(const QsfMoeRow) {                                                                \
        .optional = true, .gating = QSF_GATING_SIGMOID, FIXED, BY_KEY, .act = QSF_ACT_RELU2,   \
        .not_gated = true                                                                      \
    }

/* The experts of DeepSeek-V2 and V3. */
#define LATENT_EXPERTS                                                                               \
    (const QsfMoeRow) {                                                                              \
        .blocks = QSF_MOE_BLOCKS_LEADING, .gating = QSF_GATING_SOFTMAX, .norm = QSF_MOE_NORM_BY_KEY, \
        .act = QSF_ACT_SILU, .sigmoid_large = true                                                   \
    }

/* Those of its successors, whose files have the key. */
#define KEYED_EXPERTS                                                                        \
    (const QsfMoeRow) {                                                                      \
        .blocks = QSF_MOE_BLOCKS_LEADING, .needs_gating = true, .norm = QSF_MOE_NORM_BY_KEY, \
        .act = QSF_ACT_SILU                                                                  \
    }

/* Matrices for the tokens of images. */
static const char *const cogvlm_unused[] = { "vis_attn_qkv.weight", "vis_attn_output.weight",
                                             "vis_gate.weight",     "vis_up.weight",
                                             "vis_down.weight",     NULL };

/* clang-format off */
static const QsfFamily table[] = {
    DENSE("llama", RMS_NORM, NORM, SWIGLU, .moe = &(const QsfMoeRow){ .optional = true, .maybe_gated = true, SOFTMAX, DIVIDED, .act = QSF_ACT_SILU }),
    DENSE("apertus", RMS_NORM, NEOX, .act = QSF_ACT_XIELU, HEAD_NORM),
    DENSE("arcee", RMS_NORM, NORM, .act = QSF_ACT_RELU2),
    DENSE("baichuan", RMS_NORM, NORM, SWIGLU, .alibi = 8, .alibi_blocks = 40),
    DENSE("bitnet", RMS_NORM, NEOX, SWIGLU, QUIRKS(QSF_DENSE_SUB_NORMS)),
    DENSE("bitnet-b1.58", RMS_NORM, NEOX, .act = QSF_ACT_RELU2, .gated = true, QUIRKS(QSF_DENSE_SUB_NORMS)),
    DENSE("bloom", LAYER_NORM, .act = QSF_ACT_GELU, .alibi = 8, QUIRKS(QSF_DENSE_EMBED_NORM)),
    DENSE("chatglm", RMS_NORM, NORM, SWIGLU, QUIRKS(QSF_DENSE_FUSED_UP)),
    DENSE("codeshell", LAYER_NORM, NEOX, .act = QSF_ACT_GELU, QUIRKS(QSF_DENSE_EMBED_IS_HEAD)),
    DENSE("cohere2", LAYER_NORM, NORM, SWIGLU, PARALLEL, .window_period = 4, NEEDS_WINDOW, .rope_blocks = QSF_ROPE_BLOCKS_WINDOW, QUIRKS(QSF_DENSE_LOGIT_SCALE)),
    DENSE("cogvlm", RMS_NORM, NEOX, SWIGLU, .unused = cogvlm_unused, QUIRKS(QSF_DENSE_FIXED_ROPE)),
    DENSE("command-r", LAYER_NORM, NORM, SWIGLU, PARALLEL, .maybe_logit_scale = true, .qk_norm = QSF_QK_NORM_OPTIONAL, QUIRKS(QSF_DENSE_LOGIT_SCALE)),
    { "deci", qsf_family_dense, &(const QsfDense){ NORM, SWIGLU }, RMS_NORM, QSF_SOME_BLOCKS, QSF_SOME_BLOCKS, ONCE },
    DENSE("ernie4_5", RMS_NORM, NORM, SWIGLU),
    DENSE("exaone", RMS_NORM, NEOX, SWIGLU),
    DENSE("exaone4", RMS_NORM, NEOX, SWIGLU, HEAD_NORM, AFTER, .window_period = 4, .window_default = 4096, .window_blocks = 64, .rope_blocks = QSF_ROPE_BLOCKS_WINDOW),
    DENSE("falcon", LAYER_NORM, NEOX, .act = QSF_ACT_GELU, .branches = QSF_BRANCHES_BY_TENSOR),
    DENSE("gemma", RMS_NORM, NEOX, GEGLU, QUIRKS(QSF_DENSE_EMBED_SQRT)),
    DENSE("gemma2", RMS_NORM, NEOX, GEGLU, AROUND, .window_period = 2, .window_rope = QSF_WINDOW_ROPE_BY_KEY, .window_default = 4096, .score_cap = 50, .logit_cap = 30, QUIRKS(GEMMA_BITS | QSF_DENSE_SCORE_CAP | QSF_DENSE_LOGIT_CAP)),
    DENSE("gemma3", RMS_NORM, NEOX, GEGLU, AROUND, HEAD_NORM, .window_period = 6, .window_rope = QSF_WINDOW_ROPE_OWN, QUIRKS(GEMMA_BITS)),
    DENSE("glm4", RMS_NORM, NORM, SIDE, SWIGLU, AROUND, QUIRKS(QSF_DENSE_FUSED_UP)),
    DENSE("gpt2", LAYER_NORM, .act = QSF_ACT_GELU, QUIRKS(QSF_DENSE_POSITIONS)),
    DENSE("gptneox", LAYER_NORM, NEOX, .act = QSF_ACT_GELU, .branches = QSF_BRANCHES_BY_KEY),
    DENSE("granite", RMS_NORM, NORM, SWIGLU, QUIRKS(QSF_DENSE_SCALES)),
    DENSE("hunyuan-dense", RMS_NORM, NEOX, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD_AFTER),
    DENSE("hunyuan_vl", RMS_NORM, NEOX, SIDE, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD_AFTER, QUIRKS(QSF_DENSE_ALPHA)),
    DENSE("internlm2", RMS_NORM, NORM, SWIGLU),
    DENSE("jais", LAYER_NORM, SWIGLU, .maybe_alibi = true, QUIRKS(QSF_DENSE_SCALE_BY_DIM)),
    DENSE("jais2", LAYER_NORM, NEOX, .act = QSF_ACT_RELU2),
    DENSE("maincoder", RMS_NORM, NORM, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD_AFTER),
    DENSE("minicpm", RMS_NORM, NORM, SWIGLU, QUIRKS(QSF_DENSE_SCALES | QSF_DENSE_MINICPM)),
    DENSE("mistral3", RMS_NORM, NORM, SWIGLU, QUIRKS(QSF_DENSE_TEMPERATURE)),
    DENSE("mpt", LAYER_NORM, .act = QSF_ACT_GELU, .maybe_alibi = true, QUIRKS(QSF_DENSE_CLAMP_QKV | QSF_DENSE_MAYBE_POSITIONS)),
    DENSE("muse-glimmer", RMS_NORM, NORM, SWIGLU, AROUND, HEAD_NORM, .logit_cap = 30, .post_eps = 1e-8f, .gate = QSF_ACT_SIGMOID, .window_period = 4, NEEDS_WINDOW, .rope_blocks = QSF_ROPE_BLOCKS_WINDOW, .window_rope = QSF_WINDOW_ROPE_PLAIN_BASE, QUIRKS(QSF_DENSE_EMBED_PLAIN_NORM | QSF_DENSE_LOGIT_SCALE | QSF_DENSE_LOGIT_CAP)),
    { "nanbeige", qsf_family_dense, &(const QsfDense){ NORM, SWIGLU }, RMS_NORM, QSF_EACH_BLOCK, QSF_EACH_BLOCK, LOOPS },
    DENSE("nemotron", LAYER_NORM, NEOX, .act = QSF_ACT_RELU2),
    DENSE("olmo", LAYER_NORM, NORM, SWIGLU, QUIRKS(QSF_DENSE_CLAMP_QKV | QSF_DENSE_NO_NORM_WEIGHTS)),
    DENSE("olmo2", RMS_NORM, NEOX, SWIGLU, AFTER, .qk_norm = QSF_QK_NORM_ROW, .window_period = 4, .window_rope = QSF_WINDOW_ROPE_PLAIN),
    DENSE("openelm", RMS_NORM, NEOX, SWIGLU, HEAD_NORM),
    DENSE("orion", LAYER_NORM, NEOX, SWIGLU),
    DENSE("paddleocr", RMS_NORM, NEOX, SIDE, SWIGLU),
    DENSE("pangu-embedded", RMS_NORM, NEOX, SWIGLU),
    DENSE("phi2", LAYER_NORM, NEOX, .act = QSF_ACT_GELU, PARALLEL),
    DENSE("phi3", RMS_NORM, NEOX, SWIGLU, QUIRKS(QSF_DENSE_FUSED_UP)),
    DENSE("plamo", RMS_NORM, NEOX, SWIGLU, PARALLEL),
    DENSE("plamo3", RMS_NORM, NEOX, SWIGLU, AROUND, HEAD_NORM, .window_period = 8, .window_rope = QSF_WINDOW_ROPE_OWN, QUIRKS(QSF_DENSE_FUSED_UP)),
    DENSE("qwen", RMS_NORM, NEOX, SWIGLU, QUIRKS(QSF_DENSE_HALF_FFN)),
    DENSE("qwen2", RMS_NORM, NEOX, SWIGLU),
    { "qwen2vl", qsf_family_dense, &(const QsfDense){ NEOX, SIDE, SWIGLU }, RMS_NORM, QSF_EACH_BLOCK, QSF_EACH_BLOCK, QSF_FAMILY_MAYBE_EPS },
    DENSE("qwen3", RMS_NORM, NEOX, SWIGLU, HEAD_NORM),
    DENSE("qwen3vl", RMS_NORM, NEOX, MIXED, SWIGLU, HEAD_NORM),
    DENSE("refact", RMS_NORM, SWIGLU, .alibi = 8),
    DENSE("seed_oss", RMS_NORM, NEOX, SWIGLU, SECOND),
    DENSE("smollm3", RMS_NORM, NORM, SWIGLU, .rope_blocks = QSF_ROPE_BLOCKS_NOT_FOURTH),
    DENSE("stablelm", LAYER_NORM, NEOX, SWIGLU, .qk_norm = QSF_QK_NORM_OPTIONAL, .branches = QSF_BRANCHES_BY_TENSOR),
    DENSE("starcoder", LAYER_NORM, .act = QSF_ACT_GELU, QUIRKS(QSF_DENSE_POSITIONS)),
    DENSE("starcoder2", LAYER_NORM, NEOX, .act = QSF_ACT_GELU),
    DENSE("talkie", RMS_NORM, NEOX, SWIGLU, .qk_norm = QSF_QK_NORM_PLAIN_AFTER, QUIRKS(QSF_DENSE_NO_NORM_WEIGHTS | QSF_DENSE_EMBED_PLAIN_NORM | QSF_DENSE_EMBED_SKIP | QSF_DENSE_LOGIT_SCALE)),
    DENSE("xverse", RMS_NORM, NORM, SWIGLU),
    HYBRID("mamba", QSF_NO_BLOCK, QSF_NO_BLOCK, .mixer = QSF_MIXER_MAMBA1),
    HYBRID("mamba2", QSF_NO_BLOCK, QSF_NO_BLOCK, .mixer = QSF_MIXER_MAMBA2),
    HYBRID("jamba", QSF_SOME_BLOCKS, QSF_EACH_BLOCK, .mixer = QSF_MIXER_MAMBA1, SWIGLU, .moe = &(const QsfMoeRow){ .blocks = QSF_MOE_BLOCKS_TENSORS, SOFTMAX, SILU }),
    HYBRID("falcon-h1", QSF_EACH_BLOCK, QSF_EACH_BLOCK, .mixer = QSF_MIXER_MAMBA2, .parallel = true, NEOX, SWIGLU, .conv_bias = QSF_OPTIONAL, .mixer_norm = QSF_OPTIONAL),
    HYBRID("granitehybrid", QSF_SOME_BLOCKS, QSF_EACH_BLOCK, .mixer = QSF_MIXER_MAMBA2, NORM, SWIGLU, .scales = true, .conv_bias = QSF_OPTIONAL, .moe = &(const QsfMoeRow){ .optional = true, .maybe_gated = true, SOFTMAX, DIVIDED, SILU }),
    HYBRID("nemotron_h", QSF_SOME_BLOCKS, QSF_SOME_BLOCKS, NEMOTRON_H),
    HYBRID("nemotron_h_moe", QSF_SOME_BLOCKS, QSF_SOME_BLOCKS, NEMOTRON_H),
    HYBRID("lfm2", QSF_SOME_BLOCKS, QSF_EACH_BLOCK, .mixer = QSF_MIXER_SHORT_CONV, NEOX, SWIGLU, .qk_norm = true, .out_norm = "token_embd_norm"),
    HYBRID("lfm2moe", QSF_SOME_BLOCKS, QSF_EACH_BLOCK, .mixer = QSF_MIXER_SHORT_CONV, NEOX, SWIGLU, .qk_norm = true, .out_norm = "token_embd_norm", .moe = &(const QsfMoeRow){ .blocks = QSF_MOE_BLOCKS_LEADING, SIGMOID, DIVIDED, SILU }),
    { "rwkv7", qsf_family_rwkv, &(const QsfRwkv){ .version = 7, .channel_mix = true }, LAYER_NORM, QSF_NO_BLOCK, QSF_EACH_BLOCK, QSF_FAMILY_MAYBE_EPS },
    { "rwkv6", qsf_family_rwkv, &(const QsfRwkv){ .version = 6, .channel_mix = true, .receptance = true }, LAYER_NORM, QSF_NO_BLOCK, QSF_EACH_BLOCK, QSF_FAMILY_MAYBE_EPS },
    { "rwkv6qwen2", qsf_family_rwkv, &(const QsfRwkv){ .version = 6 }, RMS_NORM, QSF_KV_BLOCKS, QSF_EACH_BLOCK, QSF_FAMILY_MAYBE_EPS },
    { "arwkv7", qsf_family_rwkv, &(const QsfRwkv){ .version = 7, .optional_norm = true, .optional_gate = true }, RMS_NORM, QSF_NO_BLOCK, QSF_EACH_BLOCK, QSF_FAMILY_MAYBE_EPS },
    { "kimi-linear", qsf_family_kimi, &(const QsfKimi){ .moe = &(const QsfMoeRow){ .blocks = QSF_MOE_BLOCKS_LEADING, SIGMOID, DIVIDED, SILU, .shared_parts = true } }, RMS_NORM, QSF_SOME_BLOCKS, QSF_SOME_BLOCKS, ONCE },
    { "kimi-k3", qsf_family_kimi, &(const QsfKimi){ .moe = &(const QsfMoeRow){ .blocks = QSF_MOE_BLOCKS_LEADING, SIGMOID, BY_KEY, SILU, .shared_gate = true }, .bound = QSF_KIMI_MAYBE_BOUND, .negative_factor = true, .mla_gate = QSF_ACT_SIGMOID, .maybe_mla_gate = true, .k3 = true }, RMS_NORM, QSF_SOME_BLOCKS, QSF_SOME_BLOCKS, ONCE },
    { "bailingmoe3", qsf_family_kimi, &(const QsfKimi){ .moe = &(const QsfMoeRow){ .blocks = QSF_MOE_BLOCKS_LEADING, SIGMOID, BY_KEY, SILU, .limits = true }, .bound = QSF_KIMI_BOUND, .rope = QSF_ROPE_PAIRS, .mla_gate = QSF_ACT_SIGMOID }, RMS_NORM, QSF_SOME_BLOCKS, QSF_SOME_BLOCKS, ONCE },
    { "minimax-01", qsf_family_minimax01, &(const QsfMoeRow){ SOFTMAX, DIVIDED, SILU, .maybe_gated = true }, RMS_NORM, QSF_EACH_BLOCK, QSF_SOME_BLOCKS, ONCE },
    { "plamo2", qsf_family_plamo2, NULL, RMS_NORM, QSF_SOME_BLOCKS, QSF_EACH_BLOCK, ONCE },
    { "qwen35", qsf_family_qwen_next, &(const QsfQwenNext){ MIXED }, RMS_NORM, QSF_EACH_BLOCK, QSF_EACH_BLOCK, ONCE },
    { "qwen35moe", qsf_family_qwen_next, &(const QsfQwenNext){ MIXED, .moe = &(const QsfMoeRow){ SOFTMAX, DIVIDED, SILU } }, RMS_NORM, QSF_EACH_BLOCK, QSF_SOME_BLOCKS, ONCE },
    { "qwen3next", qsf_family_qwen_next, &(const QsfQwenNext){ .fused_beta = true, .moe = &(const QsfMoeRow){ .blocks = QSF_MOE_BLOCKS_TENSORS, SOFTMAX, DIVIDED, SILU } }, RMS_NORM, QSF_EACH_BLOCK, QSF_SOME_BLOCKS, ONCE },

    { "gemma3n", qsf_family_gemma3n, NULL, QSF_NORM_RMS, QSF_EACH_BLOCK, QSF_EACH_BLOCK, ONCE },
    { "gemma4", qsf_family_gemma4, NULL, QSF_NORM_RMS, QSF_EACH_BLOCK, QSF_EACH_BLOCK, ONCE },

    MLA("deepseek2", QSF_SOME_BLOCKS, NORM, SWIGLU, .yarn = QSF_MLA_YARN_UNIT, .moe = &LATENT_EXPERTS),
    MLA("mistral4", QSF_SOME_BLOCKS, NORM, SWIGLU, .yarn = QSF_MLA_YARN_SCORES, .moe = &LATENT_EXPERTS),
    MLA("deepseek32", QSF_SOME_BLOCKS, NORM, SWIGLU, .yarn = QSF_MLA_YARN_SCORES, .indexer = QSF_ROPE_HALVES, .moe = &KEYED_EXPERTS),
    MLA("dots3note", QSF_SOME_BLOCKS, NORM, SWIGLU, .indexer = QSF_ROPE_HALVES, .windows = true, .moe = &KEYED_EXPERTS),
    MLA("glm-dsa", QSF_SOME_BLOCKS, NORM, SWIGLU, .yarn = QSF_MLA_YARN_SCORES, .indexer = QSF_ROPE_PAIRS, .maybe_key_norm = true, .moe = &(const QsfMoeRow){ .blocks = QSF_MOE_BLOCKS_LEADING, SIGMOID, BY_KEY, SILU }),
    MLA("minicpm3", QSF_EACH_BLOCK, NEOX, SWIGLU, .minicpm = true),
    MLA("plm", QSF_EACH_BLOCK, NORM, .act = QSF_ACT_RELU2),

    SPARSE("afmoe", EXPERTS(.blocks = QSF_MOE_BLOCKS_LEADING, SIGMOID, BY_KEY, SILU), NEOX, SWIGLU, AROUND, HEAD_NORM, .gate = QSF_ACT_SIGMOID, .window_period = 4, NEEDS_WINDOW, .window_zero = true, .rope_blocks = QSF_ROPE_BLOCKS_NOT_FOURTH, .window_rope = QSF_WINDOW_ROPE_BASE, QUIRKS(QSF_DENSE_EMBED_SQRT)),
    SPARSE("arctic", EXPERTS(SOFTMAX, DIVIDED, SILU), NORM, SWIGLU, .branches = QSF_BRANCHES_EXPERTS),
    SPARSE("bailingmoe", EXPERTS(SOFTMAX, BY_KEY, SILU), NORM, SWIGLU),
    SPARSE("bailingmoe2", EXPERTS(.blocks = QSF_MOE_BLOCKS_LEADING, SIGMOID, BY_KEY, SILU), NEOX, SWIGLU, HEAD_NORM),
    { "cohere2moe", qsf_family_dense, &(const QsfDense){ .moe = &(const QsfMoeRow){ .blocks = QSF_MOE_BLOCKS_LEADING, SIGMOID, BY_KEY, SILU, .sum_scale = 0.5f }, NORM, SWIGLU, PARALLEL, .window_period = 4, NEEDS_WINDOW, .window_not_first = true, .rope_blocks = QSF_ROPE_BLOCKS_WINDOW_OR_LEADING, QUIRKS(QSF_DENSE_LOGIT_SCALE) }, LAYER_NORM, QSF_EACH_BLOCK, QSF_SOME_BLOCKS, QSF_FAMILY_RMS_BY_KEY },
    { "dbrx", qsf_family_dense, &(const QsfDense){ .moe = &(const QsfMoeRow){ SOFTMAX, DIVIDED, SILU }, NEOX, SWIGLU, .clamp_needed = true, .ffn_norm = "attn_output_norm", QUIRKS(QSF_DENSE_CLAMP_QKV) }, LAYER_NORM, QSF_EACH_BLOCK, QSF_SOME_BLOCKS, ONCE },
    SPARSE("deepseek", EXPERTS(.blocks = QSF_MOE_BLOCKS_LEADING, SOFTMAX, SILU), NORM, SWIGLU),
    SPARSE("deepseek2-ocr", EXPERTS(.blocks = QSF_MOE_BLOCKS_LEADING, .gating = QSF_GATING_SOFTMAX, BY_KEY, SILU), NEOX, SWIGLU),
    SPARSE("dots1", EXPERTS(.blocks = QSF_MOE_BLOCKS_LEADING, SIGMOID, BY_KEY, SILU), NEOX, SWIGLU, HEAD_NORM),
    SPARSE("ernie4_5-moe", EXPERTS(.maybe_gated = true, .blocks = QSF_MOE_BLOCKS_STEP, SOFTMAX, DIVIDED, SILU), NORM, SWIGLU),
    SPARSE("exaone-moe", EXPERTS(.blocks = QSF_MOE_BLOCKS_LEADING, SIGMOID, BY_KEY, SILU), NEOX, SWIGLU, HEAD_NORM, .window_period = 4, NEEDS_WINDOW, .rope_blocks = QSF_ROPE_BLOCKS_WINDOW),
    SPARSE("glm4moe", EXPERTS(.blocks = QSF_MOE_BLOCKS_LEADING, SIGMOID, BY_KEY, SILU), NEOX, SIDE, SWIGLU, SECOND, .qk_norm = QSF_QK_NORM_HEAD_OPTIONAL),
    SPARSE("gpt-oss", EXPERTS(.gating = QSF_GATING_SOFTMAX_CHOSEN, .act = QSF_ACT_SWIGLU_OAI, FIXED), NEOX, SWIGLU, SECOND, .window_period = 2, .window_rope = QSF_WINDOW_ROPE_BY_KEY, NEEDS_WINDOW),
    SPARSE("granite_swa", EXPERTS(.maybe_gated = true, .optional = true, SOFTMAX, DIVIDED, SILU), NORM, SWIGLU, .window_period = 4, NEEDS_WINDOW, .pattern_needed = true, .rope_blocks = QSF_ROPE_BLOCKS_PATTERN, QUIRKS(QSF_DENSE_SCALES)),
    SPARSE("granitemoe", EXPERTS(.maybe_gated = true, .optional = true, SOFTMAX, DIVIDED, SILU), NORM, SWIGLU, QUIRKS(QSF_DENSE_SCALES)),
    SPARSE("grok", EXPERTS(.maybe_gated = true, SOFTMAX, DIVIDED, .act = QSF_ACT_GELU, .dense_shared = true, .sum_scale = 0.70710678f), NEOX, GEGLU, AROUND, .attn_post_norm = "attn_output_norm", .score_cap = 30, QUIRKS(QSF_DENSE_GROK | QSF_DENSE_SCORE_CAP | QSF_DENSE_LOGIT_CAP)),
    SPARSE("grovemoe", EXPERTS(SOFTMAX, DIVIDED, SILU, .adjugate = true), NEOX, SWIGLU, HEAD_NORM),
    SPARSE("hunyuan-moe", EXPERTS(SOFTMAX, DIVIDED, SILU), NEOX, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD_AFTER),
    SPARSE("hy_v3", EXPERTS(.maybe_gated = true, .blocks = QSF_MOE_BLOCKS_TENSORS, SIGMOID, BY_KEY, SILU), NEOX, SWIGLU, HEAD_NORM),
    SPARSE("laguna", EXPERTS(.blocks = QSF_MOE_BLOCKS_LEADING, SIGMOID, BY_KEY, SILU), NEOX, SWIGLU, HEAD_NORM, .gate = QSF_ACT_SOFTPLUS, .window_period = 4, .window_not_first = true, .window_rope = QSF_WINDOW_ROPE_PLAIN_BASE),
    SPARSE("llama4", EXPERTS(.blocks = QSF_MOE_BLOCKS_STEP, .gating = QSF_GATING_SIGMOID, FIXED, SILU, .scale_input = true), NORM, SWIGLU, .rope_blocks = QSF_ROPE_BLOCKS_NOT_FOURTH, QUIRKS(QSF_DENSE_LLAMA4)),
    SPARSE("mellum", EXPERTS(SOFTMAX, DIVIDED, SILU), NEOX, SWIGLU, HEAD_NORM, .window_period = 4, .window_rope = QSF_WINDOW_ROPE_PLAIN),
    SPARSE("mimo2", EXPERTS(.maybe_gated = true, .blocks = QSF_MOE_BLOCKS_TENSORS, SIGMOID, FIXED, DIVIDED, SILU), NEOX, SWIGLU, .window_period = 4, NEEDS_WINDOW, .pattern_needed = true, .window_rope = QSF_WINDOW_ROPE_OWN, QUIRKS(QSF_DENSE_VALUE_SCALE)),
    SPARSE("minimax-m2", EXPERTS(SIGMOID, DIVIDED, SILU), NEOX, SWIGLU, .qk_norm = QSF_QK_NORM_ROW),
    SPARSE("minimax-m3", EXPERTS(.blocks = QSF_MOE_BLOCKS_LEADING, SIGMOID, BY_KEY, .act = QSF_ACT_SWIGLU_OAI), NEOX, .act = QSF_ACT_SWIGLU_OAI, .gated = true, HEAD_NORM, QUIRKS(QSF_DENSE_BLOCK_INDEX)),
    SPARSE("olmoe", EXPERTS(SOFTMAX, SILU), NEOX, SWIGLU, .qk_norm = QSF_QK_NORM_ROW),
    SPARSE("phimoe", EXPERTS(SOFTMAX, DIVIDED, SILU), NEOX, SWIGLU, QUIRKS(QSF_DENSE_RMS_BIAS)),
    SPARSE("qwen2moe", EXPERTS(SOFTMAX, SILU), NEOX, SWIGLU),
    SPARSE("qwen3moe", EXPERTS(SOFTMAX, DIVIDED, SILU), NEOX, SWIGLU, HEAD_NORM),
    SPARSE("qwen3vlmoe", EXPERTS(SOFTMAX, DIVIDED, SILU), NEOX, MIXED, SWIGLU, HEAD_NORM),
    SPARSE("smallthinker", EXPERTS(.gating = QSF_GATING_SOFTMAX, DIVIDED, .act = QSF_ACT_RELU, .early_router = true), NEOX, .act = QSF_ACT_RELU, .gated = true, .window_period = 4, .window_not_first = true, .window_size = 4096, .rope_blocks = QSF_ROPE_BLOCKS_NOT_FIRST, .window_rope = QSF_WINDOW_ROPE_BASE),
    SPARSE("step35", EXPERTS(.maybe_gated = true, .shared_parts = true, .blocks = QSF_MOE_BLOCKS_TENSORS, SIGMOID, BY_KEY, SILU, .limits = true), NEOX, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD_OPTIONAL, .gate = QSF_ACT_SIGMOID, .window_period = 4, NEEDS_WINDOW, .pattern_needed = true, .window_rope = QSF_WINDOW_ROPE_OWN, QUIRKS(QSF_DENSE_GATE_OPTIONAL | QSF_DENSE_HALF_ROPE)),
};
/* clang-format on */

const QsfFamily *qsf_family_at(unsigned i) { return i < sizeof table / sizeof *table ? &table[i] : NULL; }

const QsfFamily *qsf_family_find(const char *name) {
    for (unsigned i = 0; qsf_family_at(i) != NULL; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}
