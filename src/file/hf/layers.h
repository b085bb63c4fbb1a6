/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Settings per layer, for architectures whose layers differ; Mamba layers (hf/layers.c). */
#ifndef QSF_FILE_HF_LAYERS_H
#define QSF_FILE_HF_LAYERS_H

#include "src/file/hf/tables.h"

#define QSF_HF_LAYERS 4096u /* the most that these functions support */

/* Names of models that are called backbone, and prefix of their tensors. */
extern const QsfHfName qsf_hf_names_backbone[];
extern const char *const qsf_hf_backbone[];
/* Mamba-1 and Mamba-2 in `mixer` or `mamba`. */
extern const QsfHfName qsf_hf_names_mixer_1[], qsf_hf_names_mixer_2[], qsf_hf_names_mamba_1[],
    qsf_hf_names_mamba_2[];
/* Epsilon and kernel; the state and groups of Mamba-2; the kernel alone; the state of Mamba-1. */
extern const QsfHfKey qsf_hf_keys_mamba[], qsf_hf_keys_mamba_2[], qsf_hf_keys_mamba_conv[],
    qsf_hf_keys_state_16[];
extern const QsfHfMust qsf_hf_must_jamba[];
/* Writes the number of heads of Mamba-2 and the inner size, heads times their size; heads and
 * dim are names of settings. */
int qsf_hf_put_mamba_heads(QsfHfModel *m, const char *heads, const char *dim);

/* QSF_E_MODEL if there are more than QSF_HF_LAYERS layers. */
int qsf_hf_layers_check(const QsfHfModel *m);
/* Reads the kind of each layer: kind[n_layers], an index into kinds, which ends with NULL. Knows older
 * names of kinds. QSF_E_MODEL if the list is missing, has another length or other names. */
int qsf_hf_layer_kinds(const QsfHfModel *m, const char *names, const char *const *kinds, uint32_t *kind);
/* Writes attention.head_count_kv: 0 for the layers of layer_types that are not of kind `attention`. */
int qsf_hf_put_kv_heads(QsfHfModel *m, const char *const *kinds, uint32_t attention);

/* A vector as a column; a vector as a row for each group of ssm.group_count. */
int qsf_hf_shape_column(const QsfHfModel *m, QsfTensor *t);
int qsf_hf_shape_groups(const QsfHfModel *m, QsfTensor *t);

#endif
