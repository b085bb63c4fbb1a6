/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Feed-forward networks that are split into experts: a router chooses a few of them for each position. */
#ifndef QSF_MODEL_MOE_H
#define QSF_MODEL_MOE_H

#include "src/model/build.h"

/* Whether the weights of the chosen experts are divided by their sum. */
typedef enum QsfMoeNorm { QSF_MOE_NORM_NEVER, QSF_MOE_NORM_ALWAYS, QSF_MOE_NORM_BY_KEY } QsfMoeNorm;

/* Which blocks have experts. */
typedef enum QsfMoeBlocks {
    QSF_MOE_BLOCKS_ALL,
    QSF_MOE_BLOCKS_TENSORS, /* those with a router */
    QSF_MOE_BLOCKS_LEADING, /* those after leading_dense_block_count */
    QSF_MOE_BLOCKS_STEP     /* every n-th, n = interleave_moe_layer_step, after leading_dense_block_count */
} QsfMoeBlocks;

/* What the architectures differ in, for their rows in table.c. */
typedef struct QsfMoeRow {
    QsfMoeBlocks blocks;
    QsfGating gating; /* where the key expert_gating_func is missing */
    QsfMoeNorm norm;
    QsfActKind act;
    bool not_gated;     /* down(act(up(x))) */
    bool fixed_gating;  /* expert_gating_func is not read */
    bool needs_gating;  /* expert_gating_func must be there */
    bool sigmoid_large; /* the default of models with 47 or 48 blocks and 154,880 tokens is
                           SIGMOID (GLM-4.7-Flash) */
    bool scale_input;   /* an expert's input is multiplied by its weight, not its output */
    bool optional;      /* without expert_count the model is dense */
    bool limits;        /* swiglu_clamp_exp and swiglu_clamp_shexp limit the activations of each block */
    bool early_router;  /* the router reads the block's input before its norms */
    bool dense_shared;  /* the block's dense network, if there is one, is the shared expert */
    bool maybe_gated;   /* without the gate's matrix experts and networks are down(act(up(x))) */
    bool shared_parts;  /* one matrix of the shared expert may be missing (QsfFfnSpec.parts) */
    bool shared_gate;   /* the shared expert is optional: it exists if its gate's matrix does */
    bool adjugate;      /* neighbours share a smaller expert: experts_per_group, expert_group_scale */
    float sum_scale;    /* of the sum of routed and shared experts; 0 = 1 */
} QsfMoeRow;

/* Routed and shared experts of one block. */
typedef struct QsfMoeSpec {
    uint32_t n_expert, n_used;
    uint32_t ffn, shared_ffn;                       /* rows of an expert; of the shared one, 0 = none */
    uint32_t n_groups, n_groups_used, group_scores; /* as in QsfRouteStep */
    QsfGating gating;
    bool norm;   /* weights are divided by their sum */
    float scale; /* and multiplied by this */
    QsfActKind act;
    bool gated;                      /* down(act(gate(x)) * up(x)), otherwise down(act(up(x))) */
    bool shared_gated, shared_parts; /* the same of the shared expert; as in QsfMoeRow */
    bool scale_input, dense_shared;  /* as in QsfMoeRow */
    float sum_scale;
    const char *tensors; /* "exps": how the names of the tensors end; "chexps" of adjugate experts */
    uint32_t group;      /* experts that share an adjugate one, 0 = none do */
    float group_scale;   /* of the sum of adjugate experts */
    QsfActStep routed_act, shared_act; /* activations with constants instead of act; kind NONE = act */
    QsfSlice router_in;                /* buf QSF_NONE = the input of the experts */
    QsfSlice router_logits;            /* buf QSF_NONE = ffn_gate_inp times router_in */
} QsfMoeSpec;

/* Reads the keys of the current block's experts. The widths come from the tensors, which must agree with
 * expert_feed_forward_length or feed_forward_length. Sets router_in and router_logits to none. */
void qsf_moe_read(QsfBuilder *b, const QsfMoeRow *row, QsfMoeSpec *spec);
/* Returns the activation of a network without experts in a block of such a model: kind
 * NONE = that of the family. */
QsfActStep qsf_moe_dense_act(QsfBuilder *b, const QsfMoeRow *row);
/* Returns whether the current block has experts. */
bool qsf_moe_has(QsfBuilder *b, const QsfMoeRow *row);

/* out = the sum of the chosen experts and of the shared one, whose tensors are called ffn_*_shexp. in and out
 * may be the same. Tensors: ffn_gate_inp (with an optional bias), exp_probs_b (optional), ffn_gate_exps and
 * ffn_up_exps or ffn_gate_up_exps, ffn_down_exps (each with optional biases; ffn_down_exps.scale), or instead
 * of these matrices ffn_gate.E, ffn_up.E and ffn_down.E of each expert E,
 * ffn_gate_inp_shexp (optional: the shared expert is multiplied by its sigmoid). */
void qsf_build_moe(QsfBuilder *b, const QsfMoeSpec *spec, QsfSlice in, QsfSlice out);
/* The routed experts alone; in and out are different buffers. */
void qsf_build_routed(QsfBuilder *b, const QsfMoeSpec *spec, QsfSlice in, QsfSlice out);
/* The shared expert alone, with its gate; out may be in. */
void qsf_build_shared_expert(QsfBuilder *b, const QsfMoeSpec *spec, QsfSlice in, QsfSlice out);

#endif
