/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sixteen rows interleaved: the bytes of a group by the table in kernels/x16/x16.h, the conversion back, and
 * the matmul of groups, which must give the bits of the reference's matmul of rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/x16/x16.h"
#include "tests/kernels/checkkern.h"

enum { SLOT_ROWS, SLOT_GROUP, SLOT_X, SLOT_Y, MAX_ROWS = 256, MAX_COLS = 17, FRONT = 64, Y_PAD = 3 };

/* A run of dwords of the block that are planes without rearrangement. */
typedef struct span {
    uint8_t at, n;
} span;

/* Plane p of a format with rearranged bits, from the block. */
typedef uint32_t (*plane_of)(const uint8_t *block, size_t p);

static uint32_t bits_at(const uint8_t *p, size_t at, int n) {
    uint32_t v = 0;
    for (int i = 0; i < n; i++, at++) v |= (uint32_t)(p[at / 8] >> at % 8 & 1) << i;
    return v;
}

static uint32_t fifths(const uint8_t *qh) {
    uint32_t v = 0;
    for (size_t s = 0; s < 8; s++)
        for (size_t i = 0; i < 4; i++) v |= bits_at(qh, 4 * s + i, 1) << (8 * i + s);
    return v;
}

static uint32_t q5_0_plane(const uint8_t *block, size_t p) {
    return p == 0 ? fifths(block + 2) : bits_at(block + 6, 32 * (p - 1), 32);
}

static uint32_t q5_1_plane(const uint8_t *block, size_t p) {
    return p == 0 ? fifths(block + 4) : bits_at(block + 8, 32 * (p - 1), 32);
}

/* n-bit code of element i of a block, at bit n * i after the halves. */
static uint32_t qsf2_plane(const uint8_t *block, size_t p) {
    uint32_t v = 0;
    for (size_t s = 0; s < 4; s++)
        for (size_t i = 0; i < 4; i++)
            v |= bits_at(block + 4, 2 * (16 * p + 4 * s + i), 2) << (8 * i + 2 * s);
    return v;
}

static uint32_t qsf3_plane(const uint8_t *block, size_t p) {
    uint32_t v = 0;
    for (size_t s = 0; s < (p < 4 ? 4 : 8); s++)
        for (size_t i = 0; i < 4; i++)
            if (p < 4)
                v |= (bits_at(block + 4, 3 * (16 * p + 4 * s + i), 3) & 3) << (8 * i + 2 * s);
            else
                v |= (bits_at(block + 4, 3 * (32 * (p - 4) + 4 * s + i), 3) >> 2) << (8 * i + s);
    return v;
}

static uint32_t qsf4_plane(const uint8_t *block, size_t p) {
    uint32_t v = 0;
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < 4; i++) v |= bits_at(block + 4, 4 * (8 * p + 4 * s + i), 4) << (8 * i + 4 * s);
    return v;
}

static uint32_t qsft_plane(const uint8_t *block, size_t p) {
    uint32_t v = 0;
    for (size_t s = 0; s < 4; s++)
        for (size_t i = 0; i < 4; i++) {
            const size_t e = 16 * p + 4 * s + i;
            const uint32_t sign = bits_at(block + 2, e, 1), zero = bits_at(block + 10, e, 1);
            v |= (zero ? 1u : sign ? 0u : 2u) << (8 * i + 2 * s);
        }
    return v;
}

/* Bit 8i + 2j + s / 4 of plane s % 4: element 32j + 4s + i. */
static uint32_t q1_0_plane(const uint8_t *block, size_t p) {
    uint32_t v = 0;
    for (size_t s = p; s < 8; s += 4)
        for (size_t i = 0; i < 4; i++)
            for (size_t j = 0; j < 4; j++)
                v |= bits_at(block + 2, 32 * j + 4 * s + i, 1) << (8 * i + 2 * j + s / 4);
    return v;
}

