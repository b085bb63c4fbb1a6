/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of items while it is made: between items_list.c and items_fused.c. */
#ifndef QSF_CONVERT_PACK_ITEMS_IMPL_H
#define QSF_CONVERT_PACK_ITEMS_IMPL_H

#include "src/convert/pack/items.h"

typedef struct QsfLister {
    const QsfSource *s;
    QsfItems *l;
    const QsfFileHeader *head;
    const QsfUses *uses; /* NULL: unknown */
    bool *placed;        /* (tensors of s) */
    QsfErr *err;
} QsfLister;

/* Returns the tensor "blk.N.rest", NULL if there is none. */
const QsfTensor *qsf_lister_in_layer(const QsfLister *c, uint32_t layer, const char *rest);
/* Adds the whole of t as an item. QSF_E_MODEL: QSF has no quantization code for it, or too large a shape. */
int qsf_lister_add(QsfLister *c, uint32_t layer, uint32_t type, const QsfTensor *t);
/* Adds the part of a fused tensor that has this type; *done: there is one. Nothing in architectures without a
 * code, and nothing if the shape of the fused tensor is another one: then it is stored as it is. */
int qsf_lister_add_part(QsfLister *c, uint32_t layer, uint32_t type, bool *done);

#endif
