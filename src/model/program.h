/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A model as a program: a flat list of steps over buffers of floats, written by the model's family
 * (src/model/family) when the model is opened. The memory plan, the order of streaming, --inspect and the
 * forward pass all read this list; none of them knows a family. docs/MODELS.md explains how to read a program
 * and how to add a family. Immutable once the model is open. */
#ifndef QSF_MODEL_PROGRAM_H
#define QSF_MODEL_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/blocks.h"
#include "src/file/source.h"

#define QSF_NONE         UINT32_MAX /* no parameter, unit, buffer or cache */
#define QSF_UNIT_TENSORS 3          /* maximum number of matrices that one step multiplies */
#define QSF_MAX_STREAMS  8u         /* residual streams of one model */
#define QSF_MAX_EXPERTS  1024u      /* of one block */

/* ---- steps ---- */

/* What a step does. "Column steps" compute each column (one position) by itself; neighbouring ones run in one
 * parallel pass over the columns. */
typedef enum QsfOp {
    /* Column steps. */
    QSF_OP_NORM,        /* out = norm(in) */
    QSF_OP_ADD,         /* out += in */
    QSF_OP_MUL,         /* out *= in: n elements, each for width / n elements of out */
    QSF_OP_COPY,        /* out = in */
    QSF_OP_SCALE,       /* out *= scale */
    QSF_OP_BIAS,        /* out += parameter */
    QSF_OP_GAIN,        /* out *= parameter: n elements, each for width / n elements of out */
    QSF_OP_CLAMP,       /* out = min(max(out, low), high) */
    QSF_OP_SOFTCAP,     /* out = cap * tanh(out / cap) */
    QSF_OP_ACT,         /* out = act(out), times in if there is one */
    QSF_OP_ROPE,        /* rotates heads of out */
    QSF_OP_POSITION,    /* out += the position's row of QsfProgram.position_table */
    QSF_OP_TEMPERATURE, /* out *= 1 + scale * ln(1 + floor((position + offset) / length)) */
    QSF_OP_HEADS,  /* out = in, head by head, with different distances between the heads, padded with zeros */
    QSF_OP_ROUTE,  /* chooses experts by their logits (in); out = their ids and weights */
    QSF_OP_MATVEC, /* out = parameter (in.width, out.width) times in: for a few rows */
    QSF_OP_SPARSE, /* out = max(out - mean - scale * deviation, 0) */
    QSF_OP_MATCH,  /* gives the vectors of out, as wide as in, the length of in */
    QSF_OP_PREDICT,   /* vector i of out += the sum over j of in[i * n + j] times vector j; n vectors */
    QSF_OP_CORRECT,   /* d = in - vector 0 of out; vector i of out += d * (1 + in2[i]) */
    QSF_OP_BLEND,     /* out = sum of the vectors of in, and in2, weighted by their scores */
    QSF_OP_KV_STORE,  /* stores K (in) and V (in2; none: V is K) in a KV cache */
    QSF_OP_LERP,      /* out = in + (in2 - in) * weight: a parameter, or what out holds */
    QSF_OP_WKV_BONUS, /* out += V * (R . K . parameter), head by head */
    /* Steps over all columns. */
    QSF_OP_TOKEN_ROWS,  /* out = the token's row of QsfProgram.token_table */
    QSF_OP_LINEAR,      /* out[i] = matrix i of a unit times in */
    QSF_OP_HEAD_LINEAR, /* head h of out = matrix h of a tensor times head h of in */
    QSF_OP_ATTENTION,   /* out = softmax(in K^T) V */
    QSF_OP_INDEX,       /* out = the positions with the best scores, for ATTENTION */
    QSF_OP_SHIFT,       /* out = in of the position before */
    QSF_OP_DELTA,       /* linear attention with a delta rule */
    QSF_OP_WKV,         /* linear attention of RWKV */
    QSF_OP_CONV,        /* out = act(causal convolution of each channel of in over the positions) */
    QSF_OP_SCAN1,       /* out = selective scan of in over the positions: Mamba (Gu and Dao 2023) */
    QSF_OP_SCAN2,       /* the same with one decay per head: Mamba-2 (Dao and Gu 2024) */
    QSF_OP_EXPERTS,     /* out = sum of the experts that were chosen for each column */
    QSF_OP_N
} QsfOp;