static uint32_t q2_0_plane(const uint8_t *block, size_t p) {
    uint32_t v = 0;
    for (size_t s = 0; s < 4; s++)
        for (size_t i = 0; i < 4; i++)
            v |= bits_at(block + 2, 2 * (16 * p + 4 * s + i), 2) << (8 * i + 2 * s);
    return v;
}

static uint32_t i2_plane(const uint8_t *block, size_t p) {
    uint32_t v = 0;
    for (size_t s = 0; s < 4; s++)
        for (size_t i = 0; i < 4; i++) v |= bits_at(block, 2 * (16 * p + 4 * s + i), 2) << (8 * i + 2 * s);
    return v;
}

/* Bit 8i + s: sign of element 4s + i of 32, from four times seven; `eighth` in the places of the eighth. */
static uint32_t signs_of(const uint8_t *p, const size_t at[4], const uint32_t eighth[4]) {
    uint32_t v = 0;
    for (size_t e = 0; e < 32; e++)
        v |= (e % 8 == 7 ? eighth[e / 8] : bits_at(p, at[e / 8] + e % 8, 1)) << (e % 4 * 8 + e / 4);
    return v;
}

/* 28 signs and a scale, whose bits 0, 2, 1, 3 are in the places of the eighth. */
static uint32_t signs_scale(const uint8_t *p) {
    const size_t at[4] = { 0, 7, 14, 21 };
    const uint32_t eighth[4] = { bits_at(p, 28, 1), bits_at(p, 30, 1), bits_at(p, 29, 1), bits_at(p, 31, 1) };
    return signs_of(p, at, eighth);
}

static uint32_t iq2_xxs_plane(const uint8_t *block, size_t p) {
    return p < 8 ? bits_at(block + 2 + 8 * p, 0, 32) : signs_scale(block + 2 + 8 * (p - 8) + 4);
}

static uint32_t iq2_xs_plane(const uint8_t *block, size_t p) {
    const uint8_t *q = block + 2 + p % 8 * 8;
    const size_t at[4] = { 9, 25, 41, 57 };
    uint32_t ninth[4], v = 0;
    for (size_t l = 0; l < 4; l++) {
        v |= bits_at(q, 16 * l, 8) << 8 * l;
        ninth[l] = bits_at(q, 16 * l + 8, 1);
    }
    return p < 8 ? v : p < 16 ? signs_of(q, at, ninth) : bits_at(block + 66, 32 * (p - 16), 32);
}

static uint32_t iq2_s_plane(const uint8_t *block, size_t p) {
    uint32_t v = 0;
    for (size_t i = 0; i < 32 && p >= 8 && p < 16; i++)
        v |= bits_at(block + 34 + 4 * (p - 8), i, 1) << (i % 4 * 8 + i / 4);
    for (size_t n = 0; n < 4 && p >= 16 && p < 18; n++)
        for (size_t l = 0; l < 4; l++)
            v |= bits_at(block + 66 + 4 * (p - 16), 8 * n + 2 * l, 2) << (8 * l + 2 * n);
    return p < 8 ? bits_at(block + 2, 32 * p, 32) : p < 18 ? v : bits_at(block + 74, 32 * (p - 18), 32);
}

static uint32_t iq3_xxs_plane(const uint8_t *block, size_t p) {
    return p < 16 ? bits_at(block + 2, 32 * p, 32) : signs_scale(block + 66 + 4 * (p - 16));
}

static uint32_t iq3_s_plane(const uint8_t *block, size_t p) {
    uint32_t v = 0;
    for (size_t i = 0; i < 32 && p >= 16 && p < 26; i++)
        v |= bits_at(block + 2 + 4 * p, i, 1) << (i % 4 * 8 + i / 4);
    return p >= 16 && p < 26 ? v : bits_at(block + 2, 32 * p, 32);
}

