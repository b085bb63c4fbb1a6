/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Families in which some blocks, or all, mix the positions with a recurrence instead of attention. */
#ifndef QSF_MODEL_FAMILY_HYBRID_H
#define QSF_MODEL_FAMILY_HYBRID_H

#include "src/model/moe.h"

typedef enum QsfMixer { QSF_MIXER_MAMBA1, QSF_MIXER_MAMBA2, QSF_MIXER_SHORT_CONV } QsfMixer;

/* Blocks without KV heads have the mixer, others attention. */
typedef struct QsfHybrid {
    QsfMixer mixer;
    bool parallel;        /* every block has both, of one norm, and adds them */
    bool alone;           /* a block with a feed-forward network has nothing else */
    QsfRopeKind rope;     /* NONE: attention without positions */
    bool qk_norm;         /* RMS norm of the heads of Q and K before the rotation */
    QsfActKind act;       /* of the feed-forward network */
    bool gated;           /* down(act(gate(x)) * up(x)); otherwise down(act(up(x))) */
    bool scales;          /* Granite's keys for scales, and rope.scaling.finetuned */
    QsfNeed conv_bias;    /* of Mamba-2 */
    QsfNeed mixer_norm;   /* of Mamba-2 */
    const QsfMoeRow *moe; /* NULL: no experts */
    const char *out_norm; /* the final norm; NULL: "output_norm" */
} QsfHybrid;
void qsf_family_hybrid(QsfBuilder *b);

#endif
