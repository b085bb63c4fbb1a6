/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Staged 6-bit scales of 8 rows for Q4_K and Q5_K at AVX2: the part that mm_kquant_avx2.h asks its
 * format for. The minimums of row r stand in slot (r % 4) * 2 + r / 4: two slots make one
 * register, and adding four such registers crosswise leaves row r in lane r. */
#ifndef QSF_KERNELS_X86_KSCALE_AVX2_H
#define QSF_KERNELS_X86_KSCALE_AVX2_H

#include "kernels/kscale.h"

enum { FMT_SUB = 32, FMT_OFF = 0, FMT_MIN = 1, FMT_D = 0 };

typedef struct kscales {
    _Alignas(32) uint8_t mn[QK_GROUP][8];
    uint8_t sc[QK_GROUP][8];
} kscales;

QK_INLINE void stage_scales(kscales *s, const qk_rows8 *g)
{
    for (int r = 0; r < QK_GROUP; r++) {
        uint64_t sc, mn;
        qk_kscale_unpack(g->p[r] + 4, &sc, &mn);
        memcpy(s->sc[r], &sc, sizeof sc);
        memcpy(s->mn[r % 4 * 2 + r / 4], &mn, sizeof mn);
    }
}

/* The row's eight scales as 16-bit elements, in both halves. */
QK_INLINE __m256i row_scales(const kscales *s, const uint8_t *p, int r)
{
    (void)p;
    return _mm256_broadcastsi128_si256(_mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)s->sc[r])));
}

/* The scale of elements 32j.. in every 16-bit element. */
QK_INLINE __m256i spread_scales(__m256i sc, int j)
{
    return _mm256_shuffle_epi8(sc, _mm256_set1_epi16((short)((2 * j + 1) << 8 | 2 * j)));
}

QK_INLINE int32_t scale_at(const kscales *s, const uint8_t *p, int r, int i)
{
    (void)p;
    return s->sc[r][i];
}

QK_INLINE int16_t min_at(const kscales *s, int r, int i)
{
    return s->mn[r % 4 * 2 + r / 4][i];
}

/* Sums of minimums times sums of x for 8 rows. */
QK_INLINE __m256i mins_sum(const kscales *s, const qk_col_q8k *x, size_t b)
{
    const __m256i sum32 = _mm256_broadcastsi128_si256(_mm_load_si128((const void *)(x->sum32 + b * 8)));
    __m256i z[4];
    for (int i = 0; i < 4; i++) {
        const __m128i mn = _mm_load_si128((const void *)s->mn[2 * i]);
        z[i] = _mm256_madd_epi16(_mm256_cvtepu8_epi16(mn), sum32);
    }
    return qk_sum4_epi32(z[0], z[1], z[2], z[3]);
}

/* Elements 32j.. of the nibbles at p. */
QK_INLINE __m256i nibbles_of(const uint8_t *p, int j)
{
    const __m256i z = _mm256_loadu_si256((const void *)(p + j / 2 * 32));
    return _mm256_and_si256(_mm256_srli_epi16(z, j % 2 * 4), _mm256_set1_epi8(15));
}

#endif
