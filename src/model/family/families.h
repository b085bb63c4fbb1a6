/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The builders of model families and what their rows in table.c differ in. */
#ifndef QSF_MODEL_FAMILY_FAMILIES_H
#define QSF_MODEL_FAMILY_FAMILIES_H

#include "src/model/build.h"
#include "src/model/rope.h"

/* Where the norms of a block are. */
typedef enum QsfNormPlaces {
    QSF_NORMS_BEFORE, /* of each branch */
    QSF_NORMS_AFTER,  /* of each branch, before it is added */
    QSF_NORMS_AROUND  /* both */
} QsfNormPlaces;

/* Norms of the query and key heads. */
typedef enum QsfQkNorm {
    QSF_QK_NORM_NONE,
    QSF_QK_NORM_HEAD,          /* of each head, before rotation */
    QSF_QK_NORM_HEAD_AFTER,    /* of each head, after rotation */
    QSF_QK_NORM_HEAD_OPTIONAL, /* as HEAD, each where its tensor exists */
    QSF_QK_NORM_ROW,           /* over all heads together, before rotation */
    QSF_QK_NORM_OPTIONAL /* of each head with its own weights, before rotation, each where its tensor is */
} QsfQkNorm;

/* How the two branches of a block are connected. */
typedef enum QsfBranches {
    QSF_BRANCHES_SEQUENTIAL,
    QSF_BRANCHES_ONE_NORM,  /* both read the norm of the block's input */
    QSF_BRANCHES_BY_TENSOR, /* sequential where ffn_norm exists, else ONE_NORM; attn_norm_2 is attention's */
    QSF_BRANCHES_BY_KEY     /* with use_parallel_residual both read the block's input, each with its norm */
} QsfBranches;

/* Which blocks rotate queries and keys. */
typedef enum QsfRopeBlocks {
    QSF_ROPE_BLOCKS_PERIOD,            /* as QsfDense.rope_period says */
    QSF_ROPE_BLOCKS_WINDOW,            /* those with a window; all, if none has one */
    QSF_ROPE_BLOCKS_WINDOW_OR_LEADING, /* the same, and the leading_dense_block_count first ones */
    QSF_ROPE_BLOCKS_PATTERN            /* those that attention.rope_pattern names */
} QsfRopeBlocks;

/* Rotation in blocks with a window; unless SAME, of rope.dimension_count_swa elements if that key exists. */
typedef enum QsfWindowRope {
    QSF_WINDOW_ROPE_SAME,
    QSF_WINDOW_ROPE_PLAIN,      /* the same base without scaling */
    QSF_WINDOW_ROPE_OWN,        /* rope.freq_base_swa (10000) without scaling */
    QSF_WINDOW_ROPE_BASE,       /* rope.freq_base_swa, or the same base, with scaling */
    QSF_WINDOW_ROPE_PLAIN_BASE, /* the same without scaling */
    QSF_WINDOW_ROPE_BY_KEY      /* BASE if there is rope.freq_base_swa, else SAME */
} QsfWindowRope;

/* Whether a family has a part: a tensor or a key that changes the result. */
typedef enum QsfUse {
    QSF_USE_NEVER, /* it is not looked for */
    QSF_USE_MAYBE, /* where the file has it */
    QSF_USE_ALWAYS /* it must be there */
} QsfUse;

/* Transformers with attention and a feed-forward network in each block. A field of 0 is the common case: rows
 * name what is special. */