typedef enum QsfNormKind { QSF_NORM_RMS, QSF_NORM_LAYER, QSF_NORM_L2 } QsfNormKind;

/* Activation functions; those of pairs multiply by a second input. */
typedef enum QsfActKind {
    QSF_ACT_NONE,
    QSF_ACT_SILU,
    QSF_ACT_GELU, /* tanh form */
    QSF_ACT_RELU2,
    QSF_ACT_RELU,
    QSF_ACT_SIGMOID,
    QSF_ACT_SOFTPLUS,
    QSF_ACT_TANH,
    QSF_ACT_EXP,
    QSF_ACT_XIELU,
    QSF_ACT_SWIGLU_LIMIT, /* pairs only: min(silu(x), a), times up within +-a */
    QSF_ACT_SITU, /* pairs only: a * tanh(x / a) * sigmoid(x), times b * tanh(up / b), or up if b is 0 */
    QSF_ACT_SWIGLU_OAI, /* pairs only: clamped, (up + 1) * x * sigmoid(1.702 x) */
    QSF_ACT_N
} QsfActKind;

typedef enum QsfRopeKind {
    QSF_ROPE_NONE,
    QSF_ROPE_PAIRS, /* adjacent pairs (2i, 2i+1): GGUF "llama" weights are permuted for it */
    QSF_ROPE_HALVES /* (i, i + n_rot/2) */
} QsfRopeKind;

/* Elements [off, off + width) of each column of a buffer. */
typedef struct QsfSlice {
    uint32_t buf, off, width;
} QsfSlice;

#define QSF_BUF_X      0u             /* the residual stream; hidden elements */
#define QSF_BUF_BRANCH 1u             /* input and output of the branches of a block; hidden elements */
#define QSF_BUF_LOGITS (QSF_NONE - 1) /* the logits of the columns that are asked for; n_vocab elements */

typedef struct QsfNormStep {
    QsfNormKind kind;
    uint32_t weight, bias; /* parameters; QSF_NONE = 1 and 0 */
    uint32_t heads;        /* the slice is this many vectors, each normalized by itself */
    bool weight_per_head;  /* the weight is (heads, n) instead of (n) */
    float eps;
} QsfNormStep;

typedef struct QsfActStep {
    QsfActKind kind;
    float a, b, c, d; /* constants; of XIELU: alpha_p, alpha_n, beta, eps */
} QsfActStep;

/* Head h at out.off + h * stride; its elements [off, off + n_rot) are rotated. */
typedef struct QsfRopeStep {
    uint32_t table, heads, stride, off;
} QsfRopeStep;

/* n elements of each head: head h of in is at in.off + h * in_stride, of out at out.off + h * out_stride. The
 * rest of out's head, out_stride - n elements, becomes 0, or stays as it is (keep). in and out do not
 * overlap. in_stride 0 repeats one head. */
typedef struct QsfHeadsStep {
    uint32_t heads, n, in_stride, out_stride;
    bool keep;
} QsfHeadsStep;

typedef struct QsfTemperatureStep {
    float scale;
    uint32_t length, offset; /* positions */
} QsfTemperatureStep;

typedef struct QsfLinearStep {
    uint32_t unit;
    uint32_t bias[QSF_UNIT_TENSORS]; /* parameters, added to the outputs; QSF_NONE = none */
    QsfActKind act; /* then out[0] = act(out[0]) * out[1], or act(out[0]) of a single matrix */
} QsfLinearStep;

/* Head h of in at in.off + h * in_stride, of out at out.off + h * out_stride. */
typedef struct QsfHeadLinearStep {
    uint32_t unit; /* of one tensor (k, rows, heads) */
    uint32_t heads, rows, in_stride, out_stride;
} QsfHeadLinearStep;

