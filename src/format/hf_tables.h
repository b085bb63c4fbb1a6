/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables that several architectures use (hf_arch_llama.c, hf_rows.c): each ended by hf NULL. */
#ifndef QSF_FORMAT_HF_TABLES_H
#define QSF_FORMAT_HF_TABLES_H

#include "src/format/hf_model.h"

/* Embedding, final norm, head. */
extern const QsfHfName qsf_hf_names_model[];
/* input_layernorm and post_attention_layernorm before attention and FFN. */
extern const QsfHfName qsf_hf_names_norms[];
/* Queries and keys, rotated as pairs (of models that GGUF stores like Llama), or in order; values and output. */
extern const QsfHfName qsf_hf_names_qk_pairs[], qsf_hf_names_qk[], qsf_hf_names_vo[];
/* gate, up and down. */
extern const QsfHfName qsf_hf_names_mlp[];
/* RMS norms of queries and keys, q_norm and k_norm. */
extern const QsfHfName qsf_hf_names_qk_norms[];
extern const QsfHfKey qsf_hf_keys_rms[], qsf_hf_keys_norm[];
extern const QsfHfMust qsf_hf_must_silu[];

#endif
