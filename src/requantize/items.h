/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tensors of a model in the order in which a QSF file has them (man/qsf-format.5), and what becomes of each. */
#ifndef QSF_PACK_ITEMS_H
#define QSF_PACK_ITEMS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/format/qsf_layout.h"
#include "src/format/source.h"
#include "src/quant/measure.h"

#define QSF_FINAL_LAYER UINT32_MAX /* QsfItem.layer of what stands in the final section, and of the embedding */

/* Why a tensor did not become what was asked for. */
typedef enum QsfKeepReason {
    QSF_WHY_NONE,
    QSF_WHY_VECTOR,   /* norms, biases, routers and the like are never quantized */
    QSF_WHY_ROLE,     /* its role gets more bits: the embedding, the head; in `mixed` others too */
    QSF_WHY_SMALLER,  /* it is stored in no more bits already */
    QSF_WHY_COLUMNS,  /* its rows are no multiple of a block */
    QSF_WHY_OUTLIERS, /* more than 1 % are outliers */
    QSF_WHY_COSINE,   /* the cosine with fewer bits was below 0.99 */
    QSF_WHY_SIZE,     /* the target size had room for it, or for no more */
    QSF_WHY_N
} QsfKeepReason;

/* "cosine below 0.99"; "" for NONE. */
const char *qsf_keep_reason_text(QsfKeepReason why);

typedef struct QsfItem {
    const QsfTensor *t, *more; /* more: NULL, or a second tensor whose rows follow in the same row (FFN biases) */
    uint32_t layer;            /* or QSF_FINAL_LAYER */
    uint32_t type;             /* QSFT_*, QSFT_EMBED */
    uint64_t first;            /* of a part of t, where GGUF fuses what QSF does not: its first row (element, of a bias) */
    uint32_t rows, cols;       /* as the QSF file counts them */
    uint8_t keep;              /* the code that changes nothing */
    uint8_t code;              /* what it becomes; `keep` from the start */
    QsfKeepReason why;
    bool x16;                  /* its rows are to be interleaved by 16 where that can be */
    bool groups;               /* they are; follows code */
    uint64_t bytes;            /* of its rows in the file */
    const float *weights;      /* (cols) of the squared error of a column, NULL: all equal; not the item's own */
    /* When it was packed anew: */
    QsfQuantStats stats;
    uint64_t outliers, clamped;/* values beyond three standard deviations; those that were pulled to that limit */
} QsfItem;

typedef struct QsfItems {
    QsfItem *item;  /* (n): the embedding, layer by layer, the final section. Its norms are not among them */
    uint32_t n, n_layers;
    bool tied;      /* there is no head of its own */
} QsfItems;

enum { QSF_ITEM_NAME = 96 };
/* "blk.3.attn_q.weight": its name where nothing is fused. Returns buf. */
const char *qsf_item_name(const QsfItem *i, char buf[QSF_ITEM_NAME]);

/* Is it a matrix that formats of few bits are for? */
bool qsf_item_is_matrix(const QsfItem *i);

/* Lists all of s, of which head has the fixed fields. QSF_E_MODEL names a tensor that QSF has no
 * place for, or that is missing or of another shape than QSF has; QSF_E_RUNTIME without memory. The caller frees. */
int qsf_items_list(QsfItems *out, const QsfSource *s, const QsfFileHeader *head, QsfErr *err);
void qsf_items_free(QsfItems *l); /* a zeroed one is allowed */

/* Sets code, groups and bytes. block: elements of a block of codes 0 to 4. QSF_E_RUNTIME for an impossible code. */
int qsf_item_become(QsfItem *i, uint8_t code, uint32_t block, QsfKeepReason why, QsfErr *err);
/* Sets x16 of all items, and groups and bytes with it. QSF_E_RUNTIME as above. */
int qsf_items_lay_out(QsfItems *l, bool x16, uint32_t block, QsfErr *err);

#endif