typedef struct QsfDense {
    /* ---- embedding and head ---- */
    bool embed_sqrt;       /* embeddings times sqrt(hidden) */
    bool embed_norm;       /* a norm after the embedding: token_embd_norm */
    bool embed_plain_norm; /* an RMS norm without weight after the embedding */
    bool embed_is_head;    /* without token_embd.weight the head is the embedding table */
    QsfUse positions;      /* learned positions: position_embd */
    QsfUse logit_scale;    /* logits * logit_scale */
    float logit_cap;       /* final_logit_softcapping without the key; 0 = it is not read */
    bool granite_scales;   /* embedding_scale, residual_scale, attention.scale; logits / logit_scale */

    /* ---- norms and branches ---- */
    QsfNormPlaces norms;
    QsfBranches branches;
    bool no_norm_weights; /* of the norms around branches and before the head */
    bool rms_bias;        /* RMS norms with biases */
    bool sub_norms;       /* norms before the last matrix of each branch */
    float post_eps;       /* epsilon of the norms after branches; 0 = as of others */
    const char *ffn_norm; /* name of the norm before the feed-forward network; NULL = "ffn_norm" */

    /* ---- attention ---- */
    QsfQkNorm qk_norm;
    QsfUse clamp_qkv;   /* attention.clamp_kqv */
    bool temperature;   /* attention.temperature_scale */
    bool scores_by_dim; /* scores / head_dim */
    bool scores_27b;    /* Gemma 2 and 3 with 46 or 62 blocks divide scores by sqrt(hidden / heads) */
    float score_cap;    /* attn_logit_softcapping without the key; 0 = it is not read */
    QsfActKind gate;    /* attention's output is multiplied by this function of attn_gate; NONE = it is not */
    bool maybe_gate;    /* only in blocks where that tensor exists */
    bool value_scale;   /* attention.value_scale, of attention's output */
    bool alibi;         /* attention.max_alibi_bias */
    float alibi_default;   /* without the key */
    uint32_t alibi_blocks; /* only models of this many blocks have it, and do not rotate; 0 = any */

    /* ---- rotation ---- */
    QsfRopeKind rope;
    QsfRopeSections sections;
    bool rope_alpha; /* rope.scaling.alpha */
    bool half_rope;  /* blocks without a window rotate half of rope.dimension_count */
    bool fixed_rope; /* the base of the rotation is 10000 */
    QsfRopeBlocks rope_blocks;
    uint32_t rope_period; /* the last of each n blocks does not rotate; 0 = all blocks rotate */
    bool rope_not_first;  /* the first instead, and only in models with windows and other than n blocks */

    /* ---- windows ---- */
    uint32_t window_period;  /* all but the last of each n blocks have a window; 0 = none */
    bool window_not_first;   /* all but the first instead */
    uint32_t window_default; /* of attention.sliding_window; 0 = no block has a window without the key */
    uint32_t window_size;    /* where attention.sliding_window only turns windows on; 0 = it is their size */
    bool window_needed;      /* attention.sliding_window must be there, and not 0 */
    bool window_zero;        /* it may be 0 all the same: then no block has a window */
    bool pattern_needed;     /* attention.sliding_window_pattern must be there */
    uint32_t window_blocks;  /* only models of this many blocks have windows; 0 = any */
    QsfWindowRope window_rope;

    /* ---- feed-forward network ---- */
    QsfActKind act;
    bool gated;                  /* down(act(gate(x)) * up(x)); otherwise down(act(up(x))) */
    bool fused_up;               /* ffn_up holds gate and up */
    bool half_ffn;               /* feed_forward_length is twice the width */
    const struct QsfMoeRow *moe; /* how the feed-forward network is routed; NULL = never */

    /* Tensors of blocks that have no effect on text, NULL-terminated; NULL = none. */
    const char *const *unused;
} QsfDense;
void qsf_family_dense(QsfBuilder *b);

/* The same with a part of their own, from the parts of dense.h; their traits are QsfDense. */
void qsf_family_arctic(QsfBuilder *b);
void qsf_family_grok(QsfBuilder *b);
void qsf_family_llama4(QsfBuilder *b);
void qsf_family_minicpm(QsfBuilder *b);
void qsf_family_minimax_m3(QsfBuilder *b);
void qsf_family_talkie(QsfBuilder *b);

/* What families with recurrences mix positions with. */
typedef enum QsfMixer { QSF_MIXER_MAMBA1, QSF_MIXER_MAMBA2, QSF_MIXER_SHORT_CONV } QsfMixer;

/* Families in which some blocks, or all, mix the positions with a recurrence instead of attention: blocks
 * without KV heads. */
