/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fills the kernel table: the reference everywhere, then the overlay of this architecture. The
 * Makefile compiles one architecture directory and names it with QK_ARCH_X86 or QK_ARCH_ARM. */
#include "kernels/built.h"
#include "kernels/kernels.h"
#include "kernels/ref/kv.h"
#include "kernels/ref/ref.h"

#if defined(QK_ARCH_X86)
#include "kernels/x86/x86.h"
#elif defined(QK_ARCH_ARM)
#include "kernels/arm/arm.h"
#endif

#define REF_ROWS(fmt) .name = #fmt "_ref", .matmul = qk_mm_##fmt##_ref, .dequant = qk_dequant_##fmt##_ref
#define REF_X16(fmt) .pack = qk_pack_##fmt, .unpack_row = qk_unpack_row_##fmt, .matmul16 = qk_mm16_##fmt##_ref
#define REF_FLOAT(fmt) { .act = QK_ACT_F32, REF_ROWS(fmt) }
#define REF_BLOCK(fmt) { .act = QK_ACT_Q8, REF_ROWS(fmt), REF_X16(fmt) }
#define REF_SUPER(fmt) { .act = QK_ACT_Q8K, REF_ROWS(fmt), REF_X16(fmt) }
#define REF_ROW(a, fmt, TYPE, ggml, elems, bytes, planes, tail, core) [QK_##TYPE] = REF_##core(fmt),
#define REF_KV(fmt)                                                                                          \
    { #fmt, qk_kv_##fmt##_tile_bytes, qk_kv_##fmt##_store_ref, qk_kv_##fmt##_load_ref,                       \
      qk_kv_##fmt##_attend_ref, qk_kv_##fmt##_attend_span_ref, qk_kv_merge_ref }

static const qk_table ref_table = {
    .level = QK_LEVEL_REF,
    .weight = { QK_FORMATS(REF_ROW, ) },
    .kv = {
        [QK_KV_F32] = REF_KV(f32),
        [QK_KV_F16] = REF_KV(f16),
        [QK_KV_Q8] = REF_KV(q8),
    },
    .quantize = {
        [QK_ACT_F32] = qk_quantize_f32_ref,
        [QK_ACT_Q8] = qk_quantize_q8_ref,
        [QK_ACT_Q8K] = qk_quantize_q8k_ref,
    },
    .matmul_exact = qk_matmul_exact_ref,
    .rms_norm = qk_rms_norm_ref,
    .layer_norm = qk_layer_norm_ref,
    .rope_pairs = qk_rope_pairs_ref,
    .rope_halves = qk_rope_halves_ref,
    .rope_pairs_batch = qk_rope_pairs_batch_ref,
    .rope_halves_batch = qk_rope_halves_batch_ref,
    .softmax = qk_softmax_ref,
    .softmax_t = qk_softmax_t_ref,
    .causal_mask = qk_causal_mask_ref,
    .silu_mul = qk_silu_mul_ref,
    .gelu_mul = qk_gelu_mul_ref,
    .gelu_erf_mul = qk_gelu_erf_mul_ref,
    .gelu_fast_mul = qk_gelu_fast_mul_ref,
    .relu2_mul = qk_relu2_mul_ref,
    .add = qk_add_ref,
    .mul = qk_mul_ref,
    .scale = qk_scale_ref,
    .dot = qk_dot_ref,
    .argmax = qk_argmax_ref,
    .top_k = qk_top_k_ref,
    .top_p = qk_top_p_ref,
    .at_least = qk_at_least_ref,
    .draw = qk_draw_ref,
    .f16_to_f32 = qk_f16_to_f32_ref,
    .f32_to_f16 = qk_f32_to_f16_ref,
    .bf16_to_f32 = qk_bf16_to_f32_ref,
    .clamp = qk_clamp_ref,
    .fill = qk_fill_ref,
    .kv_quantize4 = qk_kv_quantize4_ref,
    .kv_dequantize4 = qk_kv_dequantize4_ref,
};

void qk_table_init(qk_table *t, qk_level level)
{
    *t = ref_table;
#if defined(QK_ARCH_X86)
    qk_init_x86(t, level);
#elif defined(QK_ARCH_ARM)
    qk_init_arm(t, level);
#else
    (void)level; /* no overlay for this architecture: the level stays ref */
#endif
}
