/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models of the RWKV line while their programs are built: blocks of a time mix, which differs by version, and
 * a channel mix or a feed-forward network. */
#ifndef QSF_MODEL_FAMILY_RWKV_H
#define QSF_MODEL_FAMILY_RWKV_H

#include "src/model/family/families.h"

#define QSF_RWKV_MAX_RANK (1u << 16)
#define QSF_RWKV6_MIXES   5u

typedef struct QsfRwkvModel {
    QsfBuilder *b;
    const QsfHparams *hp;
    const QsfRwkv *t;
    uint32_t dim, heads, slot;
    uint32_t decay_rank, iclr_rank, value_rank, gate_rank, mix_rank;
    uint32_t lerps; /* parameter of the current block */
    QsfSlice in;    /* slots of the WKV step */
    QsfSlice prev;  /* the position before */
    QsfSlice mix;   /* one mix of it and the current position; version 6: the five of a time mix */
    QsfSlice v0;    /* values of block 0 */
    QsfSlice k, v, y, gate;
} QsfRwkvModel;

/* rwkv.c. Input i of the WKV step. */
QsfSlice qsf_rwkv_slot(const QsfRwkvModel *m, unsigned i);
/* out = in + (in2 - in) * weights, which are elements off and later of a parameter, or
 * (QSF_NONE) the contents of out. */
void qsf_rwkv_lerp(const QsfRwkvModel *m, const char *label, QsfSlice in, QsfSlice in2, uint32_t param,
                   uint32_t off, QsfSlice out);
/* Applies the parameter `name`.weight of out.width elements: op BIAS or GAIN. */
void qsf_rwkv_with_param(const QsfRwkvModel *m, QsfOp op, const char *name, QsfSlice out);
/* out = second * act(first * in) */
void qsf_rwkv_low_rank(const QsfRwkvModel *m, const char *first, const char *second, uint32_t rank,
                       QsfActKind kind, QsfSlice in, QsfSlice out);
/* m->prev = the branch of the position before. */
void qsf_rwkv_shift(const QsfRwkvModel *m, const char *label);
/* y = linear attention over the slots; kv_heads divides m->heads. */
void qsf_rwkv_recurrence(const QsfRwkvModel *m, QsfWkvKind kind, uint32_t kv_heads);
/* y += the current position's own value, weighed with a parameter (heads, dim). */
void qsf_rwkv_bonus(const QsfRwkvModel *m, const char *label, uint32_t param);
/* The norm of y's heads. */
void qsf_rwkv_group_norm(const QsfRwkvModel *m);

/* rwkv7.c and rwkv6.c: read their keys, and append the time mix of a block, from the branch
 * buffer to itself. */
void qsf_rwkv7_read(QsfRwkvModel *m);
void qsf_rwkv7_time_mix(QsfRwkvModel *m, uint32_t block);
void qsf_rwkv6_read(QsfRwkvModel *m);
void qsf_rwkv6_time_mix(QsfRwkvModel *m, uint32_t block);

#endif
