/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Named tensors of QSF files (man/qsf-format.5): those of type QSFT_NAMED, whose names and
 * dimensions are in the metadata; and which tensors of the final norm the model has. Shared by the
 * reader, writer and verifier. */
#ifndef QSF_FILE_QSF_NAMED_H
#define QSF_FILE_QSF_NAMED_H

#include "src/base/err.h"
#include "src/base/strbuf.h"
#include "src/file/source.h"

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