/* Chooses what ATTENTION reads. in: q (heads, dim); out: whole numbers of 32 bits, in no order, of columns
 * that see more than n of them.
 * block 0: in2 holds a weight per head. The score of a cached key is the sum over the heads of max(q . k,
 * 0) * weight; out holds the n best positions.
 * Otherwise: out holds the n best blocks of each head, a block being `block` positions with the score
 * of its best key, q . k. The last `local` blocks are always among them; that of the column itself, if
 * it is, is the last of the n. */
typedef struct QsfIndexStep {
    uint32_t kv; /* cache of one head; V is K */
    uint32_t heads, n;
    uint32_t block, local;
} QsfIndexStep;
#define QSF_MAX_SELECTED    (1u << 16)
#define QSF_MAX_INDEX_HEADS 1024u

/* in2: a selection (INDEX), the only positions that are read by columns that see more: for each
 * KV head the same number of positions, or blocks of `block` positions. The members after scale
 * are then unused, except block. */
typedef struct QsfAttentionStep {
    uint32_t kv;     /* cache */
    uint32_t heads;  /* query heads; a multiple of the cache's heads; dim elements each, also of out */
    float scale;     /* of the scores */
    uint32_t window; /* a position sees itself and the window - 1 before it; 0 = all before it */
    uint32_t chunk;  /* a position sees only its own chunk of this many positions; 0 = no chunks */
    uint32_t sinks;  /* parameter: one logit per query head in the sum of the softmax, or QSF_NONE */
    uint32_t slopes; /* QsfProgram.slopes: of ALiBi, or QSF_NONE */
    uint32_t block;  /* of the selection; 0 = positions */
    float softcap;   /* scores = cap * tanh(scores / cap); 0 = none */
} QsfAttentionStep;

/* Vector i of in, and in2 as the last one, has the score param . rms_norm(vector); weights are the softmax of
 * the scores. Source: Kimi Team 2025 (attention residuals). */
typedef struct QsfBlendStep {
    uint32_t param;
    float eps;
} QsfBlendStep;
#define QSF_MAX_BLEND 64u /* vectors of in */

/* Elements [off, off + width of out) of a parameter; QSF_NONE = the weights are the contents of out. */
typedef struct QsfLerpStep {
    uint32_t param, off;
} QsfLerpStep;

/* Each head carries a matrix S (k_dim, v_dim) from one position to the next:
 *   S = diag(decay) S;  S = S + k (beta * (v - k^T S))^T;  out = scale * q^T S
 * in: q (k_heads, k_dim), k (k_heads, k_dim), v (v_heads, v_dim). in2: decay (v_heads, k_dim or 1).
 * in3: beta (v_heads). out: (v_heads, v_dim). Source: Yang, Kautz, Hatamizadeh 2024
 * (Gated Delta Networks); Kimi Team 2025 (Kimi Linear). */
typedef struct QsfDeltaStep {
    uint32_t state; /* qsf_matrix_state_floats(v_heads, k_dim, v_dim) */
    uint32_t k_heads, v_heads, k_dim, v_dim;
    bool tiled;       /* V head h uses K head h % k_heads instead of h / (v_heads / k_heads) */
    bool per_channel; /* a decay for each of the k_dim channels */
    float scale;
} QsfDeltaStep;

/* Each head carries a matrix S (dim, dim), first index K, from one position to the next:
 *   V6:  out = r^T S;  S = diag(w) S + k v^T
 *   GLA: S = diag(w) S + ((1 - w) * k) v^T;  out = r^T S
 *   FIXED: S = decay of the head * S + k v^T;  out = r^T S
 *   V7:  S = diag(w) S + k v^T - b (a^T S)^T;  out = r^T S
 * Source: Peng et al. 2024 (RWKV-6), 2025 (RWKV-7); Yang et al. 2023 (gated linear attention). */
typedef enum QsfWkvKind { QSF_WKV_V6, QSF_WKV_GLA, QSF_WKV_FIXED, QSF_WKV_V7 } QsfWkvKind;

/* Inputs of a WKV step, in its slots. */
enum { QSF_WKV_R, QSF_WKV_W, QSF_WKV_K, QSF_WKV_V, QSF_WKV_A, QSF_WKV_B, QSF_WKV_SLOTS };

