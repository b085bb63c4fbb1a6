/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading a Hugging Face model directory: supported architectures, config.json, and the weight files. Private
 * to the readers of such a directory. */
#ifndef QSF_FORMAT_HF_MODEL_H
#define QSF_FORMAT_HF_MODEL_H

#include "src/format/safetensors.h"

/* Whose rows GGUF stores in a different order: design §5, "Q/K permuted". */
typedef enum QsfHfRows { QSF_HF_ROWS_KEPT, QSF_HF_ROWS_Q, QSF_HF_ROWS_K } QsfHfRows;

typedef struct QsfHfName {
    const char *hf;   /* after "model.layers.N." for tensors of a layer */
    const char *gguf; /* after "blk.N." for those; NULL: has no effect, ignored */
    uint32_t n_dims;  /* 1 or 2 */
    QsfHfRows rows;
} QsfHfName;

typedef struct QsfHfArch {
    const char *name;       /* in "architectures" of config.json */
    const char *gguf;       /* general.architecture */
    const QsfHfName *names; /* tensors of the whole model; terminated by hf NULL */
    const QsfHfName *layer; /* tensors of a layer; likewise */
    uint32_t kv_heads;      /* default of config.json; 0 = as many as heads */
} QsfHfArch;

/* Finds an architecture by name; NULL if unknown. */
const QsfHfArch *qsf_hf_arch_find(const char *name);
/* Returns row i of the table, NULL past the end. */
const QsfHfArch *qsf_hf_arch_at(unsigned i);
/* Finds the row for a tensor name and sets *layer, to -1 for a tensor of the whole model. NULL if unknown. */
const QsfHfName *qsf_hf_name_find(const QsfHfArch *a, const char *name, int32_t *layer);

typedef enum QsfHfRope { QSF_HF_ROPE_PLAIN, QSF_HF_ROPE_LINEAR, QSF_HF_ROPE_LLAMA3 } QsfHfRope;

/* The contents of config.json. Each number is in range; combinations are not checked. */
typedef struct QsfHfConfig {
    const QsfHfArch *arch;
    uint32_t n_layers, hidden, ffn, n_heads, n_kv_heads, n_vocab, n_ctx;
    uint32_t head_dim;  /* even */
    bool says_head_dim; /* head_dim is in the file; otherwise it is hidden / n_heads */
    uint32_t window;    /* sliding window, 0 = none */
    bool tied;          /* the head is the embedding */
    float norm_eps, rope_base;
    QsfHfRope rope;
    double rope_factor, rope_low, rope_high, rope_ctx; /* the last three for LLAMA3 */
    int64_t bos, eos;                                  /* -1 = not set */
} QsfHfConfig;

/* Reads dir/config.json. QSF_E_MODEL with its path, the key, its value and what was expected. Unsupported
 * settings that change the computation are errors. */
int qsf_hf_config_read(QsfSource *s, const char *dir, QsfHfConfig *c, QsfErr *err);
/* Writes the metadata that a GGUF file of this model has: general.* and the keys of the architecture. */
int qsf_hf_config_put(QsfSource *s, const QsfHfConfig *c, QsfErr *err);
/* Writes general.sampling.* from dir/generation_config.json, if it exists. QSF_E_MODEL with path, line and
 * column if it is not JSON; values that are not numbers are skipped. */
int qsf_hf_generation_put(QsfSource *s, const char *dir, QsfErr *err);
/* Computes rope_freqs.weight for LLAMA3 scaling: out[head_dim / 2], the divisor of the frequency of each
 * pair. */
void qsf_hf_rope_factors(const QsfHfConfig *c, float *out);

/* Opens model.safetensors in s->dir, or the shards listed in model.safetensors.index.json, as s->files, and
 * reads the header of each: *h (s->n_files) in the arena. QSF_E_MODEL if a shard is missing, is not a plain
 * file name, or lacks a tensor that the index places there. */
int qsf_hf_weights_read(QsfSource *s, QsfStHeader **h, QsfErr *err);

/* Returns "dir/name", or NULL with *err set. The caller frees it. */
char *qsf_hf_path(const char *dir, const char *name, QsfErr *err);

#endif
