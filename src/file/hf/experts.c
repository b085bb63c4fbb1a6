/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the tables of architectures with experts use: rows of gate and up, and settings. */
#include "src/file/hf/experts.h"

#include <string.h>

#define SOFTMAX 1u /* ggml-org/llama.cpp gguf-py, ExpertGatingFuncType */
#define SIGMOID 2u

/* --- rows --- */

static int half(const QsfHfModel *m, uint64_t src_rows, uint32_t matrices, bool second, QsfRowMap *map,
                uint64_t *n) {
    if (src_rows % (2 * (uint64_t)matrices) != 0)
        return qsf_err_set(m->err, QSF_E_MODEL, "has %llu rows, which is not a gate and an up for %u experts",
                           (unsigned long long)src_rows, matrices);
    map->run = src_rows / matrices / 2;
    map->first = second ? map->run : 0;
    map->stride = 2 * map->run;
    *n = src_rows / 2;
    return QSF_OK;
}

static int expert_half(const QsfHfModel *m, uint64_t src_rows, bool second, QsfRowMap *map, uint64_t *n) {
    uint32_t experts;
    int rc = qsf_hf_u32(m, QSF_HF_EXPERTS, 0, &experts);
    return rc == QSF_OK ? half(m, src_rows, experts, second, map, n) : rc;
}

int qsf_hf_rows_gate(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return expert_half(m, src_rows, false, map, n);
}

int qsf_hf_rows_up(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return expert_half(m, src_rows, true, map, n);
}

int qsf_hf_rows_first(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return half(m, src_rows, 1, false, map, n);
}

int qsf_hf_rows_second(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return half(m, src_rows, 1, true, map, n);
}

int qsf_hf_shape_vector(const QsfHfModel *m, QsfTensor *t) {
    if (t->ne[1] != 1)
        return qsf_err_set(m->err, QSF_E_MODEL, "%s: tensor '%s' has %llu rows, expected 1", m->s->dir,
                           t->name, (unsigned long long)t->ne[1]);
    t->n_dims = 1;
    return QSF_OK;
}

/* --- settings --- */

int qsf_hf_need_bool(const QsfHfModel *m, const char *key, bool fallback, bool expected) {
    bool b;
    int rc = qsf_hf_bool(m, key, fallback, &b);
    if (rc != QSF_OK || b == expected) return rc;
    return qsf_hf_bad(m, key,
                      expected ? "is false, which is not supported" : "is true, which is not supported");
}

int qsf_hf_experts_count_put(QsfHfModel *m) {
    uint32_t n;
    int rc = qsf_hf_u32(m, QSF_HF_EXPERTS, 0, &n);
    m->n_experts = n;
    return rc == QSF_OK ? qsf_hf_put_u32(m, "expert_count", n) : rc;
}

int qsf_hf_experts_put(QsfHfModel *m) {
    static const char used_names[] = "num_experts_per_tok|num_experts_per_token|moe_k|top_k_experts";
    uint32_t n, used, width;
    int rc = qsf_hf_u32(m, QSF_HF_EXPERTS, 0, &n);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, used_names, 0, &used);
    if (rc == QSF_OK && used > n) rc = qsf_hf_bad(m, used_names, "is above the number of experts");
    if (rc == QSF_OK) rc = qsf_hf_experts_count_put(m);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "expert_used_count", used);
    if (rc != QSF_OK || qsf_hf_member(m->text, "moe_intermediate_size") == NULL) return rc;
    rc = qsf_hf_u32(m, "moe_intermediate_size", 0, &width);
    return rc == QSF_OK ? qsf_hf_put_u32(m, "expert_feed_forward_length", width) : rc;
}

