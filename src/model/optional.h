/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sets of blocks, and which blocks of a program may be skipped: their input is then their output. Read from
 * the program, so no family needs a word about it. */
#ifndef QSF_MODEL_OPTIONAL_H
#define QSF_MODEL_OPTIONAL_H

#include "src/model/model.h"

#define QSF_OPTIONAL_EDGE 12u /* programs with this many blocks keep two at each end, shorter ones one */

typedef struct QsfBlockSet {
    uint64_t bit[QSF_MAX_LAYERS / 64];
} QsfBlockSet;

static inline bool qsf_blocks_have(const QsfBlockSet *s, uint32_t block) {
    return block < QSF_MAX_LAYERS && (s->bit[block / 64] >> (block % 64) & 1) != 0;
}
static inline void qsf_blocks_add(QsfBlockSet *s, uint32_t block) {
    if (block < QSF_MAX_LAYERS) s->bit[block / 64] |= 1ull << (block % 64);
}
static inline void qsf_blocks_remove(QsfBlockSet *s, uint32_t block) {
    if (block < QSF_MAX_LAYERS) s->bit[block / 64] &= ~(1ull << (block % 64));
}
/* Returns how many blocks are in s. */
uint32_t qsf_blocks_count(const QsfBlockSet *s);
/* Are the same blocks in both? */
bool qsf_blocks_equal(const QsfBlockSet *a, const QsfBlockSet *b);

/* Fills *out with the blocks that may be skipped: all but those at both ends, and but those that others
 * depend on (they leave more than the residual, or others read their KV cache), that have several
 * residual streams, or that have no weights. None if the steps of a block are not together.
 * QSF_E_RUNTIME if out of memory. */
int qsf_optional_blocks(const QsfModel *m, QsfBlockSet *out, QsfErr *err);

#endif
