/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which levels above the reference were compiled in; each is 1 or 0. If each file has its own flags
 * (kernels/kernels.mk), these are all levels of the architecture; if everything is one file with one set of
 * flags (QK_ONE_FILE, tools/amalgamate), the levels that these flags allow. */
#ifndef QSF_KERNELS_BUILT_H
#define QSF_KERNELS_BUILT_H

#ifndef QK_ONE_FILE

#ifdef QK_ARCH_X86
#define QK_BUILT_X86 1
#else
#define QK_BUILT_X86 0
#endif
#ifdef QK_ARCH_ARM
#define QK_BUILT_ARM 1
#else
#define QK_BUILT_ARM 0
#endif
#define QK_BUILT_SSE42      QK_BUILT_X86
#define QK_BUILT_AVX2       QK_BUILT_X86
#define QK_BUILT_AVX512     QK_BUILT_X86
#define QK_BUILT_AVX512VNNI QK_BUILT_X86
#define QK_BUILT_AVX512VBMI QK_BUILT_X86
#define QK_BUILT_NEON       QK_BUILT_ARM
#define QK_BUILT_DOTPROD    QK_BUILT_ARM
#ifdef QK_ARCH_WASM
#define QK_BUILT_WASM 1
#else
#define QK_BUILT_WASM 0
#endif
/* Whether the compiler knows them is in config.h. */
#if QK_BUILT_ARM && QSF_HAVE_I8MM
#define QK_BUILT_I8MM 1
#else
#define QK_BUILT_I8MM 0
#endif
#if QK_BUILT_X86 && QSF_HAVE_AVXVNNI
#define QK_BUILT_AVXVNNI 1
#else
#define QK_BUILT_AVXVNNI 0
#endif

#else

#if defined(__x86_64__) && defined(__SSE4_2__)
#define QK_BUILT_SSE42 1
#else
#define QK_BUILT_SSE42 0
#endif

#if QK_BUILT_SSE42 && defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define QK_BUILT_AVX2 1
#else
#define QK_BUILT_AVX2 0
#endif

#if QK_BUILT_AVX2 && defined(__AVXVNNI__)
#define QK_BUILT_AVXVNNI 1
#else
#define QK_BUILT_AVXVNNI 0
#endif

#if QK_BUILT_AVX2 && defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define QK_BUILT_AVX512 1
#else
#define QK_BUILT_AVX512 0
#endif

#if QK_BUILT_AVX512 && defined(__AVX512VNNI__)
#define QK_BUILT_AVX512VNNI 1
#else
#define QK_BUILT_AVX512VNNI 0
#endif

#if QK_BUILT_AVX512VNNI && defined(__AVX512VBMI__)
#define QK_BUILT_AVX512VBMI 1
#else
#define QK_BUILT_AVX512VBMI 0
#endif

#if defined(__aarch64__) && defined(__ARM_NEON)
#define QK_BUILT_NEON 1
#else
#define QK_BUILT_NEON 0
#endif

#if QK_BUILT_NEON && defined(__ARM_FEATURE_DOTPROD)
#define QK_BUILT_DOTPROD 1
#else
#define QK_BUILT_DOTPROD 0
#endif

#if QK_BUILT_DOTPROD && defined(__ARM_FEATURE_MATMUL_INT8)
#define QK_BUILT_I8MM 1
#else
#define QK_BUILT_I8MM 0
#endif

/* Web browsers get no single file. */
#define QK_BUILT_WASM 0

#endif

/* The level of a single file: the highest one. */
#ifdef QK_ONE_LEVEL
#if QK_BUILT_AVX512VBMI
#define QK_LEVEL_NATIVE QK_LEVEL_AVX512VBMI
#elif QK_BUILT_AVX512VNNI
#define QK_LEVEL_NATIVE QK_LEVEL_AVX512VNNI
#elif QK_BUILT_AVX512
#define QK_LEVEL_NATIVE QK_LEVEL_AVX512
#elif QK_BUILT_AVXVNNI
#define QK_LEVEL_NATIVE QK_LEVEL_AVXVNNI
#elif QK_BUILT_AVX2
#define QK_LEVEL_NATIVE QK_LEVEL_AVX2
#elif QK_BUILT_SSE42
#define QK_LEVEL_NATIVE QK_LEVEL_SSE42
#elif QK_BUILT_I8MM
#define QK_LEVEL_NATIVE QK_LEVEL_I8MM
#elif QK_BUILT_DOTPROD
#define QK_LEVEL_NATIVE QK_LEVEL_DOTPROD
#elif QK_BUILT_NEON
#define QK_LEVEL_NATIVE QK_LEVEL_NEON
#else
#define QK_LEVEL_NATIVE QK_LEVEL_REF
#endif
/* A number that the preprocessor can join to a name. */
#if QK_BUILT_SSE42 || QK_BUILT_NEON
#define QK_BUILT_NATIVE 1
#else
#define QK_BUILT_NATIVE 0
#endif
#endif
#endif
