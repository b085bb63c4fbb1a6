/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Overflow-checked arithmetic; the only arithmetic allowed on numbers from a file. Each function returns
 * false and leaves *out unchanged if the result does not fit. */
#ifndef QSF_BASE_CHECKED_H
#define QSF_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool qsf_mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
    uint64_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}
static inline bool qsf_add_u64(uint64_t a, uint64_t b, uint64_t *out) {
    uint64_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}
/* Returns whether [off, off+len) lies inside [0, size). */
static inline bool qsf_range_ok(uint64_t off, uint64_t len, uint64_t size) {
    return off <= size && len <= size - off;
}
/* Rounds v up to a multiple of n, at least 1. Returns false on overflow. */
static inline bool qsf_round_up_u64(uint64_t v, uint64_t n, uint64_t *out) {
    const uint64_t over = v % n;
    return qsf_add_u64(v, over > 0 ? n - over : 0, out);
}
/* Rounds v up to a multiple of align, a power of two. Returns false on overflow. */
static inline bool qsf_align_up_u64(uint64_t v, uint64_t align, uint64_t *out) {
    uint64_t r;
    if (!qsf_add_u64(v, align - 1, &r)) return false;
    *out = r & ~(align - 1);
    return true;
}

#endif