static uint32_t iq1_s_plane(const uint8_t *block, size_t p) {
    uint32_t v = 0;
    for (size_t n = 0; n < 2 && p >= 8; n++) {
        const uint8_t *word = block + 34 + 4 * (p - 8) + 2 * n;
        for (size_t l = 0; l < 4; l++)
            v |= (bits_at(word, 3 * l, 3) | bits_at(word, 12 + l, 1) << 3) << (8 * l + 4 * n);
    }
    return p < 8 ? bits_at(block + 2, 32 * p, 32) : v;
}

/* 13 is both halves. */
static uint32_t iq1_m_plane(const uint8_t *block, size_t p) {
    uint32_t v = 0;
    for (size_t n = 0; n < 8 && p >= 8 && p < 12; n++)
        v |= bits_at(block + 4 * p, 4 * n, 4) << (n % 4 * 8 + n / 4 * 4);
    for (size_t j = 0; j < 16 && p >= 12; j++) {
        const uint32_t s = bits_at(block + 48, j / 4 * 16 + j % 4 * 3, 3);
        v |= p == 12 ? (s & 3) << 2 * j : s >> 2 << (16 + j);
    }
    for (size_t n = 0; n < 4 && p == 13; n++) v |= bits_at(block + 48, 16 * n + 12, 4) << 4 * n;
    return p < 8 ? bits_at(block, 32 * p, 32) : v;
}

/* Three dwords of words, unchanged, then codes, like those of blocks of 64 with the same bits. */
static uint32_t book_plane(const uint8_t *block, size_t p, size_t planes, plane_of codes) {
    return p < 3 ? bits_at(block + 4, 32 * p, 32)
                 : codes(block + 12 + (p - 3) / planes * planes * 4, (p - 3) % planes);
}

static uint32_t qsb2_plane(const uint8_t *block, size_t p) { return book_plane(block, p, 4, qsf2_plane); }

static uint32_t qsb3_plane(const uint8_t *block, size_t p) { return book_plane(block, p, 6, qsf3_plane); }

static uint32_t qsb4_plane(const uint8_t *block, size_t p) { return book_plane(block, p, 8, qsf4_plane); }

/* Which plane of the block comes where in a group, for the formats with another order there (x16/x16.h). */
static const uint8_t q6_k_order[52] = { 48, 32, 0,  33, 1,  34, 2,  35, 3,  36, 4,  37, 5,
                                        38, 6,  39, 7,  49, 8,  9,  10, 11, 12, 13, 14, 15,
                                        50, 40, 16, 41, 17, 42, 18, 43, 19, 44, 20, 45, 21,
                                        46, 22, 47, 23, 51, 24, 25, 26, 27, 28, 29, 30, 31 };
static const uint8_t q3_k_order[27] = { 24, 25, 26, 0, 8,  1,  9,  2,  10, 3,  11, 4,  12, 5,
                                        13, 6,  14, 7, 15, 16, 17, 18, 19, 20, 21, 22, 23 };

