/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes GGUF files for tests: any metadata and tensors, valid or not, and tiny complete llama models with
 * random weights. Linked into every unit test. */
#ifndef QSF_TESTS_GGUF_BUILD_H
#define QSF_TESTS_GGUF_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/strbuf.h"
#include "src/file/source.h"

typedef struct QsfGgufBuild {
    QsfStrbuf meta, table, data;
    uint64_t n_pairs, n_tensors;
    uint32_t version, alignment;
} QsfGgufBuild;

/* Start: zero-initialised is version 3 with alignment 32 (no general.alignment key written). */
void qsf_gb_u32(QsfGgufBuild *b, const char *key, uint32_t v);
void qsf_gb_u64(QsfGgufBuild *b, const char *key, uint64_t v);
void qsf_gb_f32(QsfGgufBuild *b, const char *key, float v);
void qsf_gb_bool(QsfGgufBuild *b, const char *key, bool v);
void qsf_gb_str(QsfGgufBuild *b, const char *key, const char *v);
/* Any scalar: len little-endian bytes of the value, as in the file. */
void qsf_gb_raw(QsfGgufBuild *b, const char *key, QsfMetaType type, const void *bytes, size_t len);
void qsf_gb_strings(QsfGgufBuild *b, const char *key, const char *const *v, uint64_t n);
/* Array of n elements given as their bytes. */
void qsf_gb_array(QsfGgufBuild *b, const char *key, QsfMetaType elem, uint64_t n, const void *bytes,
                  size_t len);

/* Appends a tensor; its data is padded to the alignment. ne has n_dims entries. */
void qsf_gb_tensor(QsfGgufBuild *b, const char *name, uint32_t dtype, uint32_t n_dims, const uint64_t *ne,
                   const void *data, size_t len);
/* Adds only the table row, at any offset. */
void qsf_gb_tensor_row(QsfGgufBuild *b, const char *name, uint32_t dtype, uint32_t n_dims, const uint64_t *ne,
                       uint64_t offset);

/* The file's bytes; the caller frees them. NULL if out of memory. */
unsigned char *qsf_gb_bytes(const QsfGgufBuild *b, size_t *len);
/* 0, or -1 if the file cannot be written. */
int qsf_gb_write(const QsfGgufBuild *b, const char *path);
void qsf_gb_free(QsfGgufBuild *b);
/* Writes bytes to path: 0 or -1. */
int qsf_test_write_file(const char *path, const void *bytes, size_t len);

/* A tiny llama; 0 means the default in brackets. */
typedef struct QsfTinySpec {
    uint32_t layers;   /* [2] */
    uint32_t hidden;   /* [64] multiple of 32 for block types */
    uint32_t heads;    /* [4] */
    uint32_t kv_heads; /* [2] */
    uint32_t head_dim; /* [hidden / heads] */
    uint32_t ffn;      /* [128] */
    uint32_t vocab;    /* [300] at least 260: <unk> <s> </s>, 256 bytes, U+2581, letters, words */
    uint32_t ctx;      /* [256] */
    uint64_t seed;     /* [1] */
    bool tied;         /* no output.weight */
    float head_mean;   /* of the weights of output.weight */
    bool biases;       /* attention and output projections have one */
    bool twins; /* rows 1, 3, ... of the layers' matrices equal the previous row: layers compress to half */
    bool rope_freqs; /* add rope_freqs.weight */
    bool ascii;      /* any answer is UTF-8 */
    bool letters;    /* any answer has only letters and blanks; F32 or F16, not tied, vocab <= 988 */
    uint32_t wtype;  /* GGML type of the matrices: 0 F32, 1 F16, 2 Q4_0, 8 Q8_0, 11 Q3_K, 14 Q6_K */
    const char *chat_template; /* NULL = none */
} QsfTinySpec;

/* spec NULL = all defaults. The same spec gives the same bytes. 0, or -1 (bad spec, I/O). */
int qsf_test_write_tiny_llama(const char *path, const QsfTinySpec *spec);
/* A llama (F32) that emits a script, whatever the prompt, and then ends. Words are separated by blanks; each
 * is one new token: ordinary text ('_' is a space), user-defined if it begins with < or [, a control token
 * with the prefix '!'; <0x0A> is a byte. With the prefix '+' a word is only in the vocabulary. Only text that
 * equals a special word of the script is encoded as that token: the script continues from there. Of spec it
 * takes layers [1], ffn, ctx [512] and chat_template. 0, or -1 (too long, I/O). */
int qsf_test_write_script_llama(const char *path, const char *script, const QsfTinySpec *spec);
/* A tiny Mamba model, F32, of two blocks whose tensors have no type in a QSF file. 0, or -1 (I/O). */
int qsf_test_write_tiny_mamba(const char *path, uint64_t seed);
/* A tiny llama with experts, F32, of two blocks; no token chooses the last expert of a block.
 * 0, or -1 (I/O). */
enum { QSF_TINY_EXPERTS = 8 };
int qsf_test_write_tiny_experts(const char *path, uint64_t seed);
/* The same with the experts' matrices in these tensors, and with a shared expert besides. */
typedef enum QsfTinyLayout {
    QSF_TINY_STACKED, /* ffn_gate_exps, ffn_up_exps, ffn_down_exps */
    QSF_TINY_FUSED,   /* ffn_gate_up_exps, ffn_down_exps */
    QSF_TINY_SEPARATE /* ffn_gate.E, ffn_up.E, ffn_down.E of each expert E, with the values of STACKED */
} QsfTinyLayout;
int qsf_test_write_tiny_experts_as(const char *path, uint64_t seed, QsfTinyLayout layout, bool with_shared);
/* A tiny model of two blocks and next-token blocks, F32. */
typedef struct QsfTinyNextn {
    uint32_t announced, extra; /* next-token blocks by the metadata, and with tensors */
    bool copies;    /* no block changes the residual stream, and a next-token block takes the embedding: each
                    says what the model says */
    uint64_t seed;  /* [7] */
    uint32_t vocab; /* [300] with more, a position has 128 values instead of 64 */
} QsfTinyNextn;
int qsf_test_write_tiny_nextn(const char *path, const QsfTinyNextn *k);
/* The vocabulary part alone (SentencePiece style, n >= 260 entries). */
void qsf_gb_tiny_vocab(QsfGgufBuild *b, uint32_t n);
/* The same, followed by n_more more tokens. */
void qsf_gb_tiny_vocab_with(QsfGgufBuild *b, uint32_t n, const char *const *texts, const int32_t *types,
                            uint32_t n_more);

#endif
