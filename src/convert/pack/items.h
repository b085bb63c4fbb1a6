/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tensors of a model in the order of a QSF file (man/qsf-format.5), and the format chosen for each. */
#ifndef QSF_CONVERT_PACK_ITEMS_H
#define QSF_CONVERT_PACK_ITEMS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/convert/quant/measure.h"
#include "src/file/qsf/layout.h"
#include "src/file/qsf/names.h"
#include "src/file/source.h"

#define QSF_FINAL_LAYER UINT32_MAX /* QsfItem.layer of tensors in the final section and of the embedding */

/* Why a tensor did not get the requested format. */
typedef enum QsfKeepReason {
    QSF_WHY_NONE,
    QSF_WHY_VECTOR,   /* norms, biases, routers and the like are never quantized */
    QSF_WHY_ROLE,     /* its role gets more bits: the embedding, the head; in `mixed` others too */
    QSF_WHY_SMALLER,  /* it already has as few bits */
    QSF_WHY_COLUMNS,  /* its rows are not a multiple of the block */
    QSF_WHY_OUTLIERS, /* more than 1 % are outliers */
    QSF_WHY_COSINE,   /* the cosine with fewer bits was below 0.99 */
    QSF_WHY_SIZE,     /* chosen for the target size */
    QSF_WHY_N
} QsfKeepReason;

/* Returns "cosine below 0.99", ...; "" for NONE. */
const char *qsf_keep_reason_text(QsfKeepReason why);

/* What the steps of the model's program do with a tensor. */
typedef enum QsfUse {
    QSF_USE_UNKNOWN, /* nothing, or the program is unknown: the type of the tensor decides */
    QSF_USE_KEEP,    /* vectors, convolutions, routers and other small ones: never quantized or interleaved */
    QSF_USE_LINEAR,  /* multiply by it */
    QSF_USE_HEADS,   /* multiply by its matrices, one for each head */
    QSF_USE_EXPERTS, /* multiply by those of its matrices that were chosen */
    QSF_USE_ROWS     /* look up its rows */
} QsfUse;

typedef struct QsfTensorUse {
    QsfUse use;
    uint32_t role;  /* QSFT_*, QSFT_EMBED: the type whose number of bits fits it */
    uint32_t order; /* of its first use; UINT32_MAX: none */
} QsfTensorUse;

/* The same for all tensors of a source, in its order. */
typedef struct QsfUses {
    QsfTensorUse *tensor; /* (n) */
    uint64_t n;
    bool *whole; /* (n_layers) layers that the engine can only use uncompressed */
    uint32_t n_layers;
} QsfUses;

typedef struct QsfItem {
    const QsfTensor *t, *more; /* more: NULL, or a second tensor appended to the same row (FFN biases) */
    uint32_t layer;            /* or QSF_FINAL_LAYER */
    uint32_t type;             /* QSFT_*, QSFT_EMBED */
    uint32_t role;             /* the type that decides about its number of bits */
    QsfUse use;
    uint32_t order;      /* of its first use */
    uint64_t first;      /* for a part of a tensor fused in GGUF: its first row (bias: element) */
    uint32_t rows, cols; /* as in the QSF file */
    uint32_t experts;    /* 0, or its matrices are stored as tensors of their own, expert by expert, with
                            those of the next items that have such a number */
    const bool *seldom;  /* (experts) NULL, or which of them get another code (expert_uses.h) */
    uint32_t n_seldom;
    uint8_t seldom_code;
    uint8_t keep; /* the code that changes nothing */
    uint8_t code; /* the chosen code; initially `keep` */
    QsfKeepReason why;
    bool x16;             /* interleave its rows by 16 if possible */
    bool groups;          /* its rows are interleaved; depends on code */
    uint64_t bytes;       /* of its rows in the file */
    const float *weights; /* (cols) weights of the squared error by column, NULL: all equal; borrowed */
    uint64_t set_rows;    /* rows of the tensor with the same weights; the next ones have the next
                             (cols). 0: all */
    /* If it was requantized: */
    QsfQuantStats stats;
    uint64_t outliers, clamped; /* values beyond three standard deviations; those clamped to that limit */
} QsfItem;

enum { QSF_ITEM_NAME = 160 };

typedef struct QsfItems {
    QsfItem *item; /* (n): the embedding, the layers, the final section without its norms */
    uint32_t n, n_layers;
    bool tied;      /* no tensor has the type of a head */
    bool norm_bias; /* the final norm has a bias; that it exists is in named.norms */
    uint32_t arch;  /* code for the header: QSFF_CUSTOM if a layer lacks tensors that another code requires */
    QsfNamed named; /* the tensors without a type; names belong to the source, or are in: */
    char (*names)[QSF_ITEM_NAME]; /* of the matrices of experts */
    bool *seldom;                 /* of the items */
} QsfItems;

/* Formats the name that the tensor has if nothing is fused, "blk.3.attn_q.weight". Returns buf. */
const char *qsf_item_name(const QsfItem *i, char buf[QSF_ITEM_NAME]);

/* Returns whether it is a matrix that can be quantized to few bits. */
bool qsf_item_is_matrix(const QsfItem *i);

/* Lists all tensors of s; head has the fixed fields of s; uses may be NULL. together: the matrices of each
 * expert are stored one after the other, as tensors of their own, where uses say which they are. A tensor
 * that has no type, or not the shape of its type, becomes a named one. QSF_E_MODEL names a tensor that QSF
 * cannot store, or an embedding that is missing; QSF_E_RUNTIME if out of memory. The caller frees the
 * list. */
int qsf_items_list(QsfItems *out, const QsfSource *s, const QsfFileHeader *head, const QsfUses *uses,
                   bool together, QsfErr *err);
void qsf_items_free(QsfItems *l); /* *l may be zeroed */

/* Returns how many matrices of an expert a tensor with this GGUF name has: 1, or 2 (gate and up); 0: it is
 * not one of experts. */
uint32_t qsf_expert_pieces(const char *stacked);
/* Formats the name of one of them, "blk.3.ffn_gate.7.weight". Returns buf. */
const char *qsf_expert_name(const char *stacked, uint32_t expert, uint32_t piece, char buf[QSF_ITEM_NAME]);
/* For qsf_items_list: finds the experts, and makes room for their names. QSF_E_RUNTIME if out of memory. */
int qsf_items_part_experts(QsfItems *l, const char *path, QsfErr *err);
/* Returns how many items, from item k, are stored expert by expert; 1: item k is stored as it is. */
uint32_t qsf_items_run(const QsfItems *l, uint32_t k);
/* Returns the number of tensors that these n items are stored as. */
uint32_t qsf_items_parts(const QsfItems *l, uint32_t k, uint32_t n);
/* Sets *out to the at-th of them, with its code, and its name. Returns the item that it is a part of. */
uint32_t qsf_items_part(const QsfItems *l, uint32_t k, uint32_t at, QsfItem *out, char name[QSF_ITEM_NAME]);

/* Sets code, groups and bytes. block: block size of codes 0 to 4. QSF_E_RUNTIME for an impossible code. */
int qsf_item_become(QsfItem *i, uint8_t code, uint32_t block, QsfKeepReason why, QsfErr *err);
/* Sets x16 of all items, and updates groups and bytes. QSF_E_RUNTIME as above. */
int qsf_items_lay_out(QsfItems *l, bool x16, uint32_t block, QsfErr *err);

#endif
