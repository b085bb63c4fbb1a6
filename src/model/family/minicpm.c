/* SPDX-License-Identifier: GPL-3.0-or-later */
/* MiniCPM: Llama with scales of embeddings, branches and logits, which old files do not have keys for. Facts:
 * ggml-org/llama.cpp src/models. */
#include <math.h>

#include "src/model/family/dense.h"

void qsf_family_minicpm(QsfBuilder *b) {
    QsfDenseModel m;
    qsf_dense_init(&m, b);
    const float residual = 1.4f / sqrtf((float)m.hp->n_layers), logit = 256.0f / (float)m.hp->hidden;
    m.embed_scale = qsf_build_f32(b, "embedding_scale", 12, 1e-6f, 1e6f);
    m.residual_scale = qsf_build_f32(b, "residual_scale", residual, 1e-6f, 1e6f);
    m.logit_scale = 1.0f / qsf_build_f32(b, "logit_scale", logit, 1e-6f, 1e6f);
    const float scale = qsf_build_f32(b, "attention.scale", 0, 0, 1e6f);
    if (scale > 0) m.score_scale = scale;
    qsf_dense_read(&m);
    qsf_dense_build(&m);
}
