/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Buffers with guard pages, random numbers, comparison. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/kernels/checkkern.h"

/* PAGE: at least any page size in use. */
enum { PAGE = 65536, SLOT_BYTES = 4 << 20, GUARD_BAND = 192, GUARD_BYTE = 0xa5 };

static unsigned char *slots[CK_SLOTS];

/* Start of the inaccessible page of a slot. */
static unsigned char *slot_end(int slot) {
    if (!slots[slot]) {
        void *p = mmap(NULL, SLOT_BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED || mprotect((char *)p + SLOT_BYTES, PAGE, PROT_NONE) != 0) {
            perror("checkkern: mmap");
            exit(1);
        }
        slots[slot] = p;
    }
    return slots[slot] + SLOT_BYTES;
}

void *ck_tail(int slot, size_t n) {
    if (n > SLOT_BYTES) {
        fprintf(stderr, "checkkern: %zu bytes do not fit a slot\n", n);
        exit(1);
    }
    return slot_end(slot) - n;
}

void *ck_tail64(int slot, size_t n) { return ck_tail(slot, (n + 63) & ~(size_t)63); }

float *ck_dst(int slot, size_t n) {
    unsigned char *p = ck_tail(slot, n * sizeof(float) + GUARD_BAND);
    memset(p, 0x7f, n * sizeof(float)); /* a value that no kernel computes: reveals a missing write */
    memset(p + n * sizeof(float), GUARD_BYTE, GUARD_BAND);
    return (float *)(void *)p;
}

void ck_dst_ok(int slot, size_t n) {
    const unsigned char *p = ck_tail(slot, n * sizeof(float) + GUARD_BAND);
    for (size_t i = 0; i < GUARD_BAND; i++)
        if (p[n * sizeof(float) + i] != GUARD_BYTE) {
            ck_error("wrote %zu bytes behind the end of %zu elements", i + 1, n);
            return;
        }
}

float ck_uniform(void) { return (float)((double)ck_rand() * 0x1p-31 - 1.0); }

/* A sum of four uniform numbers of 16 bits: of [-1, 1) each, it has a variance of 4/3. */
float ck_normal(void) {
    const uint32_t a = ck_rand(), b = ck_rand();
    const int sum = (int)(a & 0xffff) + (int)(a >> 16) + (int)(b & 0xffff) + (int)(b >> 16);
    return (float)(sum - 131070) * (0.8660254f / 32768);
}

const qk_table *ck_table(qk_level level) {
    static qk_table tables[QK_LEVEL_N];
    static int made[QK_LEVEL_N];
    if (!made[level]) qk_table_init(&tables[level], level);
    made[level] = 1;
    return &tables[level];
}

double ck_dot(const double *a, const double *b, size_t n) {
    double sum[4] = { 0 }; /* one would wait for itself */
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t j = 0; j < 4; j++) sum[j] += a[i + j] * b[i + j];
    for (; i < n; i++) sum[0] += a[i] * b[i];
    return sum[0] + sum[1] + (sum[2] + sum[3]);
}

void ck_fill_bytes(void *p, size_t n) {
    unsigned char *b = p;
    for (size_t i = 0; i < n; i++) b[i] = (unsigned char)ck_rand();
}

void ck_near(const char *what, size_t i, double got, double want, double bound) {
    if (isnan(want) ? isnan(got) : got == want || fabs(got - want) <= bound) return;
    ck_error("%s: element %zu is %.9g, should be %.9g (off by %.3g, bound %.3g)", what, i, got, want,
             fabs(got - want), bound);
}

void ck_same_bits(const char *what, const float *got, const float *want, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (memcmp(&got[i], &want[i], sizeof *got) != 0) {
            ck_error("%s: element %zu is %.9g, was %.9g", what, i, (double)got[i], (double)want[i]);
            return;
        }
}

void ck_avx2_bits(const qk_table *t, int kv, const qk_attn *a, size_t floats) {
    if (t->level <= QK_LEVEL_AVX2 || t->level > QK_LEVEL_AVX512VNNI) return;
    float *y = malloc(floats * sizeof *y);
    qk_attn b = *a;
    if (!y) exit(1);
    memcpy(y, a->y, floats * sizeof *y);
    b.y = y;
    ck_table(QK_LEVEL_AVX2)->kv[kv].attend(&b);
    ck_same_bits("avx2", y, a->y, floats);
    free(y);
}
