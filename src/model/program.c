/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names and kinds of steps. */
#include "src/model/program.h"

#include <stddef.h>

static const struct {
    const char *name;
    bool column;
    bool in_place; /* reads what out holds */
} ops[QSF_OP_N] = {
    [QSF_OP_NORM] = { "norm", true, false },
    [QSF_OP_ADD] = { "add", true, true },
    [QSF_OP_MUL] = { "mul", true, true },
    [QSF_OP_COPY] = { "copy", true, false },
    [QSF_OP_SCALE] = { "scale", true, true },
    [QSF_OP_BIAS] = { "bias", true, true },
    [QSF_OP_GAIN] = { "gain", true, true },
    [QSF_OP_CLAMP] = { "clamp", true, true },
    [QSF_OP_SOFTCAP] = { "softcap", true, true },
    [QSF_OP_ACT] = { "act", true, true },
    [QSF_OP_ROPE] = { "rope", true, true },
    [QSF_OP_POSITION] = { "position", false, true },
    [QSF_OP_TEMPERATURE] = { "temperature", true, true },
    [QSF_OP_HEADS] = { "heads", true, false },
    [QSF_OP_ROUTE] = { "route", true, false },
    [QSF_OP_MATVEC] = { "matvec", true, false },
    [QSF_OP_SPARSE] = { "sparse", true, true },
    [QSF_OP_MATCH] = { "match", true, true },
    [QSF_OP_PREDICT] = { "predict", true, true },
    [QSF_OP_CORRECT] = { "correct", true, true },
    [QSF_OP_BLEND] = { "blend", true, false },
    [QSF_OP_KV_STORE] = { "kv_store", true, false },
    [QSF_OP_CONV] = { "conv", false, false },
    [QSF_OP_SCAN1] = { "scan1", false, false },
    [QSF_OP_SCAN2] = { "scan2", false, false },
    [QSF_OP_LERP] = { "lerp", true, false },
    [QSF_OP_WKV_BONUS] = { "wkv_bonus", true, true },
    [QSF_OP_INDEX] = { "index", false, false },
    [QSF_OP_SHIFT] = { "shift", false, false },
    [QSF_OP_DELTA] = { "delta", false, false },
    [QSF_OP_WKV] = { "wkv", false, false },
    [QSF_OP_TOKEN_ROWS] = { "token_rows", false, false },
    [QSF_OP_LINEAR] = { "linear", false, false },
    [QSF_OP_HEAD_LINEAR] = { "head_linear", false, false },
    [QSF_OP_ATTENTION] = { "attention", false, false },
    [QSF_OP_EXPERTS] = { "experts", false, false },
};

static const char *const acts[QSF_ACT_N] = {
    [QSF_ACT_NONE] = "none",
    [QSF_ACT_SILU] = "silu",
    [QSF_ACT_GELU] = "gelu",
    [QSF_ACT_RELU2] = "relu2",
    [QSF_ACT_RELU] = "relu",
    [QSF_ACT_SIGMOID] = "sigmoid",
    [QSF_ACT_SOFTPLUS] = "softplus",
    [QSF_ACT_TANH] = "tanh",
    [QSF_ACT_XIELU] = "xielu",
    [QSF_ACT_EXP] = "exp",
    [QSF_ACT_SWIGLU_LIMIT] = "swiglu_limit",
    [QSF_ACT_SITU] = "situ",
    [QSF_ACT_SWIGLU_OAI] = "swiglu_oai",
};

uint32_t qsf_step_unit(const QsfStep *s) {
    if (s->op == QSF_OP_LINEAR) return s->u.linear.unit;
    return s->op == QSF_OP_HEAD_LINEAR ? s->u.head_linear.unit : QSF_NONE;
}

bool qsf_step_is_in_place(const QsfStep *s) {
    if (s->op == QSF_OP_HEADS) return s->u.heads.keep;
    if (s->op == QSF_OP_LERP) return s->u.lerp.param == QSF_NONE;
    return ops[s->op].in_place;
}

bool qsf_op_is_column(QsfOp op) { return ops[op].column; }
const char *qsf_op_name(QsfOp op) { return ops[op].name; }
const char *qsf_act_name(QsfActKind kind) { return acts[kind]; }
