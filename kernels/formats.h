/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The weight formats and the instruction sets: which exist, and which format has a kernel at which level.
 * These two lists are the only ones. C code uses them through a macro X (the format table of kernels/init.c,
 * the type numbers of kernels/types.c and src/file/dtype.c); kernels/kernels.mk reads the rows to generate
 * one source file per format and level. One row per line: the build reads them with sed.
 *
 * A format's columns:
 *   fmt, TYPE  its name in functions and files (qk_mm_q4_0_avx2), in enumerators and messages (QK_Q4_0,
 *              "Q4_0")
 *   ggml       its number in GGUF (ggml-org/ggml, include/ggml.h; I2_S: microsoft/BitNet), or one of ours
 *   elems      elements in a block
 *   bytes      bytes in a block: the size of qk_<fmt> in kernels/blocks.h
 *   planes     dwords of a block that are stored as planes when 16 rows are interleaved (kernels/x16/x16.h)
 *   tail       bytes after the last row of a tensor: I2_S stores the tensor's scale there
 *   core       the template its matmul is built from; also the form of its activations (qk_act):
 *                FLOAT  kernels/generic/mm_<fmt>.h, rows of floats               QK_ACT_F32
 *                BLOCK  kernels/x16/mm_block.h, a float scale per block          QK_ACT_Q8
 *                SUPER  kernels/x16/mm_super.h, super-blocks of 256 elements     QK_ACT_Q8K
 *                GRID   the same, of indices into a codebook (kernels/grids.h)   QK_ACT_Q8K
 *
 * The order is that of qk_type. X is called as X(a, fmt, TYPE, ...) with the argument a passed through. */
#ifndef QSF_KERNELS_FORMATS_H
#define QSF_KERNELS_FORMATS_H

/* GGML has no numbers for the formats of QSF files; ours start here. */
#define QK_GGML_QSF 0x51530000u

