/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables and functions for architectures with experts (hf/tables.c, hf/experts.c). */
#ifndef QSF_FILE_HF_EXPERTS_H
#define QSF_FILE_HF_EXPERTS_H

#include "src/file/hf/tables.h"

/* The names of the number of experts in config.json. */
#define QSF_HF_EXPERTS "num_experts|num_local_experts|n_routed_experts|moe_num_experts"

/* Routers and experts in mlp; all experts in one tensor; w1, w2 and w3 in block_sparse_moe; one shared
 * expert with a gate, or several as one. */
extern const QsfHfName qsf_hf_names_experts[], qsf_hf_names_stacked[], qsf_hf_names_w123[],
    qsf_hf_names_shared_expert[], qsf_hf_names_shared_experts[];
/* The width of a shared expert. */
extern const QsfHfKey qsf_hf_keys_shared_width[];

/* Rows of the gate or of up, where both are one matrix of each expert, or one matrix (first, second). */
int qsf_hf_rows_gate(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
int qsf_hf_rows_up(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
int qsf_hf_rows_first(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
int qsf_hf_rows_second(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
/* A matrix of one row as a vector. */
int qsf_hf_shape_vector(const QsfHfModel *m, QsfTensor *t);

/* Checks a setting that the architecture of GGUF fixes. fallback: its value if absent from config.json. */
int qsf_hf_need_bool(const QsfHfModel *m, const char *key, bool fallback, bool expected);
/* Write expert_count; with expert_used_count and expert_feed_forward_length. */
int qsf_hf_experts_count_put(QsfHfModel *m);
int qsf_hf_experts_put(QsfHfModel *m);
/* Checks that all blocks have experts: decoder_sparse_step and mlp_only_layers. */
int qsf_hf_experts_everywhere(const QsfHfModel *m);
/* Writes what models like DeepSeek have: leading dense blocks, shared experts, groups, scale, and the
 * function of the router. gating: the default of scoring_func. */
int qsf_hf_deepseek_put(QsfHfModel *m, const char *gating);
/* The same, without groups, or with another default of norm_topk_prob, which is true. */
int qsf_hf_deepseek_put_as(QsfHfModel *m, const char *gating, bool groups, bool norm);

/* Write the settings of models with experts in all blocks and a softmax, whose weights are divided by
 * their sum or are not; and of models with experts as those of DeepSeek and a sigmoid. For the field
 * `put`. */
int qsf_hf_experts_put_divided(QsfHfModel *m);
int qsf_hf_experts_put_undivided(QsfHfModel *m);
int qsf_hf_experts_put_sigmoid(QsfHfModel *m);

#endif
