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
    QSF_QK_NORM_HEAD,        /* of each head, before rotation */
    QSF_QK_NORM_HEAD_AFTER,  /* of each head, after rotation */
    QSF_QK_NORM_PLAIN_AFTER, /* of each head without weights, after rotation; then one factor per query head */
    QSF_QK_NORM_HEAD_OPTIONAL, /* as HEAD, each where its tensor exists */
    QSF_QK_NORM_ROW,           /* over all heads together, before rotation */
    QSF_QK_NORM_OPTIONAL /* of each head with weights of its own, before rotation, each where its tensor exists */
} QsfQkNorm;

/* How the two branches of a block are connected. */
typedef enum QsfBranches {
    QSF_BRANCHES_SEQUENTIAL,
    QSF_BRANCHES_ONE_NORM, /* both read the norm of the block's input */
    QSF_BRANCHES_BY_TENSOR, /* sequential where ffn_norm exists, else as ONE_NORM; attn_norm_2 is attention's own norm */
    QSF_BRANCHES_EXPERTS, /* sequential, and experts that read the block's input, each with its norm */
    QSF_BRANCHES_BY_KEY   /* with use_parallel_residual both read the block's input, each with its norm */
} QsfBranches;

/* Which blocks rotate queries and keys. */
typedef enum QsfRopeBlocks {
    QSF_ROPE_BLOCKS_ALL,
    QSF_ROPE_BLOCKS_WINDOW,            /* those with a window; all, if none has one */
    QSF_ROPE_BLOCKS_WINDOW_OR_LEADING, /* the same, and the leading_dense_block_count first ones */
    QSF_ROPE_BLOCKS_NOT_FIRST,  /* with windows: all but the first of each four, unless there are only four */
    QSF_ROPE_BLOCKS_NOT_FOURTH, /* all but every fourth */
    QSF_ROPE_BLOCKS_PATTERN     /* those that attention.rope_pattern names */
} QsfRopeBlocks;

/* Rotation in blocks with a window; of rope.dimension_count_swa elements, if there is that key, unless SAME. */
typedef enum QsfWindowRope {
    QSF_WINDOW_ROPE_SAME,
    QSF_WINDOW_ROPE_PLAIN,      /* the same base without scaling */
    QSF_WINDOW_ROPE_OWN,        /* rope.freq_base_swa (10000) without scaling */
    QSF_WINDOW_ROPE_BASE,       /* rope.freq_base_swa, or the same base, with scaling */
    QSF_WINDOW_ROPE_PLAIN_BASE, /* the same without scaling */
    QSF_WINDOW_ROPE_BY_KEY      /* BASE if there is rope.freq_base_swa, else SAME */
} QsfWindowRope;

/* Quirks of an architecture, as bits. */
enum {
    QSF_DENSE_EMBED_SQRT = 1 << 0, /* embeddings times sqrt(hidden) */
    QSF_DENSE_SCALES = 1 << 1, /* embedding_scale, residual_scale, attention.scale; logits / logit_scale */
    QSF_DENSE_LOGIT_SCALE = 1 << 2, /* logits * logit_scale */
    QSF_DENSE_POSITIONS = 1 << 3,   /* learned positions */
    QSF_DENSE_FUSED_UP = 1 << 4,    /* ffn_up holds gate and up */
    QSF_DENSE_SUB_NORMS = 1 << 5,   /* norms before the last matrix of each branch */
    QSF_DENSE_SCORE_CAP = 1 << 6,   /* attn_logit_softcapping */
    QSF_DENSE_LOGIT_CAP = 1 << 16,  /* final_logit_softcapping */
    QSF_DENSE_TEMPERATURE = 1 << 7, /* attention.temperature_scale */
    QSF_DENSE_CLAMP_QKV = 1 << 8,   /* attention.clamp_kqv */
    QSF_DENSE_NO_NORM_WEIGHTS = 1 << 9,
    QSF_DENSE_EMBED_NORM = 1 << 10,      /* a norm after the embedding */
    QSF_DENSE_MINICPM = 1 << 12,         /* QSF_DENSE_SCALES with defaults of their own */
    QSF_DENSE_SCALE_BY_DIM = 1 << 13,    /* scores / head_dim */
    QSF_DENSE_HALF_FFN = 1 << 14,        /* feed_forward_length is twice the width */
    QSF_DENSE_EMBED_IS_HEAD = 1 << 22,   /* without token_embd.weight the head is the embedding table */
    QSF_DENSE_MAYBE_POSITIONS = 1 << 15, /* learned positions where the tensor exists */
    QSF_DENSE_RMS_BIAS = 1 << 21,        /* RMS norms with biases */
    QSF_DENSE_LLAMA4 = 1 << 20,          /* chunks, norms and temperatures of Llama 4 */
    QSF_DENSE_GROK = 1 << 17,            /* embedding_scale, logit_scale and attention.output_scale of Grok */
    QSF_DENSE_VALUE_SCALE = 1 << 18,     /* attention.value_scale */
    QSF_DENSE_GATE_OPTIONAL = 1 << 19,   /* attn_gate where the tensor exists */
    QSF_DENSE_HALF_ROPE = 1 << 23,       /* blocks without a window rotate half of rope.dimension_count */
    QSF_DENSE_ALPHA = 1 << 24,           /* rope.scaling.alpha */
    QSF_DENSE_FIXED_ROPE = 1 << 25,      /* the base of the rotation is 10000 */
    QSF_DENSE_EMBED_PLAIN_NORM = 1 << 26, /* an RMS norm without weight after the embedding */
    QSF_DENSE_EMBED_SKIP = 1 << 27,       /* each block adds the embedding times layer_output_scale */
    QSF_DENSE_BLOCK_INDEX =
        1 << 28, /* after leading_dense_block_count an indexer chooses the positions to read */
    QSF_DENSE_SCALE_27B = 1 << 11 /* the largest Gemma divides scores by sqrt(hidden / heads) */
};