#define QK_FORMATS(X, a)                                                  \
    /*   fmt     TYPE    ggml             elems bytes planes tail core */ \
    X(a, f32, F32, 0, 1, 4, 0, 0, FLOAT)                                  \
    X(a, f16, F16, 1, 1, 2, 0, 0, FLOAT)                                  \
    X(a, bf16, BF16, 30, 1, 2, 0, 0, FLOAT)                               \
    X(a, q8_0, Q8_0, 8, 32, 34, 8, 0, BLOCK)                              \
    X(a, q4_0, Q4_0, 2, 32, 18, 4, 0, BLOCK)                              \
    X(a, q4_1, Q4_1, 3, 32, 20, 4, 0, BLOCK)                              \
    X(a, q5_0, Q5_0, 6, 32, 22, 5, 0, BLOCK)                              \
    X(a, q5_1, Q5_1, 7, 32, 24, 5, 0, BLOCK)                              \
    X(a, q4_k, Q4_K, 12, 256, 144, 35, 0, SUPER)                          \
    X(a, q5_k, Q5_K, 13, 256, 176, 43, 0, SUPER)                          \
    X(a, q6_k, Q6_K, 14, 256, 210, 52, 0, SUPER)                          \
    X(a, q2_k, Q2_K, 10, 256, 84, 20, 0, SUPER)                           \
    X(a, q3_k, Q3_K, 11, 256, 110, 27, 0, SUPER)                          \
    X(a, iq4_nl, IQ4_NL, 20, 32, 18, 4, 0, BLOCK)                         \
    X(a, iq4_xs, IQ4_XS, 23, 256, 136, 33, 0, SUPER)                      \
    X(a, tq1_0, TQ1_0, 34, 256, 54, 13, 0, SUPER)                         \
    X(a, tq2_0, TQ2_0, 35, 256, 66, 16, 0, SUPER)                         \
    X(a, i2_s, I2_S, 36, 128, 32, 8, 32, BLOCK)                           \
    X(a, qsf2, QSF2, QK_GGML_QSF + 1, 64, 20, 4, 0, BLOCK)                \
    X(a, qsf3, QSF3, QK_GGML_QSF + 2, 64, 28, 6, 0, BLOCK)                \
    X(a, qsf4, QSF4, QK_GGML_QSF + 3, 64, 36, 8, 0, BLOCK)                \
    X(a, qsft, QSFT, QK_GGML_QSF + 4, 64, 18, 4, 0, BLOCK)                \
    X(a, qsb2, QSB2, QK_GGML_QSF + 5, 256, 80, 19, 0, SUPER)              \
    X(a, qsb3, QSB3, QK_GGML_QSF + 6, 256, 112, 27, 0, SUPER)             \
    X(a, qsb4, QSB4, QK_GGML_QSF + 7, 256, 144, 35, 0, SUPER)             \
    X(a, mxfp4, MXFP4, 39, 32, 17, 4, 0, BLOCK)                           \
    X(a, nvfp4, NVFP4, 40, 64, 36, 9, 0, BLOCK)                           \
    X(a, q1_0, Q1_0, 41, 128, 18, 4, 0, BLOCK)                            \
    X(a, q2_0, Q2_0, 42, 64, 18, 4, 0, BLOCK)                             \
    X(a, iq2_xxs, IQ2_XXS, 16, 256, 66, 16, 0, GRID)                      \
    X(a, iq2_xs, IQ2_XS, 17, 256, 74, 18, 0, GRID)                        \
    X(a, iq2_s, IQ2_S, 22, 256, 82, 20, 0, GRID)                          \
    X(a, iq3_xxs, IQ3_XXS, 18, 256, 98, 24, 0, GRID)                      \
    X(a, iq3_s, IQ3_S, 21, 256, 110, 27, 0, GRID)                         \
    X(a, iq1_s, IQ1_S, 19, 256, 50, 12, 0, GRID)                          \
    X(a, iq1_m, IQ1_M, 29, 256, 56, 13, 0, GRID)                          \
    X(a, i2_256, I2_256, QK_GGML_QSF + 8, 256, 64, 16, 0, BLOCK)          \
    X(a, i2_32, I2_32, QK_GGML_QSF + 9, 32, 10, 2, 0, BLOCK)              \
    X(a, f8_e4m3, F8_E4M3, QK_GGML_QSF + 11, 1, 1, 0, 0, FLOAT)           \
    X(a, f8_e5m2, F8_E5M2, QK_GGML_QSF + 12, 1, 1, 0, 0, FLOAT)

/* The levels of each architecture, lowest first, and what each has kernels for:
 *   ALL     every format above and every operation of qk_table
 *   PACKED  the BLOCK, SUPER and GRID formats, and attention; all else is inherited from the level below
 *   WEIGHTS the BLOCK, SUPER and GRID formats; all else is inherited from the level below
 *   GRIDS   the GRID formats; all else is inherited from the level below
 * The lowest level is `ref`, which has everything in plain C (kernels/ref). */
#define QK_LEVELS(X)                           \
    /* level      LEVEL       arch  kernels */ \
    X(sse42, SSE42, x86, ALL)                  \
    X(avx2, AVX2, x86, ALL)                    \
    X(avxvnni, AVXVNNI, x86, PACKED)           \
    X(avx512, AVX512, x86, ALL)                \
    X(avx512vnni, AVX512VNNI, x86, PACKED)     \
    X(avx512vbmi, AVX512VBMI, x86, GRIDS)      \
    X(neon, NEON, arm, ALL)                    \
    X(dotprod, DOTPROD, arm, PACKED)           \
    X(i8mm, I8MM, arm, WEIGHTS)                \
    X(wasm, WASM, wasm, ALL)

/* The levels that kernels are compiled for. A single file (QK_ONE_LEVEL, tools/amalgamate) has one, with
 * everything, for the instruction sets that the compiler's flags allow: `native` (kernels/native.h). */
#ifdef QK_ONE_LEVEL
#define QK_KERNEL_LEVELS(X) X(native, NATIVE, any, ALL)
#else
#define QK_KERNEL_LEVELS(X) QK_LEVELS(X)
#endif

#endif
