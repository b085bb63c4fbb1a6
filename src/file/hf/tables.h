/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables that several architectures use (hf/tables.c): each ended by hf NULL. */
#ifndef QSF_FILE_HF_TABLES_H
#define QSF_FILE_HF_TABLES_H

#include "src/file/hf/arch/vendors.h"
#include "src/file/hf/model.h"

/* Rows of tables: a matrix, a vector and a bias, of weights "hf.weight" or "hf.bias"; a matrix or a norm
 * with its bias (LINEAR, NORM); a vector plus 1; L is a name in a layer, B one in a block. */
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
#define QSF_HF_LINEAR(hf, gguf)  QSF_HF_MATRIX(hf, gguf), QSF_HF_BIAS(hf, gguf)
#define QSF_HF_NORM(hf, gguf)    QSF_HF_VECTOR(hf, gguf), QSF_HF_BIAS(hf, gguf)
#define QSF_HF_ADD_ONE(hf, gguf) QSF_HF_HOW(hf ".weight", gguf ".weight", 1, QSF_DERIVE_ADD_ONE)
#define QSF_HF_L(name)           "layers.#." name
#define QSF_HF_B(name)           "blk.#." name
#define QSF_HF_END \
    { 0 }

/* Lists of tables, for the fields `tensors` and `keys` of an architecture. */
#define QSF_HF_NAMES(...) ((const QsfHfName *const[]){ __VA_ARGS__, NULL })
#define QSF_HF_KEYS(...)  ((const QsfHfKey *const[]){ __VA_ARGS__, NULL })

/* Embedding, final norm, head; the embedding and the head alone. */
extern const QsfHfName qsf_hf_names_model[], qsf_hf_names_ends[];
/* input_layernorm and post_attention_layernorm before attention and FFN; the same where GGUF calls the
 * second one post_attention_norm; layer norms, with the final one. */
extern const QsfHfName qsf_hf_names_norms[], qsf_hf_names_norms_post[], qsf_hf_names_layer_norms[];
/* Queries and keys, rotated as pairs (of models that GGUF stores like Llama), or in order; values and
 * output. */
extern const QsfHfName qsf_hf_names_qk_pairs[], qsf_hf_names_qk[], qsf_hf_names_vo[];
/* gate, up and down. */
extern const QsfHfName qsf_hf_names_mlp[];
/* What next-token blocks have beside an ordinary block. */
extern const QsfHfName qsf_hf_names_nextn[];
/* Norms of queries and keys, q_norm and k_norm. */
extern const QsfHfName qsf_hf_names_qk_norms[];

/* All tables of models with norms before both branches: rotated as pairs, as halves, as halves with norms
 * of queries and keys; and of models with norms after the branches. */
extern const QsfHfName *const qsf_hf_like_llama[], *const qsf_hf_like_qwen[], *const qsf_hf_like_qwen3[],
                                                                                  *const qsf_hf_norms_after[];

/* Epsilon of RMS norms, of layer norms. */
extern const QsfHfKey qsf_hf_keys_rms[], qsf_hf_keys_layer_norm[];
extern const QsfHfMust qsf_hf_must_silu[];
/* "transformer."; prefixes of models that also take images, and the tensors of their other parts. */
extern const char *const qsf_hf_transformer[], *const qsf_hf_vision_prefixes[],
                                                   *const qsf_hf_vision_left_out[];

#define QSF_HF_ROPES_YARN  (QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LINEAR | QSF_HF_ROPE_YARN)
#define QSF_HF_ROPES_USUAL (QSF_HF_ROPES_YARN | QSF_HF_ROPE_LLAMA3)

#endif