static int put_gating(QsfHfModel *m, const char *fallback) {
    static const char key[] = "scoring_func|moe_router_activation_func";
    const QsfJson *v = qsf_hf_member(m->text, key);
    const char *name = v != NULL ? qsf_json_string(v, NULL) : fallback;
    if (name != NULL && strcmp(name, "noaux_tc") == 0) name = "sigmoid"; /* the value in files of Dots 1 */
    if (name == NULL || (strcmp(name, "softmax") != 0 && strcmp(name, "sigmoid") != 0))
        return qsf_hf_bad(m, key, "is neither 'softmax' nor 'sigmoid'");
    return qsf_hf_put_u32(m, "expert_gating_func", name[1] == 'o' ? SOFTMAX : SIGMOID);
}

int qsf_hf_deepseek_put(QsfHfModel *m, const char *gating) {
    return qsf_hf_deepseek_put_as(m, gating, true, true);
}

int qsf_hf_deepseek_put_as(QsfHfModel *m, const char *gating, bool groups, bool norm) {
    static const struct {
        const char *hf, *gguf;
    } numbers[] = {
        { "first_k_dense_replace", "leading_dense_block_count" },
        { "n_shared_experts|num_shared_experts", "expert_shared_count" },
        { "n_group|num_expert_group", "expert_group_count" },
        { "topk_group", "expert_group_used_count" },
    };
    int rc = QSF_OK;
    for (size_t i = 0; rc == QSF_OK && i < (groups ? 4 : 2); i++) {
        double v;
        if (qsf_hf_member(m->text, numbers[i].hf) == NULL) continue;
        rc = qsf_hf_real(m, m->text, numbers[i].hf, 0, 0, 1e5, &v);
        if (rc == QSF_OK) rc = qsf_hf_put_u32(m, numbers[i].gguf, (uint32_t)v);
    }
    double scale;
    if (rc == QSF_OK) rc = qsf_hf_real(m, m->text, "routed_scaling_factor", 1, 1e-6, 1e6, &scale);
    if (rc == QSF_OK) rc = qsf_hf_put_f32(m, "expert_weights_scale", scale);
    if (rc == QSF_OK) rc = qsf_hf_bool(m, "norm_topk_prob|moe_renormalize", norm, &norm);
    if (rc == QSF_OK) rc = qsf_hf_put_bool(m, "expert_weights_norm", norm);
    return rc == QSF_OK ? put_gating(m, gating) : rc;
}

int qsf_hf_experts_everywhere(const QsfHfModel *m) {
    uint32_t step;
    int rc = qsf_hf_u32(m, "decoder_sparse_step", 1, &step);
    if (rc == QSF_OK && step != 1)
        rc = qsf_hf_bad(m, "decoder_sparse_step", "is not 1, which is not supported");
    if (rc == QSF_OK && qsf_json_size(qsf_hf_member(m->text, "mlp_only_layers")) > 0)
        rc = qsf_hf_bad(m, "mlp_only_layers", "is not empty, which is not supported");
    return rc;
}

int qsf_hf_experts_put_divided(QsfHfModel *m) {
    int rc = qsf_hf_experts_put(m);
    if (rc == QSF_OK) rc = qsf_hf_need_bool(m, "norm_topk_prob", false, true);
    return rc == QSF_OK ? qsf_hf_experts_everywhere(m) : rc;
}

int qsf_hf_experts_put_undivided(QsfHfModel *m) {
    int rc = qsf_hf_experts_put(m);
    if (rc == QSF_OK) rc = qsf_hf_need_bool(m, "norm_topk_prob", false, false);
    if (rc == QSF_OK && qsf_hf_member(m->text, "clip_qkv") != NULL)
        rc = qsf_hf_bad(m, "clip_qkv", "is set, which is not supported for this architecture");
    return rc == QSF_OK ? qsf_hf_experts_everywhere(m) : rc;
}

int qsf_hf_experts_put_sigmoid(QsfHfModel *m) {
    int rc = qsf_hf_experts_put(m);
    return rc == QSF_OK ? qsf_hf_deepseek_put(m, "sigmoid") : rc;
}