static const struct {
    span spans[3];  /* planes in order, or */
    plane_of plane; /* n_planes of these */
    uint8_t n_planes;
    uint8_t halves[2]; /* offsets in the block, plus one */
    uint8_t octet;     /* the same */
    uint8_t last;      /* halves come from this plane */
    const uint8_t *order;
} forms[QK_TYPE_N] = {
    [QK_Q8_0] = { .spans = { { 2, 8 } }, .halves = { 1, 0 } },
    [QK_Q4_0] = { .spans = { { 2, 4 } }, .halves = { 1, 0 } },
    [QK_Q4_1] = { .spans = { { 4, 4 } }, .halves = { 1, 3 } },
    [QK_Q5_0] = { .plane = q5_0_plane, .n_planes = 5, .halves = { 1, 0 } },
    [QK_Q5_1] = { .plane = q5_1_plane, .n_planes = 5, .halves = { 1, 3 } },
    [QK_Q4_K] = { .spans = { { 4, 3 }, { 16, 32 } }, .halves = { 1, 3 } },
    [QK_Q5_K] = { .spans = { { 4, 3 }, { 16, 8 }, { 48, 32 } }, .halves = { 1, 3 } },
    [QK_Q6_K] = { .spans = { { 0, 32 }, { 128, 16 }, { 192, 4 } },
                  .halves = { 209, 0 },
                  .order = q6_k_order },
    [QK_Q2_K] = { .spans = { { 0, 4 }, { 16, 16 } }, .halves = { 81, 83 } },
    [QK_Q3_K] = { .spans = { { 0, 8 }, { 32, 16 }, { 96, 3 } }, .halves = { 109, 0 }, .order = q3_k_order },
    [QK_IQ4_NL] = { .spans = { { 2, 4 } }, .halves = { 1, 0 } },
    [QK_IQ4_XS] = { .spans = { { 4, 1 }, { 8, 32 } }, .halves = { 1, 3 } },
    [QK_TQ1_0] = { .spans = { { 0, 12 }, { 48, 1 } }, .halves = { 53, 0 } },
    [QK_TQ2_0] = { .spans = { { 0, 16 } }, .halves = { 65, 0 } },
    [QK_I2_S] = { .spans = { { 0, 8 } } },
    [QK_QSF2] = { .plane = qsf2_plane, .n_planes = 4, .halves = { 1, 3 } },
    [QK_QSF3] = { .plane = qsf3_plane, .n_planes = 6, .halves = { 1, 3 } },
    [QK_QSF4] = { .plane = qsf4_plane, .n_planes = 8, .halves = { 1, 3 } },
    [QK_QSFT] = { .plane = qsft_plane, .n_planes = 4, .halves = { 1, 0 } },
    [QK_QSB2] = { .plane = qsb2_plane, .n_planes = 19, .halves = { 1, 3 } },
    [QK_QSB3] = { .plane = qsb3_plane, .n_planes = 27, .halves = { 1, 3 } },
    [QK_QSB4] = { .plane = qsb4_plane, .n_planes = 35, .halves = { 1, 3 } },
    [QK_MXFP4] = { .spans = { { 1, 4 } }, .octet = 1 },
    [QK_NVFP4] = { .spans = { { 0, 9 } } },
    [QK_Q1_0] = { .plane = q1_0_plane, .n_planes = 4, .halves = { 1 } },
    [QK_Q2_0] = { .plane = q2_0_plane, .n_planes = 4, .halves = { 1 } },
    [QK_IQ2_XXS] = { .plane = iq2_xxs_plane, .n_planes = 16, .halves = { 1 } },
    [QK_IQ2_XS] = { .plane = iq2_xs_plane, .n_planes = 18, .halves = { 1 } },
    [QK_IQ2_S] = { .plane = iq2_s_plane, .n_planes = 20, .halves = { 1 } },
    [QK_IQ3_XXS] = { .plane = iq3_xxs_plane, .n_planes = 24, .halves = { 1 } },
    [QK_IQ3_S] = { .plane = iq3_s_plane, .n_planes = 27, .halves = { 1 } },
    [QK_IQ1_S] = { .plane = iq1_s_plane, .n_planes = 12, .halves = { 1 } },
    [QK_I2_256] = { .plane = i2_plane, .n_planes = 16 },
    [QK_I2_32] = { .plane = i2_plane, .n_planes = 2, .halves = { 9 } },
    [QK_IQ1_M] = { .plane = iq1_m_plane, .n_planes = 13, .last = 13 },
};

