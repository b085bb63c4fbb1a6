/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Table of model families. What a row does not name is 0: RMS norms, attention and a feed-forward network in
 * each block, one after the other, each with a norm before it; no rotation, no windows, no experts. */
#include <stddef.h>
#include <string.h>

#include "src/model/family.h"
#include "src/model/family/families.h"
#include "src/model/moe.h"

#define TRAITS(type, ...) \
    .traits = &(const type) { __VA_ARGS__ }
#define DENSE(...)  .build = qsf_family_dense, TRAITS(QsfDense, __VA_ARGS__)
#define MLA(...)    .build = qsf_family_mla, TRAITS(QsfMla, __VA_ARGS__)
#define HYBRID(...) .build = qsf_family_hybrid, TRAITS(QsfHybrid, __VA_ARGS__)
#define MOE(...) \
    .moe = &(const QsfMoeRow) { __VA_ARGS__ }
#define SWIGLU  .act = QSF_ACT_SILU, .gated = true
#define GEGLU   .act = QSF_ACT_GELU, .gated = true
#define NEXTN   .nextn = QSF_NEXTN_NORMED
#define SOFTMAX .gating = QSF_GATING_SOFTMAX, .fixed_gating = true

/* Three of each four blocks have a window: all but the last, and the file has its size; all but the first. */
#define WINDOWS_OF_4        .window_period = 4, .window_needed = true
#define WINDOWS_AFTER_FIRST .window_period = 4, .window_not_first = true
/* The file also says which blocks; those rotate in their own way. */
#define WINDOW_PATTERN WINDOWS_OF_4, .pattern_needed = true, .window_rope = QSF_WINDOW_ROPE_OWN

/* A sigmoid chooses experts, after the leading blocks or where there are tensors of a router; the file says
 * whether their weights are divided by the sum. */
#define LEADING_SIGMOID \
    .blocks = QSF_MOE_BLOCKS_LEADING, .gating = QSF_GATING_SIGMOID, .norm = QSF_MOE_NORM_BY_KEY
#define MAYBE_SIGMOID                                                                    \
    .maybe_gated = true, .blocks = QSF_MOE_BLOCKS_TENSORS, .gating = QSF_GATING_SIGMOID, \
    .norm = QSF_MOE_NORM_BY_KEY
/* The same, and they always are. */
#define LEADING_DIVIDED \
    .blocks = QSF_MOE_BLOCKS_LEADING, .gating = QSF_GATING_SIGMOID, .norm = QSF_MOE_NORM_ALWAYS

/* ---- experts that several families have ---- */

static const QsfMoeRow softmax_moe = { SOFTMAX, .norm = QSF_MOE_NORM_ALWAYS, .act = QSF_ACT_SILU };

static const QsfMoeRow optional_moe = {
    .optional = true, .maybe_gated = true, SOFTMAX, .norm = QSF_MOE_NORM_ALWAYS, .act = QSF_ACT_SILU
};

static const QsfMoeRow sigmoid_moe = { LEADING_SIGMOID, .act = QSF_ACT_SILU };

/* DeepSeek-V2 and V3. */
static const QsfMoeRow latent_moe = { .blocks = QSF_MOE_BLOCKS_LEADING,
                                      .gating = QSF_GATING_SOFTMAX,
                                      .norm = QSF_MOE_NORM_BY_KEY,
                                      .act = QSF_ACT_SILU,
                                      .sigmoid_large = true };

/* Their successors, whose files have the key of the gating. */
static const QsfMoeRow keyed_moe = {
    .blocks = QSF_MOE_BLOCKS_LEADING, .needs_gating = true, .norm = QSF_MOE_NORM_BY_KEY, .act = QSF_ACT_SILU
};

/* SmallThinker: the router reads the block's input. */
static const QsfMoeRow early_moe = {
    .gating = QSF_GATING_SOFTMAX, .norm = QSF_MOE_NORM_ALWAYS, .act = QSF_ACT_RELU, .early_router = true
};

#define NEMOTRON_H                                                                                         \
    .mixer = QSF_MIXER_MAMBA2, .alone = true, .act = QSF_ACT_RELU2, .conv_bias = QSF_OPTIONAL,             \
    MOE(.optional = true, .gating = QSF_GATING_SIGMOID, .fixed_gating = true, .norm = QSF_MOE_NORM_BY_KEY, \
        .act = QSF_ACT_RELU2, .not_gated = true)

