/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CPU features (CPUID and XCR0, or HWCAP) as ascending levels. */
#ifndef QSF_KERNELS_CPU_H
#define QSF_KERNELS_CPU_H

#include "kernels/formats.h"

/* QK_LEVEL_REF, QK_LEVEL_SSE42 and so on. */
#define QK_LEVEL_ENUM(isa, LEVEL, arch, kernels) QK_LEVEL_##LEVEL,
typedef enum qk_level { QK_LEVEL_REF, QK_LEVELS(QK_LEVEL_ENUM) QK_LEVEL_N, QK_LEVEL_UNKNOWN = -1 } qk_level;
#undef QK_LEVEL_ENUM

/* Highest level of this machine; detected once, then constant. Any thread. */
qk_level qk_cpu_best(void);
/* Whether this machine can run the level. */
int qk_cpu_has(qk_level level);
/* The CPUs for which something about the fastest kernels is known (kernels/init.c), by CPUID; AMD is another
 * CPU of AMD than ZEN4 and ZEN5, OTHER is any other CPU. */
typedef enum qk_cpu_family { QK_CPU_OTHER, QK_CPU_INTEL, QK_CPU_AMD, QK_CPU_ZEN4, QK_CPU_ZEN5 } qk_cpu_family;
qk_cpu_family qk_cpu_family_of_machine(void);
/* "ref" "sse42" "avx2" "avxvnni" "avx512" "avx512vnni" "avx512vbmi" "neon" "dotprod" "i8mm" "wasm";
 * the values of --cpu-mask. */
const char *qk_level_name(qk_level level);
qk_level qk_level_parse(const char *word); /* QK_LEVEL_UNKNOWN */

#endif