typedef struct QsfHybrid {
    QsfMixer mixer;
    bool parallel;               /* every block has both, of one norm, and adds them */
    bool alone;                  /* a block with a feed-forward network has nothing else */
    QsfRopeKind rope;            /* NONE: attention without positions */
    bool qk_norm;                /* RMS norm of the heads of Q and K before the rotation */
    QsfActKind act;              /* of the feed-forward network */
    bool gated;                  /* down(act(gate(x)) * up(x)); otherwise down(act(up(x))) */
    bool scales;                 /* Granite's keys for scales, and rope.scaling.finetuned */
    QsfNeed conv_bias;           /* of Mamba-2 */
    QsfNeed mixer_norm;          /* of Mamba-2 */
    const struct QsfMoeRow *moe; /* NULL: no experts */
    const char *out_norm;        /* the final norm; NULL: "output_norm" */
} QsfHybrid;
void qsf_family_hybrid(QsfBuilder *b);

/* RWKV-6 and RWKV-7. */
typedef struct QsfRwkv {
    unsigned version;
    bool channel_mix; /* instead of a feed-forward network; then there is a norm after the embedding */
    bool receptance;  /* the channel mix has a gate */
    bool optional_norm, optional_gate; /* of version 7: files may lack the norm of the heads; the gate */
} QsfRwkv;
void qsf_family_rwkv(QsfBuilder *b);

/* Attention and linear attention with a gated delta rule. */
typedef struct QsfQwenNext {
    QsfRopeSections sections;
    bool fused_beta; /* ssm_ba instead of ssm_beta and ssm_alpha; neighbouring V heads share a K head */
    const struct QsfMoeRow *moe; /* how the feed-forward network is routed; NULL = never */
} QsfQwenNext;
void qsf_family_qwen_next(QsfBuilder *b);

/* PLaMo 2; MiniMax-01, whose traits are QsfMoeRow. */
void qsf_family_plamo2(QsfBuilder *b);
void qsf_family_minimax01(QsfBuilder *b);

/* Whether the logarithms of decays have a lower bound: kda.gate_lower_bound. */
typedef enum QsfKimiBound { QSF_KIMI_NO_BOUND, QSF_KIMI_MAYBE_BOUND, QSF_KIMI_BOUND } QsfKimiBound;

/* Kimi Linear and its relatives. */
typedef struct QsfKimi {
    const struct QsfMoeRow *moe;
    QsfKimiBound bound;
    bool negative_factor; /* with a bound the factors of the heads (ssm_a) are stored negative */
    QsfRopeKind rope;     /* of latent attention */
    QsfActKind mla_gate;  /* as QsfMlaSpec.gate */
    bool maybe_mla_gate;  /* where its tensor exists */
    bool k3;              /* residual attention, experts in a latent space, an activation of its own */
} QsfKimi;
void qsf_family_kimi(QsfBuilder *b);

/* Gemma 3n and 4. */
void qsf_family_gemma3n(QsfBuilder *b);
void qsf_family_gemma4(QsfBuilder *b);

/* What YaRN does in a model with latent attention. */
typedef enum QsfMlaYarn {
    QSF_MLA_YARN_PLAIN,  /* nothing special */
    QSF_MLA_YARN_SCORES, /* scales scores; cos and sin as usual */
    QSF_MLA_YARN_UNIT    /* scales scores instead of cos and sin */
} QsfMlaYarn;

/* Transformers with multi-head latent attention. */
typedef struct QsfMla {
    QsfRopeKind rope;
    QsfMlaYarn yarn; /* other than PLAIN: queries are also scaled by attention.temperature_scale */
    QsfActKind act;
    bool gated;                  /* as in QsfDense */
    QsfRopeKind indexer;         /* NONE: attention reads all positions; else what an indexer chooses,
                                    which rotates so */
    bool maybe_key_norm;         /* as QsfIndexer.maybe_norm */
    bool windows;                /* blocks with a window have sizes of their own; a gate; attn_k_norm */
    bool minicpm;                /* scales of embeddings, branches and logits */
    const struct QsfMoeRow *moe; /* how the feed-forward network is routed; NULL = never */
} QsfMla;
void qsf_family_mla(QsfBuilder *b);

#endif
