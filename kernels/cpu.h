/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What this CPU can do (CPUID with XCR0, or HWCAP), as ascending levels. */
#ifndef QSF_KERNELS_CPU_H
#define QSF_KERNELS_CPU_H

typedef enum qk_level {
    QK_LEVEL_REF, QK_LEVEL_SSE42, QK_LEVEL_AVX2, QK_LEVEL_AVX512, QK_LEVEL_AVX512VNNI,
    QK_LEVEL_NEON, QK_LEVEL_DOTPROD, QK_LEVEL_N,
    QK_LEVEL_UNKNOWN = -1
} qk_level;

/* Highest level of this machine; detected once, then constant. Any thread. */
qk_level qk_cpu_best(void);
/* Whether this machine can run the level. */
int qk_cpu_has(qk_level level);
/* "ref" "sse42" "avx2" "avx512" "avx512vnni" "neon" "dotprod"; the words of --cpu-mask. */
const char *qk_level_name(qk_level level);
qk_level qk_level_parse(const char *word); /* QK_LEVEL_UNKNOWN */

#endif
