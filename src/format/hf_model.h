/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A model directory of HuggingFace on its way to a source: which architectures are known, what config.json says, and
 * the files of weights. Shared by the readers of such a directory, nobody else. */
#ifndef QSF_FORMAT_HF_MODEL_H
#define QSF_FORMAT_HF_MODEL_H

#include "src/format/safetensors.h"

/* Which rows GGUF has in another order: design §5, "Q/K permuted". */
typedef enum QsfHfRows { QSF_HF_ROWS_KEPT, QSF_HF_ROWS_Q, QSF_HF_ROWS_K } QsfHfRows;

typedef struct QsfHfName {
    const char *hf;     /* behind "model.layers.N." for tensors of a layer */
    const char *gguf;   /* behind "blk.N." for these; NULL: known to change nothing */
    uint32_t n_dims;    /* 1 or 2 */
    QsfHfRows rows;
} QsfHfName;

typedef struct QsfHfArch {
    const char *name;           /* in "architectures" of config.json */
    const char *gguf;           /* general.architecture */
    const QsfHfName *names;     /* of the whole model; ended by hf NULL */
    const QsfHfName *layer;     /* of a layer; the same */
    uint32_t kv_heads;          /* where config.json does not say; 0 = as many as heads */
} QsfHfArch;

/* NULL when unknown. */
const QsfHfArch *qsf_hf_arch_find(const char *name);
/* Row i, NULL past the end. */
const QsfHfArch *qsf_hf_arch_at(unsigned i);
/* Where a tensor belongs; *layer its number, or -1 for one of the whole model. NULL when the name is unknown. */
const QsfHfName *qsf_hf_name_find(const QsfHfArch *a, const char *name, int32_t *layer);

typedef enum QsfHfRope { QSF_HF_ROPE_PLAIN, QSF_HF_ROPE_LINEAR, QSF_HF_ROPE_LLAMA3 } QsfHfRope;

/* config.json: all numbers in range, whatever they are together. */
typedef struct QsfHfConfig {
    const QsfHfArch *arch;
    uint32_t n_layers, hidden, ffn, n_heads, n_kv_heads, n_vocab, n_ctx;
    uint32_t head_dim;           /* even */
    bool says_head_dim;          /* itself; otherwise it is hidden / n_heads */
    uint32_t window;             /* sliding window, 0 = none */
    bool tied;                   /* the head is the embedding */
    float norm_eps, rope_base;
    QsfHfRope rope;
    double rope_factor, rope_low, rope_high, rope_ctx; /* the last three for LLAMA3 */
    int64_t bos, eos;            /* -1 = not said */
} QsfHfConfig;

/* Reads dir/config.json. QSF_E_MODEL with its path, the key, its value and what was expected; what changes the
 * computation and is not known is refused by name. */
int qsf_hf_config_read(QsfSource *s, const char *dir, QsfHfConfig *c, QsfErr *err);
/* Writes the metadata that a GGUF file of this model has: general.*, and the architecture's own. */
int qsf_hf_config_put(QsfSource *s, const QsfHfConfig *c, QsfErr *err);
/* Writes general.sampling.* from dir/generation_config.json; nothing where that is not there. QSF_E_MODEL with path, line
 * and column when it is no JSON; values that are no numbers are left out. */
int qsf_hf_generation_put(QsfSource *s, const char *dir, QsfErr *err);
/* rope_freqs.weight of a LLAMA3 scaling: out[head_dim / 2], what the frequency of each pair is divided by. */
void qsf_hf_rope_factors(const QsfHfConfig *c, float *out);

/* Opens model.safetensors in s->dir, or what model.safetensors.index.json names, as s->files, and reads the header of
 * each: *h (s->n_files) in the arena. QSF_E_MODEL when a shard is missing, is no bare file name, or lacks a tensor
 * that the index places there. */
int qsf_hf_weights_read(QsfSource *s, QsfStHeader **h, QsfErr *err);

/* "dir/name", or NULL with *err. The caller frees it. */
char *qsf_hf_path(const char *dir, const char *name, QsfErr *err);

#endif
