/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Detects the ISA level: CPUID leaves 1 and 7 together with XCR0 on x86 (the operating system must also save
 * the wide registers), the auxiliary vector on ARM, on macOS sysctl(3), nothing on WebAssembly. */
#include "kernels/cpu.h"
#include "kernels/built.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#define NAME(isa, LEVEL, arch, kernels) #isa,
static const char *const level_names[QK_LEVEL_N] = { "ref", QK_LEVELS(NAME) };

#if defined(__x86_64__) || defined(__i386__)

#define BIT(n) (UINT32_C(1) << (n))

enum {
    XCR0_SSE_AVX = 0x06, /* xmm and ymm state */
    XCR0_AVX512 = 0xe0,  /* mask registers, upper halves, zmm16-31 */
};

static uint64_t read_xcr0(void) {
    uint32_t lo, hi;
    /* By opcode, because the intrinsic needs -mxsave; the instruction itself needs only OSXSAVE. */
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

static int has_all(uint32_t word, uint32_t mask) { return (word & mask) == mask; }

/* AVX-VNNI, the dot products without AVX-512. */
static int has_avxvnni(void) {
    uint32_t a, b, c, d;
#ifdef QK_AVXVNNI_EVEX /* AVX512VL and AVX512_VNNI instead */
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & BIT(31)) && (c & BIT(11));
#endif
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) &&
           (a & BIT(4));
}

/* Intel SDM volume 2A, CPUID: leaf 1 ecx, leaf 7 subleaf 0 ebx and ecx, subleaf 1 eax. */
static uint32_t detect(void) {
    const uint32_t c1_sse42 = BIT(9) | BIT(19) | BIT(20) | BIT(23); /* SSSE3 SSE4.1 SSE4.2 POPCNT */
    const uint32_t c1_avx = BIT(12) | BIT(27) | BIT(28) | BIT(29);  /* FMA OSXSAVE AVX F16C */
    const uint32_t b7_512 = BIT(16) | BIT(17) | BIT(30) | BIT(31);  /* F DQ BW VL */
    uint32_t a, b1, c1, d1, b7 = 0, c7 = 0, d7 = 0, levels = BIT(QK_LEVEL_REF);
    uint64_t xcr0;
    if (!__get_cpuid(1, &a, &b1, &c1, &d1) || !has_all(c1, c1_sse42)) return levels;
    levels |= BIT(QK_LEVEL_SSE42);
    if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d7) || !has_all(c1, c1_avx)) return levels;
    xcr0 = read_xcr0();
    if ((xcr0 & XCR0_SSE_AVX) != XCR0_SSE_AVX || !(b7 & BIT(5))) /* AVX2 */
        return levels;
    levels |= BIT(QK_LEVEL_AVX2);
    if (has_avxvnni()) levels |= BIT(QK_LEVEL_AVXVNNI);
    if ((xcr0 & XCR0_AVX512) != XCR0_AVX512 || !has_all(b7, b7_512)) return levels;
    levels |= BIT(QK_LEVEL_AVX512);
    if (!(c7 & BIT(11))) /* AVX512_VNNI */
        return levels;
    levels |= BIT(QK_LEVEL_AVX512VNNI);
    if (c7 & BIT(1)) /* AVX512_VBMI */
        levels |= BIT(QK_LEVEL_AVX512VBMI);
    return levels;
}

/* AMD PPR, CPUID function 1 eax: the extended family is added to the base family. Family 19h is Zen 3 without
 * AVX-512 and Zen 4 with it, 1Ah is Zen 5. */
static qk_cpu_family amd_family(void) {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return QK_CPU_AMD;
    const uint32_t family = (a >> 8 & 0xf) + (a >> 20 & 0xff);
    if (family == 0x1a) return QK_CPU_ZEN5;
    return family == 0x19 && qk_cpu_has(QK_LEVEL_AVX512) ? QK_CPU_ZEN4 : QK_CPU_AMD;
}

