/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables and functions for architectures with latent attention (hf/latent.c). */
#ifndef QSF_FILE_HF_LATENT_H
#define QSF_FILE_HF_LATENT_H

#include "src/file/hf/experts.h"

/* The projections of latent attention, and the tensors that usually come with them. */
extern const QsfHfName qsf_hf_names_latent[];
#define QSF_HF_LATENT_NAMES(...) \
    QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_norms, qsf_hf_names_latent, qsf_hf_names_mlp, __VA_ARGS__)
extern const QsfHfKey qsf_hf_keys_latent[];
extern const QsfHfMust qsf_hf_must_deepseek[];

/* Writes the sizes of keys. */
int qsf_hf_latent_put_sizes(QsfHfModel *m);
/* The same, the factor of YaRN, the one KV head and the experts. */
int qsf_hf_latent_put(QsfHfModel *m);
/* The same, and what qsf_hf_deepseek_put writes. */
int qsf_hf_deepseek_put_latent(QsfHfModel *m, const char *gating);

#endif
