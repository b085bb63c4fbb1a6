/* SPDX-License-Identifier: GPL-3.0-or-later */
/* DeepSeek V2 and V3: latent attention and experts. Names: huggingface/transformers
 * models/deepseek_v3/modeling_deepseek_v3.py, models/deepseek_v2/; ggml-org/llama.cpp
 * conversion/deepseek.py. Defaults: transformers' configuration files. */
#include <string.h>

#include "src/file/hf/latent.h"
#include "src/file/model_keys.h"

static int put_v3(QsfHfModel *m) { return qsf_hf_deepseek_put_latent(m, "sigmoid"); }

/* V2 chooses groups of experts by the best expert of each, or has no groups; weights are not normalized if
 * the key is missing. */
static int put_v2(QsfHfModel *m) {
    static const char key[] = "topk_method";
    const QsfJson *v = qsf_hf_member(m->text, key);
    const char *method = v != NULL ? qsf_json_string(v, NULL) : "greedy";
    const bool greedy = method != NULL && strcmp(method, "greedy") == 0;
    if (!greedy && (method == NULL || strcmp(method, "group_limited_greedy") != 0))
        return qsf_hf_bad(m, key, "is neither 'greedy' nor 'group_limited_greedy'");
    int rc = qsf_hf_latent_put(m);
    if (rc == QSF_OK && !greedy) rc = qsf_hf_put_u32(m, QSF_KEY_GROUP_SCORES, 1);
    return rc == QSF_OK ? qsf_hf_deepseek_put_as(m, "softmax", !greedy, false) : rc;
}

#define DEEPSEEK                                                                                            \
    .gguf = "deepseek2",                                                                                    \
    .tensors = QSF_HF_LATENT_NAMES(qsf_hf_names_experts, qsf_hf_names_stacked, qsf_hf_names_shared_experts, \
                                   qsf_hf_names_nextn),                                                     \
    .nextn = QSF_HF_NEXTN_LAYERS, .keys = QSF_HF_KEYS(qsf_hf_keys_rms, qsf_hf_keys_latent),                 \
    .must = qsf_hf_must_deepseek, .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_YARN,                            \
    .rotated = "qk_rope_head_dim", .own_kv_heads = true

const QsfHfArch qsf_hf_arch_deepseek[] = {
    { .name = "DeepseekV2ForCausalLM", .put = put_v2, DEEPSEEK },
    { .name = "DeepseekV3ForCausalLM", .put = put_v3, DEEPSEEK },
    QSF_HF_END,
};