/* Input i, (heads, dim) floats, (kv_heads, dim) for K and V, begins at in.off + i * slot. Head h uses K and V
 * head h / (heads / kv_heads). */
typedef struct QsfWkvStep {
    QsfWkvKind kind;
    uint32_t state; /* qsf_matrix_state_floats(heads, dim, dim); unused by WKV_BONUS */
    uint32_t heads, kv_heads, dim, slot;
    uint32_t param;  /* WKV_BONUS: (heads, dim) */
    uint32_t decays; /* FIXED: row of QsfProgram.slopes */
} QsfWkvStep;

/* Floats of the state of `heads` matrices (k_dim, v_dim): they are stored in tiles of
 * QSF_STATE_TILE columns. */
#define QSF_STATE_TILE ((uint32_t)QK_STATE_TILE)
static inline uint64_t qsf_matrix_state_floats(uint32_t heads, uint32_t k_dim, uint32_t v_dim) {
    return (uint64_t)heads * k_dim * ((v_dim + QSF_STATE_TILE - 1) / QSF_STATE_TILE * QSF_STATE_TILE);
}

/* Channel i of column c: sum over k of weight[i][k] * in[i] at position c - (kernel - 1) + k, plus bias[i];
 * then the activation. in and out may be the same. */
typedef struct QsfConvStep {
    uint32_t state;  /* (kernel - 1, channels): the last inputs, oldest first */
    uint32_t kernel; /* 2..QSF_CONV_MAX */
    uint32_t weight; /* parameter (channels, kernel) */
    uint32_t bias;   /* parameter (channels), or QSF_NONE */
    QsfActKind act;
} QsfConvStep;
#define QSF_CONV_MAX 32u

/* Element x of a head has a vector s of n numbers: with t = softplus(in2[head]),
 *     s = s * exp(t * a) + B * (x * t),    y = s . C + d * x.
 * in holds x (heads, dim), in2 one time step per head, in3 B and C: (2, groups, n); heads / groups
 * neighbouring heads share B and C. in and out may be the same. */
typedef struct QsfScanStep {
    /* SCAN1: qsf_matrix_state_floats(1, n, heads); SCAN2: the same of (heads, n, dim), and a
     * factor for each head */
    uint32_t state;
    uint32_t heads, dim, n, groups;
    uint32_t a; /* parameter: SCAN1 tiles of (n, heads), SCAN2 (heads); negative */
    uint32_t d; /* parameter (heads) */
} QsfScanStep;

/* How the weight of an expert follows from its logit. The values are those of the key expert_gating_func. */
typedef enum QsfGating {
    QSF_GATING_NONE, /* the key is missing */
    QSF_GATING_SOFTMAX,
    QSF_GATING_SIGMOID,
    QSF_GATING_SOFTMAX_CHOSEN, /* softmax of the chosen logits */
    QSF_GATING_SQRT_SOFTPLUS,
    QSF_GATING_N
} QsfGating;

/* out = n_used ids in ascending order, as floats, then their weights. The experts with the highest scores are
 * chosen; of equal ones those with the lowest ids. */
typedef struct QsfRouteStep {
    QsfGating gating;
    uint32_t n_expert, n_used;
    uint32_t n_groups,
        n_groups_used;     /* only experts of the best groups are chosen; n_groups < 2 = no groups */
    uint32_t group_scores; /* the score of a group is the sum of its best 1 or 2 scores */
    uint32_t bias;         /* parameter, added to the scores but not to the weights; QSF_NONE = none */
    uint32_t expert_scale; /* parameter, a factor per expert; QSF_NONE = none */
    uint32_t group;        /* ids are divided by it, also to look up weights; equal ones are merged; 0 = 1 */
    bool by_logit;         /* scores are the logits */
    bool norm;             /* weights are divided by their sum */
    float scale;           /* of the weights */
} QsfRouteStep;

