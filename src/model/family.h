/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of model families. A family turns metadata and tensors into a program (docs/MODELS.md): it
 * declares its tensors and appends steps with the vocabulary of build.h. To add an architecture, add a row to
 * table.c; if no existing builder covers it, add a file to src/model/family. */
#ifndef QSF_MODEL_FAMILY_H
#define QSF_MODEL_FAMILY_H

#include "src/model/program.h"

struct QsfBuilder;

/* The values that a number of each block may have. */
typedef enum QsfPresence {
    QSF_EACH_BLOCK,  /* 1 or more in every block */
    QSF_SOME_BLOCKS, /* 0 in blocks without */
    QSF_KV_BLOCKS,   /* the same, and there may be KV heads without heads */
    QSF_NO_BLOCK     /* the key is not read */
} QsfPresence;

/* Which state of the model its next-token blocks read: none, so that these are not run; the residual stream
 * after the last block; the same after the norm of the head. */
typedef enum QsfNextnState { QSF_NEXTN_NONE, QSF_NEXTN_RESIDUAL, QSF_NEXTN_NORMED } QsfNextnState;

typedef struct QsfFamily {
    const char *name; /* general.architecture, also the prefix of metadata keys */
    /* Builds the program. Errors are kept in the builder. */
    void (*build)(struct QsfBuilder *b);
    const void *traits;     /* of the builder: what the architectures that share it differ in */
    QsfNormKind norm;       /* the key of epsilon */
    QsfPresence heads, ffn; /* attention.head_count and head_count_kv; feed_forward_length */
    bool loops;             /* num_loops: number of times that the blocks run over the same weights */
    bool rms_by_key;        /* norms are RMS norms if there is that key of epsilon */
    QsfNextnState nextn;    /* of its next-token blocks */
    bool maybe_eps;         /* epsilon is 0 without its key, as in ngxson/llama.cpp (src/models, get_key) */
} QsfFamily;

/* Finds a family by name; NULL if unknown. */
const QsfFamily *qsf_family_find(const char *name);
/* Returns row i, NULL past the end. */
const QsfFamily *qsf_family_at(unsigned i);

#endif
