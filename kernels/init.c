/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fills the kernel table: with the reference first, then level by level with the kernels listed in
 * kernels/formats.h. */
#include "kernels/built.h"
#include "kernels/generic/kv.h"
#include "kernels/generic/mm.h"
#include "kernels/generic/ops.h"
#include "kernels/kernels.h"
#include "kernels/kvsize.h"
#include "kernels/ref/kv.h"
#include "kernels/ref/ref.h"

#define REF_ROWS(fmt) .name = #fmt "_ref", .matmul = qk_mm_##fmt##_ref, .dequant = qk_dequant_##fmt##_ref

#define REF_X16(fmt) .pack = qk_pack_##fmt, .unpack_row = qk_unpack_row_##fmt, .matmul16 = qk_mm16_##fmt##_ref
#define REF_FLOAT(fmt, tail) \
    { .act = QK_ACT_F32, REF_ROWS(fmt) }
#define REF_BLOCK(fmt, tail) \
    { .act = QK_ACT_Q8, .scaled = (tail) != 0, REF_ROWS(fmt), REF_X16(fmt) }
#define REF_SUPER(fmt, tail) \
    { .act = QK_ACT_Q8K, REF_ROWS(fmt), REF_X16(fmt) }
#define REF_GRID(fmt, tail)                                           REF_SUPER(fmt, tail)
#define REF_ROW(a, fmt, TYPE, ggml, elems, bytes, planes, tail, core) [QK_##TYPE] = REF_##core(fmt, tail),
#define REF_KV(a, fmt, NAME, bits, latent, dims)      \
    [QK_KV_##NAME] = { #fmt,                          \
                       qk_kv_##fmt##_tile_bytes,      \
                       qk_kv_##fmt##_store_ref,       \
                       qk_kv_##fmt##_load_ref,        \
                       qk_kv_##fmt##_copy_ref,        \
                       qk_kv_##fmt##_attend_ref,      \
                       qk_kv_##fmt##_attend_span_ref, \
                       qk_kv_merge_ref },

#define REF_GATE(name, NAME) [QK_GATE_##NAME] = qk_##name##_mul_ref,

static const qk_table ref_table = {
    .level = QK_LEVEL_REF,
    .weight = { QK_FORMATS(REF_ROW, ) },
    .kv = { QK_KV_TYPES(REF_KV, ) },
    .quantize = {
        [QK_ACT_F32] = qk_quantize_f32_ref,
        [QK_ACT_Q8] = qk_quantize_q8_ref,
        [QK_ACT_Q8K] = qk_quantize_q8k_ref,
    },
    .matmul_exact = qk_matmul_exact_ref,
    .rms_norm = qk_rms_norm_ref,
    .layer_norm = qk_layer_norm_ref,
    .l2_norm = qk_l2_norm_ref,
    .rope_pairs_batch = qk_rope_pairs_batch_ref,
    .rope_halves_batch = qk_rope_halves_batch_ref,
    .softmax_t = qk_softmax_t_ref,
    .gate = { QK_GATES(REF_GATE) },
    .swiglu_mul = qk_swiglu_mul_ref,
    .xielu_mul = qk_xielu_mul_ref,
    .add = qk_add_ref,
    .mul = qk_mul_ref,
    .scale = qk_scale_ref,
    .lerp = qk_lerp_ref,
    .softcap = qk_softcap_ref,
    .thin_f16 = qk_thin_f16_ref,
    .thin_f32 = qk_thin_f32_ref,
    .mix_streams = qk_mix_streams_ref,
    .correct_streams = qk_correct_streams_ref,
    .keep_above = qk_keep_above_ref,
    .argmax = qk_argmax_ref,
    .top_k = qk_top_k_ref,
    .top_p = qk_top_p_ref,
    .at_least = qk_at_least_ref,
    .draw = qk_draw_ref,
    .clamp = qk_clamp_ref,
    .scan_each = qk_scan_each_ref,
    .scan_one = qk_scan_one_ref,
    .delta = qk_delta_ref,
    .wkv = qk_wkv_ref,
    .conv = qk_conv_ref,
};