/* Writes the part of row r's block to the group at dst. */
static void put_block(qk_type t, uint8_t *dst, const uint8_t *block, size_t r) {
    for (size_t s = 0; s < 3; s++)
        for (size_t p = 0; p < forms[t].spans[s].n; p++, dst += QK_PLANE)
            memcpy(dst + 4 * r, block + forms[t].spans[s].at + 4 * p, 4);
    for (size_t p = 0; p < forms[t].n_planes; p++, dst += QK_PLANE) {
        const uint32_t v = forms[t].plane(block, p);
        memcpy(dst + 4 * r, &v, sizeof v);
    }
    for (size_t h = 0; h < 2 && forms[t].halves[h]; h++, dst += QK_HALF)
        memcpy(dst + 2 * r, block + forms[t].halves[h] - 1, 2);
    for (size_t h = 0; h < 2 && forms[t].last; h++, dst += QK_HALF) {
        const uint16_t half = (uint16_t)(forms[t].plane(block, forms[t].last) >> 16 * h);
        memcpy(dst + 2 * r, &half, sizeof half);
    }
    if (forms[t].octet) dst[r] = block[forms[t].octet - 1];
}

/* A row after conversion and back: the sign bit of a zero is dropped. */
static void canonical(qk_type t, uint8_t *row, size_t blocks) {
    for (size_t b = 0; t == QK_QSFT && b < blocks; b++)
        for (size_t i = 0; i < 8; i++)
            row[b * sizeof(qk_qsft) + 2 + i] &= (uint8_t)~row[b * sizeof(qk_qsft) + 10 + i];
}

/* Planes in the order of the block to that of their use. */
static void put_in_order(qk_type t, uint8_t *want) {
    uint8_t was[QK_GROUP * 256];
    memcpy(was, want, sizeof was);
    for (size_t p = 0; forms[t].order && p < qk_type_planes(t); p++)
        memcpy(want + p * QK_PLANE, was + forms[t].order[p] * QK_PLANE, QK_PLANE);
}

/* by_block: its planes are in the order of the block. */
static void check_bytes(qk_type t, int by_block, const uint8_t *group, const uint8_t *rows, size_t row_bytes,
                        size_t blocks) {
    const size_t bytes = qk_type_bytes(t);
    uint8_t want[QK_GROUP * 256];
    for (size_t b = 0; b < blocks; b++) {
        memset(want, 0, sizeof want);
        for (size_t r = 0; r < QK_GROUP; r++) put_block(t, want, rows + r * row_bytes + b * bytes, r);
        if (!by_block) put_in_order(t, want);
        for (size_t i = 0; i < QK_GROUP * bytes; i++)
            if (group[b * QK_GROUP * bytes + i] != want[i]) {
                ck_error("block %zu of %zu: byte %zu is %02x, should be %02x", b, blocks, i,
                         group[b * QK_GROUP * bytes + i], want[i]);
                return;
            }
    }
}

static void check_back(const qk_weight_ops *ops, qk_type t, const uint8_t *group, uint8_t *rows,
                       size_t row_bytes, size_t blocks) {
    const size_t n = blocks * qk_type_bytes(t);
    for (unsigned r = 0; r < QK_GROUP; r++) {
        uint8_t *back = (uint8_t *)ck_tail(SLOT_Y, n + FRONT) + FRONT;
        memset(back - FRONT, 0xa5, n + FRONT);
        ops->unpack_row(back, group, r, blocks * qk_type_elems(t));
        canonical(t, rows + r * row_bytes, blocks);
        if (memcmp(back, rows + r * row_bytes, n) != 0)
            ck_error("row %u of %zu blocks does not come back", r, blocks);
        for (size_t i = 1; i <= FRONT; i++)
            if (back[-(ptrdiff_t)i] != 0xa5) ck_error("unpack_row wrote %zu bytes before its row", i);
    }
}

