/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Groups of queries, and the codes of packed tiles (kernels/kvpack.h), for any vector of v_<isa>.h and
 * lanes_<isa>.h. */
#ifndef QSF_KERNELS_GENERIC_KV_CODES_H
#define QSF_KERNELS_GENERIC_KV_CODES_H

#include "kernels/generic/kv.h"
#include "kernels/kvpack.h"

/* Queries of a full group. 16-lane vectors come with 32 registers. */
enum { KV_GROUP = V == 16 ? 8 : 4, KV_CHAINS = 2 * KV_GROUP };

/* Vectors of positions or dimensions processed together for nq queries: enough chains to hide the latency. */
QK_INLINE int kv_wide(int nq) {
    const int n = KV_CHAINS / nq;
    return n > 4 ? 4 : n;
}

/* The codes of quad j of a group whose words are at w, `stride` bytes apart: four bytes in each lane. */
QK_INLINE li kv_codes(int bits, const char *w, size_t stride, int j) {
    const li first = l_load(w);
    if (bits == 8) return L_BIAS ? first : l_xor(first, l_bytes(128)); /* as l_biased returns them */
    if (bits == 4) return l_field(first, 4 * j, 4);
    if (bits == 2) return l_field(first, 2 * j, 2);
    if (j < 3) return l_and(l_load(w + (size_t)j * stride), l_bytes(63));
    const li second = l_load(w + stride), third = l_load(w + 2 * stride);
    return l_or(l_or(l_and(l_shr(first, 6), l_bytes(3)), l_and(l_shr(second, 4), l_bytes(12))),
                l_and(l_shr(third, 2), l_bytes(48)));
}

QK_INLINE li kv_dot(int bits, li sum, li codes, li x) {
    return bits == 8 ? l_dot_signed(sum, codes, x) : l_dot(sum, codes, x);
}

/* What is added to a sum of products with codes, so that it becomes one with the numbers that they are; of:
 * the sum of the other factors. With 2 bits the sum is doubled before. */
QK_INLINE int32_t kv_bias(int bits, int32_t of) {
    return bits == 2 ? -3 * of : -(bits == 8 ? L_BIAS : 1 << (bits - 1)) * of;
}

QK_INLINE li kv_unbias(int bits, li sum, li bias) { return l_add(bits == 2 ? l_add(sum, sum) : sum, bias); }

/* Prefetches a group of nv vectors, `apart` bytes from each other, of what is needed next; at NULL nothing. A
 * few lines in each step: the first cache waits for only about 24 at a time. */
QK_INLINE void kv_ahead_group(const char *at, size_t words, size_t stride, int nv, size_t apart) {
    if (!at) return;
    QK_UNROLL for (int v = 0; v < nv; v++) for (size_t i = 0; i < words; i++)
        __builtin_prefetch(at + (size_t)v * apart + i * stride);
}

/* The same of the scales of n tiles. */
QK_INLINE void kv_ahead_scales(int bits, size_t dim, const char *ahead, size_t n) {
    const size_t bytes = qk_kvp_tile_bytes(bits, dim), codes = qk_kvp_bytes(bits, dim);
    for (size_t t = 0; ahead && t < n; t++) __builtin_prefetch(ahead + t * bytes + codes);
}

/* Before the next plane is added: the sums so far times what its bits are worth. */
QK_INLINE void kv_next_plane(li sum[KV_GROUP][4], int nq, int nv) {
    QK_UNROLL for (int r = 0; r < nq; r++) QK_UNROLL for (int v = 0; v < nv; v++)
        sum[r][v] = l_shl(sum[r][v], 7);
}

QK_INLINE void kv_no_sums(li sum[KV_GROUP][4], int nq, int nv) {
    QK_UNROLL for (int r = 0; r < nq; r++) QK_UNROLL for (int v = 0; v < nv; v++) sum[r][v] = l_set(0);
}

/* Code for each group size that occurs. */
#define KV_INTS_BY(nq, call)             \
    if ((nq) == 1)                       \
        call(1);                         \
    else if ((nq) == 2)                  \
        call(2);                         \
    else if ((nq) == 4 && KV_GROUP != 4) \
        call(4);                         \
    else                                 \
        call(KV_GROUP);

#endif