/* in2 = ids and weights. out[1] and out[2] are scratch: two of ffn elements, and the gathered columns. */
typedef struct QsfExpertsStep {
    uint32_t unit; /* of expert e: unit + 2 * e multiplies its input, unit + 2 * e + 1 gives its output */
    uint32_t n_expert, n_used, ffn;
    QsfActStep act;
    uint32_t bias_in[2], bias_out; /* parameters (n_expert, rows); QSF_NONE = none */
    bool scale_input;              /* the weight multiplies the input, not the output */
} QsfExpertsStep;

typedef struct QsfStep {
    QsfOp op;
    uint32_t block;        /* n_blocks: after the last block */
    const char *label;     /* static: "attn_norm" */
    QsfSlice in, in2, in3; /* buf QSF_NONE = none */
    QsfSlice out[QSF_UNIT_TENSORS];
    union {
        QsfNormStep norm;
        QsfActStep act;
        QsfRopeStep rope;
        QsfHeadsStep heads;
        QsfTemperatureStep temperature;
        QsfLinearStep linear;
        QsfHeadLinearStep head_linear;
        QsfIndexStep index;
        QsfAttentionStep attention;
        QsfBlendStep blend;
        QsfLerpStep lerp;
        QsfDeltaStep delta;
        QsfWkvStep wkv; /* WKV, WKV_BONUS */
        QsfConvStep conv;
        QsfScanStep scan;
        QsfRouteStep route;
        QsfExpertsStep experts;
        float scale;      /* SCALE, SOFTCAP, SPARSE */
        uint32_t param;   /* BIAS, GAIN, MATVEC */
        uint32_t kv;      /* KV_STORE */
        uint32_t streams; /* PREDICT, CORRECT: vectors of out */
        uint32_t state;   /* SHIFT: one column */
        struct {
            float low, high;
        } clamp;
    } u;
} QsfStep;

/* ---- what steps refer to ---- */

/* A buffer of (columns, width) floats. Two buffers share memory if no step needs both. */
typedef struct QsfBuffer {
    uint32_t width;
    uint32_t stride;      /* width padded to 16 floats */
    uint32_t first, last; /* runs of steps (QsfProgram.run) that use it */
    uint64_t off;         /* floats per column before it: it starts at off * columns */
} QsfBuffer;

/* The part of a token's time and bytes that a unit belongs to, for statistics and calibration. */
typedef enum QsfMatmulClass {
    QSF_MATMUL_ATTN_IN,  /* Q, K, V and other inputs of the first branch of a block */
    QSF_MATMUL_ATTN_OUT, /* its output */
    QSF_MATMUL_FFN_IN,
    QSF_MATMUL_FFN_OUT,
    QSF_MATMUL_HEAD,
    QSF_MATMUL_N
} QsfMatmulClass;

/* Matrices that are needed together and read the same input: the unit of pinning and streaming. In the order
 * of their use. */
typedef struct QsfUnitSpec {
    uint32_t block; /* n_blocks for the head */
    QsfMatmulClass matmul_class;
    unsigned n;
    const QsfTensor *tensor[QSF_UNIT_TENSORS];
    uint64_t row0[QSF_UNIT_TENSORS]; /* the matrix begins at this row of the tensor */
    uint32_t rows[QSF_UNIT_TENSORS]; /* rows of the matrix; 0 = all of the tensor */
    bool paired;                     /* row i of every matrix belongs together (gate and up) */
    bool on_demand;                  /* of an expert: used only by the positions that choose it */
    uint32_t expert, n_expert, n_used;
    uint32_t heads; /* of the single tensor, whose rows are those of all heads; 0 = it is a matrix */
    bool borrowed;  /* the model whose block this is has it in memory: here it has no rows */
} QsfUnitSpec;

/* A small tensor, kept in RAM as floats. */
typedef struct QsfParam {
    const QsfTensor *tensor;
    uint32_t block;     /* n_blocks: of the whole model */
    uint64_t n;         /* elements */
    uint64_t at;        /* floats before it */
    uint32_t tile_rows; /* 0; or as many: the tensor, (n / rows, rows), is held in tiles as a state is */
} QsfParam;

