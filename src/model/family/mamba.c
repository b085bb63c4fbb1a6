/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mamba (Gu and Dao 2023) and Mamba-2 (Dao and Gu 2024) blocks. Names and shapes of tensors:
 * ggml-org/llama.cpp. */
#include "src/model/family/mamba.h"

#define MAX_INNER (1u << 21)
#define MAX_STATE 4096u

void qsf_ssm_read1(QsfBuilder *b, QsfSsm *s) {
    *s = (QsfSsm){ .groups = 1 };
    s->kernel = qsf_build_need_u32(b, "ssm.conv_kernel", 2, QSF_CONV_MAX);
    s->inner = qsf_build_need_u32(b, "ssm.inner_size", 1, MAX_INNER);
    s->n = qsf_build_need_u32(b, "ssm.state_size", 1, MAX_STATE);
    s->rank = qsf_build_need_u32(b, "ssm.time_step_rank", 1, MAX_INNER);
    s->norms = qsf_build_bool(b, "ssm.dt_b_c_rms", false);
}

void qsf_ssm_read_heads(QsfBuilder *b, QsfSsm *s) {
    *s = (QsfSsm){ 0 };
    s->kernel = qsf_build_need_u32(b, "ssm.conv_kernel", 2, QSF_CONV_MAX);
    s->inner = qsf_build_need_u32(b, "ssm.inner_size", 1, MAX_INNER);
    s->n = qsf_build_need_u32(b, "ssm.state_size", 1, MAX_STATE);
    s->rank = qsf_build_need_u32(b, "ssm.time_step_rank", 1, QSF_MAX_HEADS);
    if (!qsf_build_failed(b) && s->inner % s->rank != 0)
        qsf_build_check(b, qsf_keys_bad(&b->keys, "(the number of heads) does not divide ssm.inner_size"));
}

void qsf_ssm_read2(QsfBuilder *b, QsfSsm *s) {
    qsf_ssm_read_heads(b, s);
    s->groups = qsf_build_need_u32(b, "ssm.group_count", 1, QSF_MAX_HEADS);
    if (!qsf_build_failed(b) && s->rank % s->groups != 0)
        qsf_build_check(b, qsf_keys_bad(&b->keys, "does not divide ssm.time_step_rank, the number of heads"));
}

/* The norms of the time step, B and C: all or none. */
static void norms(QsfBuilder *b, const QsfSsm *s, QsfSlice dbc) {
    static const char *const names[] = { "ssm_dt_norm", "ssm_b_norm", "ssm_c_norm" };
    const QsfSlice parts[] = { qsf_slice_part(dbc, 0, s->rank), qsf_slice_part(dbc, s->rank, s->n),
                               qsf_slice_part(dbc, s->rank + s->n, s->n) };
    const bool weights = qsf_build_has(b, "ssm_dt_norm.weight") || qsf_build_has(b, "ssm_b_norm.weight") ||
                         qsf_build_has(b, "ssm_c_norm.weight");
    for (unsigned i = 0; (weights || s->norms) && i < 3; i++)
        qsf_build_norm(b, QSF_NORM_RMS, weights ? names[i] : NULL, parts[i], parts[i]);
}

void qsf_build_mamba1(QsfBuilder *b, const QsfSsm *s, QsfSlice in, QsfSlice out) {
    const QsfSlice xz = qsf_build_buffer(b, 2 * s->inner), dbc = qsf_build_buffer(b, s->rank + 2 * s->n),
                   dt = qsf_build_buffer(b, s->inner);
    const QsfSlice x = qsf_slice_part(xz, 0, s->inner), z = qsf_slice_part(xz, s->inner, s->inner);
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "ssm_in", in, xz);
    qsf_build_require(b, "ssm_conv1d.bias");
    qsf_build_conv(b, "ssm_conv1d", x, x, s->kernel, QSF_ACT_SILU);
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "ssm_x", x, dbc);
    norms(b, s, dbc);
    qsf_build_require(b, "ssm_dt.bias");
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "ssm_dt", qsf_slice_part(dbc, 0, s->rank), dt);
    qsf_build_scan(b, &(QsfScanSpec){ .op = QSF_OP_SCAN1,
                                      .x = x,
                                      .dt = dt,
                                      .bc = qsf_slice_part(dbc, s->rank, 2 * s->n),
                                      .out = x,
                                      .heads = s->inner,
                                      .n = s->n,
                                      .groups = 1 });
    qsf_build_act(b, "ssm_gate", QSF_ACT_SILU, x, z);
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "ssm_out", z, out);
}

void qsf_build_mamba2(QsfBuilder *b, const QsfSsm *s, const QsfSsmNeeds *needs, QsfSlice in, QsfSlice out) {
    const uint32_t bc = 2 * s->groups * s->n, heads = s->rank;
    const QsfSlice all = qsf_build_buffer(b, 2 * s->inner + bc + heads);
    const QsfSlice z = qsf_slice_part(all, 0, s->inner), xbc = qsf_slice_part(all, s->inner, s->inner + bc),
                   x = qsf_slice_part(xbc, 0, s->inner), dt = qsf_slice_part(all, 2 * s->inner + bc, heads);
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "ssm_in", in, all);
    if (needs->conv_bias == QSF_REQUIRED) qsf_build_require(b, "ssm_conv1d.bias");
    qsf_build_conv(b, "ssm_conv1d", xbc, xbc, s->kernel, QSF_ACT_SILU);
    const uint32_t bias = qsf_build_param(b, QSF_REQUIRED, heads, "ssm_dt.bias");
    qsf_build_with_param(b, QSF_OP_BIAS, "ssm_dt", bias, dt);
    qsf_build_scan(b, &(QsfScanSpec){ .op = QSF_OP_SCAN2,
                                      .x = x,
                                      .dt = dt,
                                      .bc = qsf_slice_part(xbc, s->inner, bc),
                                      .out = x,
                                      .heads = heads,
                                      .n = s->n,
                                      .groups = s->groups });
    qsf_build_act(b, "ssm_gate", QSF_ACT_SILU, x, z);
    if (needs->norm == QSF_REQUIRED || qsf_build_has(b, "ssm_norm.weight"))
        qsf_build_head_norm(b, QSF_NORM_RMS, "ssm_norm", z, s->groups, true);
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "ssm_out", z, out);
}
