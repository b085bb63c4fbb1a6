/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Staged 6-bit scales of 16 rows for Q4_K and Q5_K at AVX-512: the part that mm_kquant_512.h asks
 * its format for. The minimums of row r stand in slot (r % 4) * 4 + r / 4: four slots make one
 * register, and adding four such registers crosswise leaves row r in lane r. */
#ifndef QSF_KERNELS_X86_KSCALE_512_H
#define QSF_KERNELS_X86_KSCALE_512_H

#include "kernels/kscale.h"

enum { FMT_SUB = 32, FMT_OFF = 0, FMT_MIN = 1, FMT_D = 0 };

typedef struct kscales {
    _Alignas(64) uint8_t mn[QK_GROUP][8];
    uint8_t sc[QK_GROUP][8];
} kscales;

QK_INLINE void stage_scales(kscales *s, const qk_rows16 *g)
{
    for (int r = 0; r < QK_GROUP; r++) {
        uint64_t sc, mn;
        qk_kscale_unpack(g->p[r] + 4, &sc, &mn);
        memcpy(s->sc[r], &sc, sizeof sc);
        memcpy(s->mn[r % 4 * 4 + r / 4], &mn, sizeof mn);
    }
}

/* The row's eight scales as 16-bit elements. */
QK_INLINE __m512i row_scales(const kscales *s, const uint8_t *p, int r)
{
    (void)p;
    return _mm512_castsi128_si512(_mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)s->sc[r])));
}

QK_INLINE int32_t scale_at(const kscales *s, const uint8_t *p, int r, int i)
{
    (void)p;
    return s->sc[r][i];
}

QK_INLINE int16_t min_at(const kscales *s, int r, int i)
{
    return s->mn[r % 4 * 4 + r / 4][i];
}

/* Sums of minimums times sums of x for 16 rows; the staged rows stand in the order that makes lanes rows. */
QK_INLINE __m512i mins_sum(const kscales *s, const qk_col_q8k *x, size_t b)
{
    const __m512i sum32 = _mm512_broadcast_i32x4(_mm_load_si128((const void *)(x->sum32 + b * 8)));
    __m512i z[4];
    for (int i = 0; i < 4; i++) {
        const __m256i mn = _mm256_load_si256((const void *)s->mn[4 * i]);
        z[i] = _mm512_madd_epi16(_mm512_cvtepu8_epi16(mn), sum32);
    }
    return qk_sum4_epi32(z[0], z[1], z[2], z[3]);
}

/* 32 bytes twice, the upper copy shifted: low nibbles below, high nibbles above. */
QK_INLINE __m512i nibbles_of(const uint8_t *p)
{
    const __m512i z = _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)p));
    const __m512i shift = _mm512_set_epi64(4, 4, 4, 4, 0, 0, 0, 0);
    return _mm512_and_si512(_mm512_srlv_epi64(z, shift), _mm512_set1_epi8(15));
}

#endif