static qk_cpu_family find_family(void) {
    unsigned max, part[3];
    char name[sizeof part + 1] = { 0 };
    if (!__get_cpuid(0, &max, &part[0], &part[2], &part[1])) return QK_CPU_OTHER;
    memcpy(name, part, sizeof part);
    if (!strcmp(name, "AuthenticAMD")) return amd_family();
    return !strcmp(name, "GenuineIntel") ? QK_CPU_INTEL : QK_CPU_OTHER;
}

#elif defined(__aarch64__)

static qk_cpu_family find_family(void) { return QK_CPU_OTHER; }

#if defined(__linux__)   /* arch/arm64/include/uapi/asm/hwcap.h */
static int has_dotprod(void) { return (getauxval(AT_HWCAP) >> 20 & 1) != 0; }
static int has_i8mm(void) { return (getauxval(AT_HWCAP2) >> 13 & 1) != 0; }
#elif defined(__APPLE__) /* "Determining Instruction Set Characteristics" of Apple */
static int has(const char *feature) {
    int yes = 0;
    size_t bytes = sizeof yes;
    return sysctlbyname(feature, &yes, &bytes, NULL, 0) == 0 && yes != 0;
}
static int has_dotprod(void) { return has("hw.optional.arm.FEAT_DotProd"); }
static int has_i8mm(void) { return has("hw.optional.arm.FEAT_I8MM"); }
#else
static int has_dotprod(void) { return 0; }
static int has_i8mm(void) { return 0; }
#endif

static uint32_t detect(void) {
    uint32_t levels = 1u << QK_LEVEL_REF | 1u << QK_LEVEL_NEON; /* NEON is part of the base ISA */
    if (!has_dotprod()) return levels;
    levels |= 1u << QK_LEVEL_DOTPROD;
    return has_i8mm() ? levels | 1u << QK_LEVEL_I8MM : levels;
}

#elif defined(__wasm__)

static qk_cpu_family find_family(void) { return QK_CPU_OTHER; }

/* A module with vectors is refused as a whole where there are none. */
static uint32_t detect(void) { return 1u << QK_LEVEL_REF | 1u << QK_LEVEL_WASM; }

#else

static qk_cpu_family find_family(void) { return QK_CPU_OTHER; }

static uint32_t detect(void) { return 1u << QK_LEVEL_REF; }

#endif

/* CPUID takes a hypervisor tens of microseconds, and every table of kernels asks. */
qk_cpu_family qk_cpu_family_of_machine(void) {
    static _Atomic uint32_t cached; /* plus one; racing threads find the same value */
    uint32_t family = atomic_load_explicit(&cached, memory_order_relaxed);
    if (!family) {
        family = (uint32_t)find_family() + 1;
        atomic_store_explicit(&cached, family, memory_order_relaxed);
    }
    return (qk_cpu_family)(family - 1);
}

#define BUILT(isa, LEVEL, arch, kernels) | (uint32_t)QK_BUILT_##LEVEL << QK_LEVEL_##LEVEL
static uint32_t levels_built(void) { return 1u << QK_LEVEL_REF QK_KERNEL_LEVELS(BUILT); }

static uint32_t levels_of_machine(void) {
    /* Racing threads find the same value, so the order of the stores does not matter. */
    static _Atomic uint32_t cached;
    uint32_t levels = atomic_load_explicit(&cached, memory_order_relaxed);
    if (!levels) {
        levels = detect() & levels_built();
        atomic_store_explicit(&cached, levels, memory_order_relaxed);
    }
    return levels;
}

int qk_cpu_has(qk_level level) {
    return level >= 0 && level < QK_LEVEL_N && (levels_of_machine() >> level & 1u);
}

qk_level qk_cpu_best(void) {
    int best = QK_LEVEL_REF;
    for (int l = 0; l < QK_LEVEL_N; l++)
        if (qk_cpu_has((qk_level)l)) best = l;
    return (qk_level)best;
}

const char *qk_level_name(qk_level level) {
    return level >= 0 && level < QK_LEVEL_N ? level_names[level] : "unknown";
}

qk_level qk_level_parse(const char *word) {
    for (int l = 0; word && l < QK_LEVEL_N; l++)
        if (strcmp(word, level_names[l]) == 0) return (qk_level)l;
    return QK_LEVEL_UNKNOWN;
}
