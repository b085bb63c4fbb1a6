/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables that several architectures use (hf/arch/llama.c, hf/rows.c): each ended by hf NULL. */
#ifndef QSF_FILE_HF_TABLES_H
#define QSF_FILE_HF_TABLES_H

#include "src/file/hf/model.h"

/* Rows of tables: a matrix, a vector and a bias, of weights "hf.weight" or "hf.bias"; L is a name in a layer. */
#define QSF_HF_MATRIX(hf, gguf) \
    { hf ".weight", gguf ".weight", 2, QSF_DERIVE_COPY, NULL, 0, NULL }
#define QSF_HF_VECTOR(hf, gguf) \
    { hf ".weight", gguf ".weight", 1, QSF_DERIVE_COPY, NULL, 0, NULL }
#define QSF_HF_BIAS(hf, gguf) \
    { hf ".bias", gguf ".bias", 1, QSF_DERIVE_COPY, NULL, 0, NULL }
#define QSF_HF_ROWS(hf, gguf, n, rows) \
    { hf, gguf, n, QSF_DERIVE_COPY, rows, 0, NULL }
#define QSF_HF_PART(hf, gguf, n, rows, part) \
    { hf, gguf, n, QSF_DERIVE_COPY, rows, part, NULL }
#define QSF_HF_HOW(hf, gguf, n, how) \
    { hf, gguf, n, how, NULL, 0, NULL }
#define QSF_HF_IGNORED(hf) \
    { hf, NULL, 1, QSF_DERIVE_COPY, NULL, 0, NULL }
#define QSF_HF_L(name) "layers.#." name
#define QSF_HF_B(name) "blk.#." name
#define QSF_HF_END \
    { 0 }

/* Embedding, final norm, head; the embedding and the head alone. */
extern const QsfHfName qsf_hf_names_model[], qsf_hf_names_ends[];
/* input_layernorm and post_attention_layernorm before attention and FFN. */
extern const QsfHfName qsf_hf_names_norms[];
/* Queries and keys, rotated as pairs (of models that GGUF stores like Llama), or in order; values and output. */
extern const QsfHfName qsf_hf_names_qk_pairs[], qsf_hf_names_qk[], qsf_hf_names_vo[];
/* gate, up and down. */
extern const QsfHfName qsf_hf_names_mlp[];
/* Norms of queries and keys, q_norm and k_norm. */
extern const QsfHfName qsf_hf_names_qk_norms[];
/* Epsilon of RMS norms, of layer norms; factors of Granite. */
extern const QsfHfKey qsf_hf_keys_rms[], qsf_hf_keys_layer_norm[], qsf_hf_keys_granite[];
extern const QsfHfMust qsf_hf_must_silu[];
/* Prefixes of models that also take images, and the tensors of their other parts. */
extern const char *const qsf_hf_vision_prefixes[], *const qsf_hf_vision_left_out[];

#define QSF_HF_ROPES_USUAL (QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LINEAR | QSF_HF_ROPE_LLAMA3 | QSF_HF_ROPE_YARN)

#endif