/* Keys and values of one block, or of several that share them. */
typedef struct QsfKvSpec {
    uint32_t block;
    uint32_t heads, dim; /* of K and of V */
    bool v_is_k;         /* V is K: only K is stored */
    uint32_t window;     /* no step sees more than the last `window` positions; 0 = all are seen */
    bool read_once;      /* only one step reads it, the attention that follows its store */
} QsfKvSpec;

/* What a recurrence carries from one position to the next, per sequence: the tail of a convolution, a matrix.
 * 0 before position 0. */
typedef struct QsfStateSpec {
    uint32_t block;
    uint32_t floats;
    uint64_t at; /* floats before it; a multiple of 16 */
} QsfStateSpec;

/* Angles of a rotation: position * freq[i] radians, cos and sin times magnitude. */
typedef struct QsfRopeTable {
    QsfRopeKind kind;
    uint32_t n_rot;    /* rotated elements per head, even */
    double *freq;      /* (n_rot / 2) */
    double *freq_long; /* (n_rot / 2) instead of freq if the context is longer than
                          original_ctx; NULL = none */
    uint32_t original_ctx;
    double magnitude;
    uint32_t at; /* floats per column of the tables before it: n_rot for each */
} QsfRopeTable;

typedef struct QsfProgram {
    uint32_t n_blocks;
    QsfStep *step;
    uint32_t n_steps;
    uint32_t head_step; /* this step and later ones compute only columns whose logits are needed */
    uint32_t done_step; /* before it, at or after head_step, the residual stream is complete */
    uint32_t fill_step; /* before it, everything that later positions need is stored */
    uint32_t *run;      /* (n_steps) number of the run of a step: column steps up to and including the next
                           step over all columns are one run */
    QsfBuffer *buf;
    uint32_t n_bufs;
    uint64_t col_floats;  /* floats per column of all buffers */
    uint64_t head_floats; /* the same for the buffers that the head's steps use; the rest is free then */
    QsfUnitSpec *unit;    /* the head is last */
    uint32_t n_units;
    uint32_t *block_unit; /* (n_blocks + 2) first unit of each block, of the head, and the end */
    QsfParam *param;
    uint32_t n_params;
    uint64_t param_floats; /* of all parameters, each padded to 16 floats */
    uint32_t ones;         /* widest norm without a weight: this many ones follow the parameters; 0 = none */
    QsfKvSpec *kv;
    uint32_t n_kv;
    QsfStateSpec *state;
    uint32_t n_states;
    uint64_t state_floats; /* of all states, each padded to 16 floats */
    QsfRopeTable *rope;
    uint32_t n_ropes;
    uint32_t rope_floats; /* floats per column of all tables */
    float **slopes; /* (n_slopes, heads) a score changes by slope * (position of the key - of the query):
                       ALiBi (Press et al. 2021); or decays of a WKV step */
    uint32_t n_slopes;
    uint32_t max_ctx;                /* learned positions end here; 0 = no limit */
    const QsfTensor *embed;          /* (hidden, n_vocab) */
    bool tied_head;                  /* the head's matrix is the embedding table */
    const QsfTensor *position_table; /* (hidden, n): learned positions, read when needed; NULL = none */
    uint32_t given;    /* buffer that the caller fills before each pass: states of another program,
                                     hidden elements; QSF_NONE = none */
    bool given_normed; /* these states are given_norm(its residual stream), of its head; after the
                                     program's own head they are in QSF_BUF_BRANCH, otherwise in QSF_BUF_X */
    QsfNormStep given_norm;
    const QsfTensor *token_table; /* (n, n_vocab): more values of each token, read when needed; NULL = none */
    uint32_t n_ignored;           /* tensors of vision and audio, which are not used */
    const char *ignored;          /* name of the first one */
} QsfProgram;

/* Returns the unit whose matrices a step multiplies; QSF_NONE = none. */
uint32_t qsf_step_unit(const QsfStep *s);
/* Does the result of a step depend on what out held before? */
bool qsf_step_is_in_place(const QsfStep *s);
/* Is it a column step? */
bool qsf_op_is_column(QsfOp op);
/* Returns "norm", "linear", ... */
const char *qsf_op_name(QsfOp op);
const char *qsf_act_name(QsfActKind kind);

#endif
