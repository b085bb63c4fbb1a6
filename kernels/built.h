/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which levels above the reference were compiled in. Where each file has flags of its own (Makefile), all of them;
 * where everything is one file and has one set of flags (QK_ONE_FILE, tools/amalgamate), those that the flags allow. */
#ifndef QSF_KERNELS_BUILT_H
#define QSF_KERNELS_BUILT_H

#ifndef QK_ONE_FILE
#define QK_BUILT_SSE42 1
#define QK_BUILT_AVX2 1
#define QK_BUILT_AVX512 1
#define QK_BUILT_AVX512VNNI 1
#define QK_BUILT_NEON 1
#define QK_BUILT_DOTPROD 1
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

#if QK_BUILT_AVX2 && defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define QK_BUILT_AVX512 1
#else
#define QK_BUILT_AVX512 0
#endif

#if QK_BUILT_AVX512 && defined(__AVX512VNNI__)
#define QK_BUILT_AVX512VNNI 1
#else
#define QK_BUILT_AVX512VNNI 0
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

/* The overlays that there are (kernels/init.c); the Makefile says so otherwise. */
#if QK_BUILT_SSE42
#define QK_ARCH_X86 1
#elif QK_BUILT_NEON
#define QK_ARCH_ARM 1
#endif

#endif
#endif