/* Transformers with attention and a feed-forward network in each block. */
typedef struct QsfDense {
    QsfRopeKind rope;
    QsfRopeSections sections;
    QsfActKind act;
    bool gated; /* down(act(gate(x)) * up(x)); otherwise down(act(up(x))) */
    QsfNormPlaces norms;
    QsfBranches branches;
    QsfQkNorm qk_norm;
    QsfActKind gate; /* attention's output is multiplied by this function of attn_gate; NONE = it is not */
    const char *attn_post_norm; /* name of the norm after attention; NULL = "post_attention_norm" */
    float post_eps;             /* epsilon of the norms after branches; 0 = as of others */
    const char *ffn_norm;       /* name of the norm before the feed-forward network; NULL = "ffn_norm" */
    unsigned quirks;            /* QSF_DENSE_* */
    uint32_t
        window_period; /* with attention.sliding_window all blocks but every n-th have a window; 0 = none */
    uint32_t window_default; /* of attention.sliding_window; 0 = no block has a window without the key */
    bool window_needed;      /* the key must be there, and not 0 */
    bool window_zero;        /* it may be 0 all the same: then no block has a window */
    bool pattern_needed;     /* attention.sliding_window_pattern must be there */
    uint32_t window_blocks;  /* only models of this many blocks have windows; 0 = any */
    bool window_not_first;   /* instead of all but the last of each n: all but the first */
    /* size of the windows, where attention.sliding_window only turns them on; 0 = it is their size */
    uint32_t window_size;
    QsfRopeBlocks rope_blocks;
    QsfWindowRope window_rope;
    float score_cap, logit_cap; /* defaults of the caps */
    bool maybe_logit_scale;     /* logit_scale may be missing */
    const char *const
        *unused;           /* tensors of blocks that have no effect on text, NULL-terminated; NULL = none */
    bool clamp_needed;     /* attention.clamp_kqv must be there */
    float alibi;           /* default of attention.max_alibi_bias */
    bool maybe_alibi;      /* attention.max_alibi_bias is read, and is 0 without the key */
    uint32_t alibi_blocks; /* only models of this many blocks have it, and do not rotate; 0 = any */
    const struct QsfMoeRow *moe; /* how the feed-forward network is routed; NULL = never */
} QsfDense;
void qsf_family_dense(QsfBuilder *b);

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
    bool gated; /* as in QsfDense */
    QsfRopeKind
        indexer; /* NONE: attention reads all positions; else what an indexer chooses, which rotates so */
    bool maybe_key_norm;         /* as QsfIndexer.maybe_norm */
    bool windows;                /* blocks with a window have sizes of their own; a gate; attn_k_norm */
    bool minicpm;                /* scales of embeddings, branches and logits */
    const struct QsfMoeRow *moe; /* how the feed-forward network is routed; NULL = never */
} QsfMla;
void qsf_family_mla(QsfBuilder *b);

#endif
