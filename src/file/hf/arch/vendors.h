/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The vendors whose architectures are in this folder, a file each. Small ones share a file that is named
 * after all of them. */
#ifndef QSF_FILE_HF_ARCH_VENDORS_H
#define QSF_FILE_HF_ARCH_VENDORS_H

#include "src/file/hf/model.h"

#define QSF_HF_VENDORS(X)     \
    X(apertus)                \
    X(arcee_dots_seed_smollm) \
    X(baichuan)               \
    X(bitnet)                 \
    X(bloom_gpt_neox)         \
    X(cohere)                 \
    X(deepseek)               \
    X(ernie)                  \
    X(exaone)                 \
    X(falcon)                 \
    X(gemma)                  \
    X(gemma3n_gemma4)         \
    X(glm)                    \
    X(gpt2_starcoder)         \
    X(gpt_oss)                \
    X(granite)                \
    X(hunyuan)                \
    X(internlm)               \
    X(kimi)                   \
    X(lfm2)                   \
    X(llama)                  \
    X(mamba_jamba)            \
    X(minicpm)                \
    X(minimax)                \
    X(mistral)                \
    X(mpt)                    \
    X(nemotron)               \
    X(olmo)                   \
    X(phi)                    \
    X(qwen)                   \
    X(qwen_next)              \
    X(stablelm)

/* The table of each file NAME.c, qsf_hf_arch_NAME, ended by name NULL. */
#define QSF_HF_DECLARE(vendor) extern const QsfHfArch qsf_hf_arch_##vendor[];
QSF_HF_VENDORS(QSF_HF_DECLARE)
#undef QSF_HF_DECLARE

#endif