#define SET_ALL(isa)    \
    QK_SET_FORMATS(isa) \
    QK_SET_OPS(t, isa); \
    QK_SET_KV(t, isa);
#define SET_PACKED(isa)        \
    QK_SET_PACKED_FORMATS(isa) \
    QK_SET_KV(t, isa);
#define SET_WEIGHTS(isa) QK_SET_PACKED_FORMATS(isa)
#define SET_GRIDS(isa)   QK_SET_GRID_FORMATS(isa)

/* Code for a level that was not compiled in must be hidden: its kernels do not exist. */
#define WHEN_0(...)
#define WHEN_1(...)          __VA_ARGS__
#define WHEN_EXPANDED(built) WHEN_##built
#define WHEN(built)          WHEN_EXPANDED(built)
#define SET_LEVEL(isa, LEVEL, arch, kernels) \
    WHEN(QK_BUILT_##LEVEL)                   \
    (if (level >= QK_LEVEL_##LEVEL) {        \
        t->level = QK_LEVEL_##LEVEL;         \
        SET_##kernels(isa)                   \
    })

const char *qk_way_name(qk_way way) {
    static const char *const names[QK_WAY_N] = { "turns", "alone", "far", "ahead" };
    return names[way];
}

/* On Zen 4 the hardware follows one ascending stream best, unless a block is not read in order, or so slowly
 * that the next bytes are not requested soon enough. */
static qk_way zen4_way(qk_type type) {
    switch (type) {
    case QK_IQ4_XS:
    case QK_NVFP4: return QK_WAY_FAR;
    case QK_IQ3_S:
    case QK_IQ3_XXS:
    case QK_IQ2_S:
    case QK_IQ2_XS:
    case QK_IQ2_XXS:
    case QK_IQ1_M:
    case QK_IQ1_S: return QK_WAY_TURNS;
    default: return QK_WAY_ALONE;
    }
}

static qk_way way_for(qk_cpu_family cpu, qk_type type, qk_act act) {
    if (cpu == QK_CPU_ZEN4) return zen4_way(type);
    /* Float rows do not take turns: on Intel, too, they need the prefetch. */
    return cpu == QK_CPU_ZEN5 || act == QK_ACT_F32 ? QK_WAY_AHEAD : QK_WAY_TURNS;
}

int qk_ways_are_known(void) {
    const qk_cpu_family cpu = qk_cpu_family_of_machine();
    return cpu == QK_CPU_ZEN5 || (cpu == QK_CPU_INTEL && qk_cpu_has(QK_LEVEL_AVX512));
}

/* These multiply 32-bit integers as fast as pairs of int16. */
static int is_amd(qk_cpu_family cpu) { return cpu == QK_CPU_AMD || cpu == QK_CPU_ZEN4 || cpu == QK_CPU_ZEN5; }

#define SET_ORDER(fmt, TYPE)                    \
    weight[QK_##TYPE].by_use = qk_by_use_##fmt; \
    weight[QK_##TYPE].by_block = qk_by_block_##fmt;

static void set_orders(qk_weight_ops weight[QK_TYPE_N]) { QK_BY_USE(SET_ORDER) }

void qk_table_init(qk_table *t, qk_level level) {
    (void)level; /* unused if only the reference was compiled in */
    *t = ref_table;
    QK_KERNEL_LEVELS(SET_LEVEL)
    set_orders(t->weight);
    const qk_cpu_family cpu = qk_cpu_family_of_machine();
    for (int type = 0; type < QK_TYPE_N; type++) {
        t->weight[type].way = way_for(cpu, (qk_type)type, t->weight[type].act);
        t->weight[type].wide = is_amd(cpu);
    }
}
