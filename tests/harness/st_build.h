/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes safetensors files for tests, valid or not, and small complete Hugging Face model directories. It is
 * independent of the reader. */
#ifndef QSF_TESTS_ST_BUILD_H
#define QSF_TESTS_ST_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/strbuf.h"

/* Zero-initialise. */
typedef struct QsfStBuild {
    QsfStrbuf header; /* members of the object, without its braces */
    QsfStrbuf data;
} QsfStBuild;

/* Appends a member as it is written to the header. */
void qsf_sb_member(QsfStBuild *b, const char *text);
/* Appends a tensor of len bytes after the others. */
void qsf_sb_tensor(QsfStBuild *b, const char *name, const char *dtype, uint32_t n_dims, const uint64_t *shape,
                   const void *data, size_t len);
/* 0, or -1 if the file cannot be written. */
int qsf_sb_write(const QsfStBuild *b, const char *path);
void qsf_sb_free(QsfStBuild *b);

/* A small model; 0 means the default in brackets. */
typedef struct QsfHfSpec {
    uint32_t layers;   /* [2] */
    uint32_t hidden;   /* [24] */
    uint32_t heads;    /* [4] */
    uint32_t kv_heads; /* [2] */
    uint32_t head_dim; /* [hidden / heads, which config.json then does not mention] */
    uint32_t ffn;      /* [40] */
    uint32_t vocab;    /* [QSF_HF_TOKENS, as many as the tokenizer has] */
    const char *dtype; /* ["F32"] "F16" "BF16" */
    bool tied;         /* no lm_head.weight */
    bool biases;       /* of the projections */
    bool rotary;       /* add rotary_emb.inv_freq, as in old files */
    bool shards;       /* two files and an index */
    const char *arch;  /* ["LlamaForCausalLM"] */
    /* members at the start of config.json, followed by a comma; of duplicates the last one counts */
    const char *config;
    const char *last; /* members at its end, with a comma before them */
} QsfHfSpec;

#define QSF_HF_TOKENS 9u

/* Writes the files of an existing directory; spec NULL = all defaults. 0 or -1. */
int qsf_test_write_hf_dir(const char *dir, const QsfHfSpec *spec);
/* Removes the files that the above may have written, and dir. */
void qsf_test_remove_hf_dir(const char *dir);
/* Element i of the tensor, in the order of the file: k / 64 with |k| < 128, the same in every dtype. */
float qsf_test_hf_value(const char *name, uint64_t i);
/* Writes text as dir/name: 0 or -1. */
int qsf_test_write_in(const char *dir, const char *name, const void *bytes, size_t len);

#endif