/* A group to the order of the block and back, at any address. */
static void check_order(const qk_weight_ops *ops, qk_type t, const uint8_t *group, const uint8_t *rows,
                        size_t row_bytes, size_t blocks) {
    const size_t n = QK_GROUP * blocks * qk_type_bytes(t), k = blocks * qk_type_elems(t);
    uint8_t *copy = ck_tail(SLOT_X, n);
    if (!ops->by_block != !forms[t].order || !ops->by_use != !forms[t].order)
        ck_error("another order, but no functions for it, or the other way round");
    if (!ops->by_block || !ops->by_use) return;
    memcpy(copy, group, n);
    ops->by_block(copy, k);
    check_bytes(t, 1, copy, rows, row_bytes, blocks);
    ops->by_use(copy, k);
    if (memcmp(copy, group, n) != 0) ck_error("the order of %zu blocks does not come back", blocks);
}

/* Rows with gaps between them, the last ending at the inaccessible page; a group at any address. */
static void pack_case(const qk_weight_ops *ops, qk_type t, size_t blocks, size_t gap, ck_kind kind) {
    const size_t n = blocks * qk_type_bytes(t), row_bytes = n + gap;
    uint8_t *rows = ck_tail(SLOT_ROWS, (QK_GROUP - 1) * row_bytes + n);
    uint8_t *group = (uint8_t *)ck_tail(SLOT_GROUP, QK_GROUP * n + FRONT) + FRONT - ck_below(2);
    for (size_t r = 0; r < QK_GROUP; r++)
        ck_fill_weights(t, rows + r * row_bytes, blocks * qk_type_elems(t), kind);
    memset(group - FRONT + 1, 0xa5, FRONT - 1);
    ops->pack(group, rows, row_bytes, blocks * qk_type_elems(t));
    for (size_t i = 1; i < FRONT; i++)
        if (group[-(ptrdiff_t)i] != 0xa5) ck_error("pack wrote %zu bytes before its group", i);
    check_bytes(t, 0, group, rows, row_bytes, blocks);
    check_order(ops, t, group, rows, row_bytes, blocks);
    check_back(ops, t, group, rows, row_bytes, blocks);
}

static void check_pack(const qk_table *t, int arg) {
    const qk_type type = (qk_type)arg;
    for (size_t blocks = 1; blocks <= ck_some(9) && !ck_failed(); blocks++)
        for (int kind = 0; kind < CK_KINDS; kind++)
            pack_case(&t->weight[type], type, blocks, ck_below(3) * ck_below(70), (ck_kind)kind);
}

typedef struct x16_case {
    qk_type type;
    const qk_weight_ops *ops, *ref;
    qk_mm rows, groups;
    size_t n; /* rows: a multiple of 16 */
} x16_case;

static void fill_case(x16_case *c, const qk_table *ref, ck_kind kind, ck_kind xkind) {
    const size_t k = c->rows.k, cols = c->rows.n_cols, bytes = c->n * c->rows.row_bytes;
    uint8_t *w = ck_tail(SLOT_ROWS, bytes), *g = (uint8_t *)ck_tail(SLOT_GROUP, bytes + 16) + ck_below(17);
    char *x = ck_tail64(SLOT_X, cols * c->rows.x_stride);
    float *f = malloc(k * sizeof *f);
    ck_fill_weights(c->type, w, c->n * k, kind);
    for (size_t r = 0; r < c->n; r += QK_GROUP)
        c->ops->pack(g + r * c->rows.row_bytes, w + r * c->rows.row_bytes, c->rows.row_bytes, k);
    for (size_t col = 0; col < cols; col++) {
        ck_fill_floats(f, k, xkind);
        ref->quantize[c->ops->act](x + col * c->rows.x_stride, f, k);
    }
    free(f);
    c->rows.w = w;
    c->rows.x = x;
    c->groups = c->rows;
    c->groups.w = g;
}

/* Rows [row0, n) of the groups compared with the reference's rows, column by column; of each case those from
 * row 0 first. */