/* Matrices for the tokens of images. */
static const char *const cogvlm_unused[] = { "vis_attn_qkv.weight", "vis_attn_output.weight",
                                             "vis_gate.weight",     "vis_up.weight",
                                             "vis_down.weight",     NULL };

static const QsfFamily table[] = {
    { "llama", DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU, .moe = &optional_moe), NEXTN },
    { "apertus", DENSE(.rope = QSF_ROPE_HALVES, .act = QSF_ACT_XIELU, .qk_norm = QSF_QK_NORM_HEAD) },
    { "arcee", DENSE(.rope = QSF_ROPE_PAIRS, .act = QSF_ACT_RELU2) },
    { "baichuan",
      DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU, .alibi = true, .alibi_default = 8, .alibi_blocks = 40) },
    { "bitnet", DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .sub_norms = true) },
    { "bitnet-b1.58",
      DENSE(.rope = QSF_ROPE_HALVES, .act = QSF_ACT_RELU2, .gated = true, .sub_norms = true) },
    { "bloom", .norm = QSF_NORM_LAYER,
      DENSE(.act = QSF_ACT_GELU, .alibi = true, .alibi_default = 8, .embed_norm = true) },
    { "chatglm", DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU, .fused_up = true) },
    { "codeshell", .norm = QSF_NORM_LAYER,
      DENSE(.rope = QSF_ROPE_HALVES, .act = QSF_ACT_GELU, .embed_is_head = true) },
    { "cohere2", .norm = QSF_NORM_LAYER,
      DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU, .branches = QSF_BRANCHES_ONE_NORM, WINDOWS_OF_4,
            .rope_blocks = QSF_ROPE_BLOCKS_WINDOW, .logit_scale = QSF_USE_ALWAYS) },
    { "cogvlm", DENSE(.rope = QSF_ROPE_HALVES, .fixed_rope = true, SWIGLU, .unused = cogvlm_unused) },
    { "command-r", .norm = QSF_NORM_LAYER,
      DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU, .branches = QSF_BRANCHES_ONE_NORM,
            .qk_norm = QSF_QK_NORM_OPTIONAL, .logit_scale = QSF_USE_MAYBE) },
    { "deci", .heads = QSF_SOME_BLOCKS, .ffn = QSF_SOME_BLOCKS, DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU) },
    { "ernie4_5", DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU) },
    { "exaone", DENSE(.rope = QSF_ROPE_HALVES, SWIGLU) },
    { "exaone4", NEXTN,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .norms = QSF_NORMS_AFTER, .qk_norm = QSF_QK_NORM_HEAD,
            .window_period = 4, .window_default = 4096, .window_blocks = 64,
            .rope_blocks = QSF_ROPE_BLOCKS_WINDOW) },
    { "falcon", .norm = QSF_NORM_LAYER,
      DENSE(.rope = QSF_ROPE_HALVES, .act = QSF_ACT_GELU, .branches = QSF_BRANCHES_BY_TENSOR) },
    { "gemma", DENSE(.rope = QSF_ROPE_HALVES, GEGLU, .embed_sqrt = true) },
    { "gemma2", DENSE(.rope = QSF_ROPE_HALVES, GEGLU, .norms = QSF_NORMS_AROUND, .window_period = 2,
                      .window_rope = QSF_WINDOW_ROPE_BY_KEY, .window_default = 4096, .score_cap = 50,
                      .logit_cap = 30, .embed_sqrt = true, .scores_27b = true) },
    { "gemma3",
      DENSE(.rope = QSF_ROPE_HALVES, GEGLU, .norms = QSF_NORMS_AROUND, .qk_norm = QSF_QK_NORM_HEAD,
            .window_period = 6, .window_rope = QSF_WINDOW_ROPE_OWN, .embed_sqrt = true, .scores_27b = true) },
    { "glm4", NEXTN,
      DENSE(.rope = QSF_ROPE_PAIRS, .sections = QSF_ROPE_SECTIONS_SIDE, SWIGLU, .norms = QSF_NORMS_AROUND,
            .fused_up = true) },
    { "gpt2", .norm = QSF_NORM_LAYER, DENSE(.act = QSF_ACT_GELU, .positions = QSF_USE_ALWAYS) },
    { "gptneox", .norm = QSF_NORM_LAYER,
      DENSE(.rope = QSF_ROPE_HALVES, .act = QSF_ACT_GELU, .branches = QSF_BRANCHES_BY_KEY) },
    { "granite", DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU, .granite_scales = true) },
    { "hunyuan-dense", DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD_AFTER) },
    { "hunyuan_vl", DENSE(.rope = QSF_ROPE_HALVES, .rope_alpha = true, .sections = QSF_ROPE_SECTIONS_SIDE,
                          SWIGLU, .qk_norm = QSF_QK_NORM_HEAD_AFTER) },
    { "internlm2", DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU) },
    { "jais", .norm = QSF_NORM_LAYER, DENSE(SWIGLU, .alibi = true, .scores_by_dim = true) },
    { "jais2", .norm = QSF_NORM_LAYER, DENSE(.rope = QSF_ROPE_HALVES, .act = QSF_ACT_RELU2) },
    { "maincoder", DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD_AFTER) },
    { "minicpm", .build = qsf_family_minicpm, TRAITS(QsfDense, .rope = QSF_ROPE_PAIRS, SWIGLU) },
    { "mistral3", DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU, .temperature = true) },
    { "mpt", .norm = QSF_NORM_LAYER,
      DENSE(.act = QSF_ACT_GELU, .alibi = true, .clamp_qkv = QSF_USE_MAYBE, .positions = QSF_USE_MAYBE) },
    { "muse-glimmer", DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU, .norms = QSF_NORMS_AROUND, .post_eps = 1e-8f,
                            .qk_norm = QSF_QK_NORM_HEAD, .gate = QSF_ACT_SIGMOID, WINDOWS_OF_4,
                            .rope_blocks = QSF_ROPE_BLOCKS_WINDOW, .window_rope = QSF_WINDOW_ROPE_PLAIN_BASE,
                            .embed_plain_norm = true, .logit_cap = 30, .logit_scale = QSF_USE_ALWAYS) },
    { "nanbeige", .loops = true, DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU) },
    { "nemotron", .norm = QSF_NORM_LAYER, DENSE(.rope = QSF_ROPE_HALVES, .act = QSF_ACT_RELU2) },
    { "olmo", .norm = QSF_NORM_LAYER,
      DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU, .clamp_qkv = QSF_USE_MAYBE, .no_norm_weights = true) },
    { "olmo2", DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .norms = QSF_NORMS_AFTER, .qk_norm = QSF_QK_NORM_ROW,
                     .window_period = 4, .window_rope = QSF_WINDOW_ROPE_PLAIN) },
    { "openelm", DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD) },
    { "orion", .norm = QSF_NORM_LAYER, DENSE(.rope = QSF_ROPE_HALVES, SWIGLU) },
    { "paddleocr", DENSE(.rope = QSF_ROPE_HALVES, .sections = QSF_ROPE_SECTIONS_SIDE, SWIGLU) },
    { "pangu-embedded", DENSE(.rope = QSF_ROPE_HALVES, SWIGLU) },
    { "phi2", .norm = QSF_NORM_LAYER,
      DENSE(.rope = QSF_ROPE_HALVES, .act = QSF_ACT_GELU, .branches = QSF_BRANCHES_ONE_NORM) },
    { "phi3", DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .fused_up = true) },
    { "plamo", DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .branches = QSF_BRANCHES_ONE_NORM) },
    { "plamo3", DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .norms = QSF_NORMS_AROUND, .qk_norm = QSF_QK_NORM_HEAD,
                      .window_period = 8, .window_rope = QSF_WINDOW_ROPE_OWN, .fused_up = true) },
    { "qwen", DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .half_ffn = true) },
    { "qwen2", DENSE(.rope = QSF_ROPE_HALVES, SWIGLU) },
    { "qwen2vl", .maybe_eps = true,
      DENSE(.rope = QSF_ROPE_HALVES, .sections = QSF_ROPE_SECTIONS_SIDE, SWIGLU) },
    { "qwen3", DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD) },
    { "qwen3vl", DENSE(.rope = QSF_ROPE_HALVES, .sections = QSF_ROPE_SECTIONS_MIXED, SWIGLU,
                       .qk_norm = QSF_QK_NORM_HEAD) },
    { "refact", DENSE(SWIGLU, .alibi = true, .alibi_default = 8) },
    { "seed_oss", DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .ffn_norm = "post_attention_norm") },
    { "smollm3", DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU, .rope_period = 4) },
    { "stablelm", .norm = QSF_NORM_LAYER,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .branches = QSF_BRANCHES_BY_TENSOR,
            .qk_norm = QSF_QK_NORM_OPTIONAL) },
    { "starcoder", .norm = QSF_NORM_LAYER, DENSE(.act = QSF_ACT_GELU, .positions = QSF_USE_ALWAYS) },
    { "starcoder2", .norm = QSF_NORM_LAYER, DENSE(.rope = QSF_ROPE_HALVES, .act = QSF_ACT_GELU) },
    { "talkie", .build = qsf_family_talkie,
      TRAITS(QsfDense, .rope = QSF_ROPE_HALVES, SWIGLU, .no_norm_weights = true, .embed_plain_norm = true,
             .logit_scale = QSF_USE_ALWAYS) },
    { "xverse", DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU) },
    { "mamba", .heads = QSF_NO_BLOCK, .ffn = QSF_NO_BLOCK, HYBRID(.mixer = QSF_MIXER_MAMBA1) },
    { "mamba2", .heads = QSF_NO_BLOCK, .ffn = QSF_NO_BLOCK, HYBRID(.mixer = QSF_MIXER_MAMBA2) },
    { "jamba", .heads = QSF_SOME_BLOCKS,
      HYBRID(SWIGLU, .mixer = QSF_MIXER_MAMBA1,
             MOE(.blocks = QSF_MOE_BLOCKS_TENSORS, SOFTMAX, .act = QSF_ACT_SILU)) },
    { "falcon-h1", HYBRID(.rope = QSF_ROPE_HALVES, SWIGLU, .mixer = QSF_MIXER_MAMBA2, .parallel = true,
                          .conv_bias = QSF_OPTIONAL, .mixer_norm = QSF_OPTIONAL) },
    { "granitehybrid", .heads = QSF_SOME_BLOCKS,
      HYBRID(.rope = QSF_ROPE_PAIRS, SWIGLU, .mixer = QSF_MIXER_MAMBA2, .scales = true,
             .conv_bias = QSF_OPTIONAL, .moe = &optional_moe) },
    { "nemotron_h", .heads = QSF_SOME_BLOCKS, .ffn = QSF_SOME_BLOCKS, HYBRID(NEMOTRON_H) },
    { "nemotron_h_moe", .heads = QSF_SOME_BLOCKS, .ffn = QSF_SOME_BLOCKS, HYBRID(NEMOTRON_H) },
    { "lfm2", .heads = QSF_SOME_BLOCKS,
      HYBRID(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = true, .mixer = QSF_MIXER_SHORT_CONV,
             .out_norm = "token_embd_norm") },
    { "lfm2moe", .heads = QSF_SOME_BLOCKS,
      HYBRID(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = true, .mixer = QSF_MIXER_SHORT_CONV,
             .out_norm = "token_embd_norm", MOE(LEADING_DIVIDED, .act = QSF_ACT_SILU)) },
    { "rwkv7", .build = qsf_family_rwkv, .maybe_eps = true, .norm = QSF_NORM_LAYER, .heads = QSF_NO_BLOCK,
      TRAITS(QsfRwkv, .version = 7, .channel_mix = true) },
    { "rwkv6", .build = qsf_family_rwkv, .maybe_eps = true, .norm = QSF_NORM_LAYER, .heads = QSF_NO_BLOCK,
      TRAITS(QsfRwkv, .version = 6, .channel_mix = true, .receptance = true) },
    { "rwkv6qwen2", .build = qsf_family_rwkv, .maybe_eps = true, .heads = QSF_KV_BLOCKS,
      TRAITS(QsfRwkv, .version = 6) },
    { "arwkv7", .build = qsf_family_rwkv, .maybe_eps = true, .heads = QSF_NO_BLOCK,
      TRAITS(QsfRwkv, .version = 7, .optional_norm = true, .optional_gate = true) },
    { "kimi-linear", .build = qsf_family_kimi, .heads = QSF_SOME_BLOCKS, .ffn = QSF_SOME_BLOCKS,
      TRAITS(QsfKimi, MOE(.shared_parts = true, LEADING_DIVIDED, .act = QSF_ACT_SILU)) },
    { "kimi-k3", .build = qsf_family_kimi, .heads = QSF_SOME_BLOCKS, .ffn = QSF_SOME_BLOCKS,
      TRAITS(QsfKimi, .bound = QSF_KIMI_MAYBE_BOUND, .negative_factor = true, .mla_gate = QSF_ACT_SIGMOID,
             .maybe_mla_gate = true, .k3 = true,
             MOE(.shared_gate = true, LEADING_SIGMOID, .act = QSF_ACT_SILU)) },
    { "bailingmoe3", NEXTN, .build = qsf_family_kimi, .heads = QSF_SOME_BLOCKS, .ffn = QSF_SOME_BLOCKS,
      TRAITS(QsfKimi, .rope = QSF_ROPE_PAIRS, .bound = QSF_KIMI_BOUND, .mla_gate = QSF_ACT_SIGMOID,
             MOE(LEADING_SIGMOID, .act = QSF_ACT_SILU, .limits = true)) },
    { "minimax-01", .build = qsf_family_minimax01, .ffn = QSF_SOME_BLOCKS,
      TRAITS(QsfMoeRow, .maybe_gated = true, SOFTMAX, .norm = QSF_MOE_NORM_ALWAYS, .act = QSF_ACT_SILU) },
    { "plamo2", .build = qsf_family_plamo2, .heads = QSF_SOME_BLOCKS },
    { "qwen35", NEXTN, .build = qsf_family_qwen_next,
      TRAITS(QsfQwenNext, .sections = QSF_ROPE_SECTIONS_MIXED) },
    { "qwen35moe", NEXTN, .build = qsf_family_qwen_next, .ffn = QSF_SOME_BLOCKS,
      TRAITS(QsfQwenNext, .sections = QSF_ROPE_SECTIONS_MIXED, .moe = &softmax_moe) },
    { "qwen3next", NEXTN, .build = qsf_family_qwen_next, .ffn = QSF_SOME_BLOCKS,
      TRAITS(QsfQwenNext, .fused_beta = true,
             MOE(.blocks = QSF_MOE_BLOCKS_TENSORS, SOFTMAX, .norm = QSF_MOE_NORM_ALWAYS,
                 .act = QSF_ACT_SILU)) },
    { "gemma3n", .build = qsf_family_gemma3n },
    { "gemma4", .build = qsf_family_gemma4 },
    { "deepseek2", NEXTN, .ffn = QSF_SOME_BLOCKS,
      MLA(.rope = QSF_ROPE_PAIRS, SWIGLU, .yarn = QSF_MLA_YARN_UNIT, .moe = &latent_moe) },
    { "mistral4", NEXTN, .ffn = QSF_SOME_BLOCKS,
      MLA(.rope = QSF_ROPE_PAIRS, SWIGLU, .yarn = QSF_MLA_YARN_SCORES, .moe = &latent_moe) },
    { "deepseek32", NEXTN, .ffn = QSF_SOME_BLOCKS,
      MLA(.rope = QSF_ROPE_PAIRS, SWIGLU, .yarn = QSF_MLA_YARN_SCORES, .indexer = QSF_ROPE_HALVES,
          .moe = &keyed_moe) },
    { "dots3note", .ffn = QSF_SOME_BLOCKS,
      MLA(.rope = QSF_ROPE_PAIRS, SWIGLU, .indexer = QSF_ROPE_HALVES, .windows = true, .moe = &keyed_moe) },
    { "glm-dsa", NEXTN, .ffn = QSF_SOME_BLOCKS,
      MLA(.rope = QSF_ROPE_PAIRS, SWIGLU, .yarn = QSF_MLA_YARN_SCORES, .indexer = QSF_ROPE_PAIRS,
          .maybe_key_norm = true, .moe = &sigmoid_moe) },
    { "minicpm3", MLA(.rope = QSF_ROPE_HALVES, SWIGLU, .minicpm = true) },
    { "plm", MLA(.rope = QSF_ROPE_PAIRS, .act = QSF_ACT_RELU2) },
    { "afmoe", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .norms = QSF_NORMS_AROUND, .qk_norm = QSF_QK_NORM_HEAD,
            .gate = QSF_ACT_SIGMOID, WINDOWS_OF_4, .window_zero = true, .rope_period = 4,
            .window_rope = QSF_WINDOW_ROPE_BASE, .embed_sqrt = true, .moe = &sigmoid_moe) },
    { "arctic", .build = qsf_family_arctic, .ffn = QSF_SOME_BLOCKS,
      TRAITS(QsfDense, .rope = QSF_ROPE_PAIRS, SWIGLU, .moe = &softmax_moe) },
    { "bailingmoe", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU, MOE(SOFTMAX, .norm = QSF_MOE_NORM_BY_KEY, .act = QSF_ACT_SILU)) },
    { "bailingmoe2", NEXTN, .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD, .moe = &sigmoid_moe) },
    { "cohere2moe", NEXTN, .norm = QSF_NORM_LAYER, .ffn = QSF_SOME_BLOCKS, .rms_by_key = true,
      DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU, .branches = QSF_BRANCHES_ONE_NORM, WINDOWS_OF_4,
            .window_not_first = true, .rope_blocks = QSF_ROPE_BLOCKS_WINDOW_OR_LEADING,
            .logit_scale = QSF_USE_ALWAYS, MOE(LEADING_SIGMOID, .act = QSF_ACT_SILU, .sum_scale = 0.5f)) },
    { "dbrx", .norm = QSF_NORM_LAYER, .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .ffn_norm = "attn_output_norm", .clamp_qkv = QSF_USE_ALWAYS,
            .moe = &softmax_moe) },
    { "deepseek", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU,
            MOE(.blocks = QSF_MOE_BLOCKS_LEADING, SOFTMAX, .act = QSF_ACT_SILU)) },
    { "deepseek2-ocr", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU,
            MOE(.blocks = QSF_MOE_BLOCKS_LEADING, .gating = QSF_GATING_SOFTMAX, .norm = QSF_MOE_NORM_BY_KEY,
                .act = QSF_ACT_SILU)) },
    { "dots1", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD, .moe = &sigmoid_moe) },
    { "ernie4_5-moe", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU,
            MOE(.maybe_gated = true, .blocks = QSF_MOE_BLOCKS_STEP, SOFTMAX, .norm = QSF_MOE_NORM_ALWAYS,
                .act = QSF_ACT_SILU)) },
    { "exaone-moe", NEXTN, .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD, WINDOWS_OF_4,
            .rope_blocks = QSF_ROPE_BLOCKS_WINDOW, .moe = &sigmoid_moe) },
    { "glm4moe", NEXTN, .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, .sections = QSF_ROPE_SECTIONS_SIDE, SWIGLU,
            .qk_norm = QSF_QK_NORM_HEAD_OPTIONAL, .ffn_norm = "post_attention_norm", .moe = &sigmoid_moe) },
    { "gpt-oss", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .ffn_norm = "post_attention_norm", .window_period = 2,
            .window_rope = QSF_WINDOW_ROPE_BY_KEY, .window_needed = true,
            MOE(.gating = QSF_GATING_SOFTMAX_CHOSEN, .fixed_gating = true, .act = QSF_ACT_SWIGLU_OAI)) },
    { "granite_swa", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU, WINDOWS_OF_4, .pattern_needed = true,
            .rope_blocks = QSF_ROPE_BLOCKS_PATTERN, .granite_scales = true, .moe = &optional_moe) },
    { "granitemoe", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_PAIRS, SWIGLU, .granite_scales = true, .moe = &optional_moe) },
    { "grok", .build = qsf_family_grok, .ffn = QSF_SOME_BLOCKS,
      TRAITS(QsfDense, .rope = QSF_ROPE_HALVES, .norms = QSF_NORMS_AROUND,
             MOE(.maybe_gated = true, SOFTMAX, .norm = QSF_MOE_NORM_ALWAYS, .act = QSF_ACT_GELU,
                 .dense_shared = true, .sum_scale = 0.70710678f)) },
    { "grovemoe", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD,
            MOE(SOFTMAX, .norm = QSF_MOE_NORM_ALWAYS, .act = QSF_ACT_SILU, .adjugate = true)) },
    { "hunyuan-moe", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD_AFTER, .moe = &softmax_moe) },
    { "hy_v3", NEXTN, .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD,
            MOE(MAYBE_SIGMOID, .act = QSF_ACT_SILU)) },
    { "laguna", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD, .gate = QSF_ACT_SOFTPLUS,
            WINDOWS_AFTER_FIRST, .window_rope = QSF_WINDOW_ROPE_PLAIN_BASE, .moe = &sigmoid_moe) },
    { "llama4", .build = qsf_family_llama4, .ffn = QSF_SOME_BLOCKS,
      TRAITS(QsfDense, .rope = QSF_ROPE_PAIRS, SWIGLU, .rope_period = 4,
             MOE(.blocks = QSF_MOE_BLOCKS_STEP, .gating = QSF_GATING_SIGMOID, .fixed_gating = true,
                 .act = QSF_ACT_SILU, .scale_input = true)) },
    { "mellum", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD, .window_period = 4,
            .window_rope = QSF_WINDOW_ROPE_PLAIN, .moe = &softmax_moe) },
    { "mimo2", NEXTN, .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, WINDOW_PATTERN, .value_scale = true,
            MOE(.maybe_gated = true, .blocks = QSF_MOE_BLOCKS_TENSORS, .gating = QSF_GATING_SIGMOID,
                .fixed_gating = true, .norm = QSF_MOE_NORM_ALWAYS, .act = QSF_ACT_SILU)) },
    { "minimax-m2", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = QSF_QK_NORM_ROW,
            MOE(.gating = QSF_GATING_SIGMOID, .norm = QSF_MOE_NORM_ALWAYS, .act = QSF_ACT_SILU)) },
    { "minimax-m3", .build = qsf_family_minimax_m3, .ffn = QSF_SOME_BLOCKS,
      TRAITS(QsfDense, .rope = QSF_ROPE_HALVES, .act = QSF_ACT_SWIGLU_OAI, .gated = true,
             .qk_norm = QSF_QK_NORM_HEAD, MOE(LEADING_SIGMOID, .act = QSF_ACT_SWIGLU_OAI)) },
    { "olmoe", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = QSF_QK_NORM_ROW, MOE(SOFTMAX, .act = QSF_ACT_SILU)) },
    { "phimoe", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .rms_bias = true, .moe = &softmax_moe) },
    { "qwen2moe", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, MOE(SOFTMAX, .act = QSF_ACT_SILU)) },
    { "qwen3moe", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD, .moe = &softmax_moe) },
    { "qwen3vlmoe", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, .sections = QSF_ROPE_SECTIONS_MIXED, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD,
            .moe = &softmax_moe) },
    { "smallthinker", .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, .act = QSF_ACT_RELU, .gated = true, .window_rope = QSF_WINDOW_ROPE_BASE,
            WINDOWS_AFTER_FIRST, .window_size = 4096, .rope_period = 4, .rope_not_first = true,
            .moe = &early_moe) },
    { "step35", .nextn = QSF_NEXTN_RESIDUAL, .ffn = QSF_SOME_BLOCKS,
      DENSE(.rope = QSF_ROPE_HALVES, .half_rope = true, SWIGLU, .qk_norm = QSF_QK_NORM_HEAD_OPTIONAL,
            .gate = QSF_ACT_SIGMOID, .maybe_gate = true, WINDOW_PATTERN,
            MOE(MAYBE_SIGMOID, .shared_parts = true, .act = QSF_ACT_SILU, .limits = true)) },
};

const QsfFamily *qsf_family_at(unsigned i) { return i < sizeof table / sizeof *table ? &table[i] : NULL; }

const QsfFamily *qsf_family_find(const char *name) {
    for (unsigned i = 0; qsf_family_at(i) != NULL; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}
