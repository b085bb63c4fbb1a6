/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The names of tensors in QSF files (man/qsf-format.5): types, which have a GGUF name, and named tensors. */
#ifndef QSF_FILE_QSF_NAMES_H
#define QSF_FILE_QSF_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/err.h"
#include "src/base/strbuf.h"
#include "src/file/source.h"

/* ---- tensor types and their GGUF names; pure functions ---- */

enum {
    QSFT_Q,
    QSFT_K,
    QSFT_V,
    QSFT_O,
    QSFT_GATE,
    QSFT_UP,
    QSFT_DOWN,
    QSFT_ATTN_NORM,
    QSFT_FFN_NORM,
    QSFT_Q_BIAS,
    QSFT_K_BIAS,
    QSFT_V_BIAS,
    QSFT_O_BIAS,
    QSFT_FFN_BIASES /* up, then down, in one row */,
    QSFT_ATTN_NORM_BIAS,
    QSFT_FFN_NORM_BIAS,
    QSFT_Q_NORM,
    QSFT_K_NORM,
    QSFT_POST_ATTN_NORM,
    QSFT_POST_FFN_NORM,
    QSFT_ATTN_SUB_NORM,
    QSFT_FFN_SUB_NORM,
    QSFT_ROUTER,
    QSFT_GATE_EXPERTS,
    QSFT_UP_EXPERTS,
    QSFT_DOWN_EXPERTS,
    QSFT_HEAD,
    QSFT_HEAD_BIAS,
    QSFT_POSITIONS,
    QSFT_ROPE_FREQS,
    QSFT_SINKS,
    QSFT_OUTLIERS /* of the tensor before it */,
    QSFT_FINAL_NORM,
    QSFT_FINAL_NORM_BIAS,
    QSFT_GATE_BIAS,
    QSFT_NAMED /* its name is in the metadata */,
    QSFT_N
};
/* Not a tensor type: the result of qsf_tensor_type_of for token_embd.weight, which has its own section. */
#define QSFT_EMBED 0x100u

/* Returns the GGUF name of a type, without "blk.N." for those of a layer: "attn_q.weight",
 * "attn_sinks.weight"; "outliers"; for the FFN biases the first name; "named". NULL for an unknown type. */
const char *qsf_tensor_type_name(uint32_t type);
/* Return whether a tensor of this type can be in a layer, or in the final section. False for unknown
 * types. */
bool qsf_tensor_type_in_layer(uint32_t type);
bool qsf_tensor_type_in_final(uint32_t type);
/* Returns whether it is one row of floats: norms, biases, frequencies. */
bool qsf_tensor_type_is_vector(uint32_t type);
/* Returns whether it contains the matrices of all experts, stacked. */
bool qsf_tensor_type_is_experts(uint32_t type);
/* Returns whether it is multiplied with activations: projections, experts, head. Only these can have
 * interleaved rows. */
bool qsf_tensor_type_is_matrix(uint32_t type);

/* Returns the part of a name after "blk.N." and sets *layer; NULL for other names. */
const char *qsf_name_in_layer(const char *name, uint32_t *layer);
/* Finds the type of the tensor with this GGUF name, and its layer (0 if it belongs to no layer). False if QSF
 * has no type for it. */
bool qsf_tensor_type_of(const char *name, uint32_t *type, uint32_t *layer);

/* Returns the types that every layer of this architecture (header bytes 12-15) must have, as a set of bits
 * 1 << type; 0 if the code does not determine them. */
uint64_t qsf_arch_needs(uint32_t arch);

/* ---- named tensors ---- */

/* Those of type QSFT_NAMED, whose names and dimensions are in the metadata; and which tensors of the final
 * norm the model has. Shared by the reader, writer and verifier. */

/* Metadata keys. */
#define QSF_KEY_NAMES      "qsf.tensor.names" /* string array */
#define QSF_KEY_DIMS       "qsf.tensor.dims"  /* u64 array: four for each name, 0 beyond its dimensions */
#define QSF_KEY_FUSED      "qsf.tensor.fused" /* string array */
#define QSF_KEY_EMBEDDING  "qsf.embedding"    /* string: its name, if not token_embd.weight */
#define QSF_KEY_FINAL_NORM "qsf.final_norm"   /* u32: its tensors, if the section holds more */

#define QSFF_NAME_MAX 127u /* bytes of a name */
#define QSF_NORMS_ALL 2u   /* the final norm, and its bias if the header specifies LayerNorm */

typedef struct QsfNamedTensor {
    const char *name; /* the GGUF name, with "blk.N." for tensors in layer N */
    uint32_t n_dims;  /* 1..4 */
    uint64_t ne[4];   /* as in QsfTensor */
} QsfNamedTensor;

typedef struct QsfNamed {
    QsfNamedTensor *tensor; /* (n) by layer, those of the final section last; in the order of storage */
    uint32_t n, n_layers;
    uint32_t *first;    /* (n_layers + 2) those of layer i begin at first[i] and end before first[i + 1];
                           n_layers: of the final section */
    uint32_t norms;     /* 0, 1 (no bias) or QSF_NORMS_ALL */
    bool embed_is_head; /* the embedding is named output.weight, not token_embd.weight */
    const char **fused; /* (n_fused) names of GGUF tensors whose parts are stored as tensors of their own */
    uint32_t n_fused;
} QsfNamed;

/* Returns the layer of a name, n_layers for the final section: any name that does not begin
 * with "blk.N." of a layer N. */
uint32_t qsf_named_section(const char *name, uint32_t n_layers);
/* Returns the name of the embedding. */
const char *qsf_named_embedding(const QsfNamed *l);
/* Checks the names and fills first, which has space. QSF_E_MODEL: a name is empty or too long, occurs twice,
 * or follows that of a later section; a tensor has no dimensions. QSF_E_RUNTIME if out of memory. */
int qsf_named_index(QsfNamed *l, const char *path, QsfErr *err);
/* Reads the list from the metadata of s to s->named, in its arena; an empty list if it has none. QSF_E_MODEL:
 * wrong types or numbers of elements, or as above. */
int qsf_named_read(QsfSource *s, uint32_t n_layers, QsfErr *err);
/* Appends the list as metadata, encoded as in GGUF; *n is increased by the number of pairs. Nothing for a
 * list without anything to say. */
void qsf_named_put(const QsfNamed *l, QsfStrbuf *b, uint64_t *n);

#endif