static void compare(const x16_case *c, size_t row0) {
    static float wanted[MAX_COLS][MAX_ROWS]; /* computed at the first row, kept for later calls */
    for (size_t col = 0; col < c->rows.n_cols; col++) {
        float *want = wanted[col];
        const float *y = c->groups.y + col * c->groups.y_stride;
        qk_mm one = c->rows;
        one.x = (const char *)c->rows.x + col * c->rows.x_stride;
        one.n_cols = 1;
        one.y = want;
        if (row0 == 0) c->ref->matmul(&one, 0, c->n);
        if (memcmp(want + row0, y + row0, (c->n - row0) * sizeof *y) != 0)
            ck_error("k=%zu rows=%zu cols=%zu: column %zu of the groups differs from the rows", c->rows.k,
                     c->n, c->rows.n_cols, col);
        for (size_t i = 0; i < c->groups.y_stride; i++) {
            static const unsigned char untouched[4] = { 0x7f, 0x7f, 0x7f, 0x7f };
            if ((i < row0 || i >= c->n) && memcmp(y + i, untouched, 4) != 0)
                ck_error("column %zu: wrote row %zu, outside of %zu..%zu", col, i, row0, c->n);
        }
    }
    ck_dst_ok(SLOT_Y, c->rows.n_cols * c->groups.y_stride);
}

static void matmul_case(const qk_table *t, qk_type type, size_t k, size_t groups, size_t cols, ck_kind kind) {
    const qk_table *ref = ck_table(QK_LEVEL_REF);
    const ck_kind xkind = kind != CK_UNIT && (ck_rand() & 1) ? CK_RANDOM : kind;
    x16_case c = { .type = type, .ops = &t->weight[type], .n = groups * QK_GROUP };
    c.ref = &ref->weight[type];
    c.rows.k = k;
    c.rows.n_cols = cols;
    c.rows.row_bytes = k / qk_type_elems(type) * qk_type_bytes(type);
    c.rows.x_stride = qk_act_bytes(c.ops->act, k);
    c.rows.y_stride = c.n + Y_PAD;
    c.rows.scale = ck_tensor_scale(kind);
    c.rows.way = (qk_way)ck_below(QK_WAY_N);
    c.rows.wide = (int)ck_below(2);
    fill_case(&c, ref, kind, xkind);
    for (size_t row0 = 0; row0 < c.n; row0 += 2 * QK_GROUP) {
        c.groups.y = ck_dst(SLOT_Y, cols * c.rows.y_stride);
        c.ops->matmul16(&c.groups, row0, c.n);
        compare(&c, row0);
    }
}

static void check_matmul16(const qk_table *t, int arg) {
    static const size_t blocks[] = { 1, 2, 3, 5, 7 }, cols[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 17 };
    const qk_type type = (qk_type)arg;
    const size_t be = qk_type_elems(type);
    for (size_t i = 0; i < 12 && !ck_failed(); i++)
        for (size_t j = 0; j < ck_some(3); j++)
            matmul_case(t, type, blocks[ck_below(5)] * be, 1 + ck_below(4), cols[i], CK_RANDOM);
    for (size_t n = 1; n <= 5 && !ck_failed(); n++)
        matmul_case(t, type, n * be, n, cols[ck_below(12)], CK_RANDOM);
    for (int kind = CK_UNIT; kind < CK_KINDS && !ck_failed(); kind++)
        for (size_t j = 0; j < ck_some(4); j++)
            matmul_case(t, type, blocks[ck_below(5)] * be, 1 + ck_below(3), cols[ck_below(12)],
                        (ck_kind)kind);
}

void ck_test_x16(const qk_table *t) {
    for (int type = 0; type < QK_TYPE_N; type++) {
        const qk_weight_ops *w = &t->weight[type];
        char name[64];
        if (!w->pack) continue;
        snprintf(name, sizeof name, "pack_%.*s", (int)(strrchr(w->name, '_') - w->name), w->name);
        ck_check(name, (ck_fn)w->pack, check_pack, t, type);
        snprintf(name, sizeof name, "x16_%s", w->name);
        ck_check(name, (ck_fn)w->matmul16, check_matmul16, t, type);
    }
}
