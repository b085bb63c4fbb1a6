/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The vocabulary in which families write programs. A builder keeps the first error; after one, all calls do
 * nothing and return empty values, so that a family need not check. Tensors and steps belong to the current
 * block: qsf_build_block sets it; names get the prefix "blk.N." in a block and none outside. */
#ifndef QSF_MODEL_BUILD_H
#define QSF_MODEL_BUILD_H

#include "src/model/keys.h"
#include "src/model/model.h"

typedef struct QsfBuilder {
    const QsfModel *m;
    const QsfTensorSet *set;
    QsfKeys keys; /* of the model's metadata; errors set `err` */
    QsfErr *err;
    int rc; /* of the first error */
    uint32_t block;
    uint32_t unit_block; /* as in qsf_build_units_in */
    uint32_t first;      /* the program begins with this block */
    bool rms_bias;       /* RMS norms may have biases, as layer norms */
    QsfProgram p;        /* what was built so far; its arrays are the heap's until the end */
    uint32_t cap_steps, cap_bufs, cap_units, cap_params, cap_kv, cap_states, cap_ropes, cap_slopes;
    const QsfTensor **unused; /* tensors that are known to have no effect */
    uint32_t n_unused, cap_unused;
} QsfBuilder;

/* Whether a tensor must be there. */
typedef enum QsfNeed { QSF_REQUIRED, QSF_OPTIONAL } QsfNeed;

static inline const QsfHparams *qsf_build_hp(const QsfBuilder *b) { return &b->m->hp; }
/* Keeps rc as the first error. */
void qsf_build_check(QsfBuilder *b, int rc);
/* Sets an error about the model: "FILE: ...". */
void qsf_build_fail(QsfBuilder *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline bool qsf_build_failed(const QsfBuilder *b) { return b->rc != QSF_OK; }

/* Sets the current block: its number, or n_blocks for what follows (or precedes) all blocks. */
void qsf_build_block(QsfBuilder *b, uint32_t block);
/* Units that follow belong to this block instead of the current one: steps before and after all blocks stream
 * their matrices with the first and the last block. QSF_NONE ends this. */
void qsf_build_units_in(QsfBuilder *b, uint32_t block);
static inline void qsf_build_no_block(QsfBuilder *b) { qsf_build_block(b, b->p.n_blocks); }
/* Is it the program of a next-token block (nextn.h)? */
static inline bool qsf_build_is_nextn(const QsfBuilder *b) { return b->m->nextn > 0; }
/* Returns the first block of the program, which ends at b->p.n_blocks. After the steps that follow the
 * embedding: of a next-token block, its input is made. */
uint32_t qsf_build_blocks(QsfBuilder *b);

/* ---- tensors ---- */

/* Returns whether the current block has the tensor. */
bool qsf_build_has(const QsfBuilder *b, const char *name);
/* The same for an optional part: if the block does not have it, that is noted (reads.h). */
bool qsf_build_maybe(QsfBuilder *b, const char *name);
/* Sets an error if the current block does not have the tensor: for parts that are optional in
 * other families. */
void qsf_build_require(QsfBuilder *b, const char *name);
/* Returns a tensor of the current block without using it, to look at its shape; NULL if it is absent. */
const QsfTensor *qsf_build_peek(const QsfBuilder *b, const char *name);
/* Adds a small tensor of n elements (F32, F16 or BF16), which is kept in RAM as floats; QSF_NONE if it is
 * optional and absent. */
uint32_t qsf_build_param(QsfBuilder *b, QsfNeed need, uint64_t n, const char *name);
/* The same for a tensor (cols, rows), which is held in tiles as a state is (QsfParam). */
uint32_t qsf_build_param_tiles(QsfBuilder *b, QsfNeed need, uint32_t rows, uint32_t cols, const char *name);
/* The same for a small tensor with several dimensions, of ne[0..n_dims). */
uint32_t qsf_build_param_nd(QsfBuilder *b, QsfNeed need, const uint64_t *ne, unsigned n_dims,
                            const char *name);
/* Finds a matrix and checks its shape and type; NULL if it is optional and absent. */
const QsfTensor *qsf_build_matrix(QsfBuilder *b, QsfNeed need, uint64_t cols, uint64_t rows,
                                  const char *name);
/* The same for n matrices in one tensor of three dimensions. */
const QsfTensor *qsf_build_matrices(QsfBuilder *b, QsfNeed need, uint64_t cols, uint64_t rows, uint64_t n,
                                    const char *name);
/* Returns the rows of a tensor's matrices, 0 if the current block does not have it. */
uint64_t qsf_build_rows_of(const QsfBuilder *b, const char *name);
/* Records that a tensor, if present, has no effect on the logits. */
void qsf_build_unused(QsfBuilder *b, const char *name);
/* Reads a vector of n floats (F32) now, for values that a step needs as constants. The file decides only
 * whether it is there; false if it is not, or after an error. */
bool qsf_build_read(QsfBuilder *b, QsfNeed need, uint64_t n, const char *name, float *out);

/* ---- metadata ---- */

/* Read a key of the model; see keys.h. After an error the result is the larger of fallback and low, so that
 * it may be used like any other. */
uint32_t qsf_build_u32(QsfBuilder *b, const char *name, uint32_t fallback, uint32_t low, uint32_t high);
/* The same for a key that must be there; returns low after an error. */
uint32_t qsf_build_need_u32(QsfBuilder *b, const char *name, uint32_t low, uint32_t high);
float qsf_build_f32(QsfBuilder *b, const char *name, float fallback, float low, float high);
/* The same for a key that must be there; returns low, or 0 if that is negative, after an error. */
float qsf_build_need_f32(QsfBuilder *b, const char *name, float low, float high);
bool qsf_build_bool(QsfBuilder *b, const char *name, bool fallback);

/* ---- buffers ---- */

/* Returns a new buffer of `width` floats per column. */
QsfSlice qsf_build_buffer(QsfBuilder *b, uint32_t width);
/* Elements [off, off + width) of a slice. */
QsfSlice qsf_slice_part(QsfSlice s, uint32_t off, uint32_t width);
static inline QsfSlice qsf_slice_none(void) { return (QsfSlice){ QSF_NONE, 0, 0 }; }
/* The residual stream; the buffer of hidden elements that branches read from and leave their
 * output in; the logits. */
QsfSlice qsf_build_x(const QsfBuilder *b);
QsfSlice qsf_build_branch(const QsfBuilder *b);
QsfSlice qsf_build_logits(const QsfBuilder *b);

/* ---- steps ---- */

/* Appends a step of the current block and returns it, to fill in; NULL after an error. The pointer is valid
 * until the next step. */
QsfStep *qsf_build_step(QsfBuilder *b, QsfOp op, const char *label, QsfSlice in, QsfSlice out);

/* out = norm(in), with the weight `name`.weight (in some files `name` alone) and, for a layer norm, the
 * optional bias `name`.bias; with the family's epsilon. name NULL: no weight. */
void qsf_build_norm(QsfBuilder *b, QsfNormKind kind, const char *name, QsfSlice in, QsfSlice out);
/* The same for each of `heads` parts of the slice; per_head: each head has its own weights. */
void qsf_build_head_norm(QsfBuilder *b, QsfNormKind kind, const char *name, QsfSlice x, uint32_t heads,
                         bool per_head);
/* out += in. */
void qsf_build_add(QsfBuilder *b, const char *label, QsfSlice in, QsfSlice out);
/* out = act(out) * in, or act(out) where `in` is none. */
void qsf_build_act(QsfBuilder *b, const char *label, QsfActKind kind, QsfSlice in, QsfSlice out);
/* Applies a parameter to out: op BIAS adds it, op GAIN multiplies by it. */
void qsf_build_with_param(QsfBuilder *b, QsfOp op, const char *label, uint32_t param, QsfSlice out);
/* out *= scale; nothing for 1. */
void qsf_build_scale(QsfBuilder *b, const char *label, QsfSlice out, float scale);

/* One matrix of a linear step: tensor `name`.weight with in.width columns and out.width rows, and the
 * optional bias `name`.bias. */
typedef struct QsfMatrixSpec {
    const char *name;
    QsfSlice out;
    QsfNeed need;
} QsfMatrixSpec;
/* Multiplies `in` by up to QSF_UNIT_TENSORS matrices. act: out[0] = act(out[0]) * out[1], or act(out[0])
 * where there is one matrix. */
void qsf_build_linear(QsfBuilder *b, QsfMatmulClass cls, QsfSlice in, const QsfMatrixSpec *mats, unsigned n,
                      QsfActKind act);

/* out = the matrix `name`.weight, which must be there, times in. */
void qsf_build_project(QsfBuilder *b, QsfMatmulClass cls, const char *name, QsfSlice in, QsfSlice out);

/* Multiplies head h of `in`, k elements at h * in_stride, by matrix h of tensor `name`.weight (k, rows,
 * heads); the result is head h of `out`, at h * out_stride. */
void qsf_build_head_linear(QsfBuilder *b, QsfMatmulClass cls, const char *name, uint32_t heads, uint32_t k,
                           uint32_t rows, QsfSlice in, uint32_t in_stride, QsfSlice out, uint32_t out_stride);
/* Adds a unit of the current block and returns its number. Its steps are the caller's. */
uint32_t qsf_build_unit(QsfBuilder *b, const QsfUnitSpec *unit);

/* Adds a KV cache for the current block. */
uint32_t qsf_build_kv(QsfBuilder *b, uint32_t heads, uint32_t dim);
/* The same where V is K, so that only K is stored. */
uint32_t qsf_build_kv_shared(QsfBuilder *b, uint32_t heads, uint32_t dim);
/* Adds a recurrent state of the current block; returns its number. */
uint32_t qsf_build_state(QsfBuilder *b, uint64_t floats);
/* Adds a table of rotation angles; freq (n_rot / 2) is copied. */
uint32_t qsf_build_rope_table(QsfBuilder *b, QsfRopeKind kind, uint32_t n_rot, const double *freq,
                              double magnitude);
/* Scales queries by their position: attention.temperature_scale and temperature_length, or without the latter
 * rope.scaling.original_context_length; nothing without the former. */
void qsf_build_temperature(QsfBuilder *b, QsfSlice q);
/* Adds a row of constants, one for each of the model's heads, to QsfProgram.slopes, to fill
 * in; NULL after an error. */
float *qsf_build_per_head(QsfBuilder *b);
/* Adds the slopes of ALiBi for the model's heads and a maximum bias; QSF_NONE for 0. */
uint32_t qsf_build_alibi(QsfBuilder *b, float max_bias);
/* Gives a table other frequencies (n_rot / 2) for contexts longer than original_ctx. */
void qsf_build_rope_long(QsfBuilder *b, uint32_t table, const double *freq, uint32_t original_ctx);
/* Rotates `heads` heads of x, `stride` elements apart, from element `off` of each; nothing for
 * table QSF_NONE. */
void qsf_build_rope(QsfBuilder *b, uint32_t table, QsfSlice x, uint32_t heads, uint32_t stride, uint32_t off);

/* out = in, head by head; see QsfHeadsStep. */
void qsf_build_heads(QsfBuilder *b, const char *label, QsfSlice in, QsfSlice out, uint32_t heads, uint32_t n,
                     uint32_t in_stride, uint32_t out_stride);

typedef struct QsfAttentionSpec {
    QsfAttentionStep step; /* kv is filled in, unless shared */
    uint32_t kv_heads, k_dim, v_dim;
    QsfSlice selected; /* as in2 of QsfAttentionStep; width 0 = all positions are read */
    bool shared;       /* step.kv is the cache of another block: k and v are not used */
    QsfSlice q, k, v;  /* (heads, k_dim), (kv_heads, k_dim), (kv_heads, v_dim) */
} QsfAttentionSpec;
/* An attention step without any extras. */
QsfAttentionStep qsf_attention_plain(uint32_t heads, float scale);
/* Stores k and v, and attends. Returns the output (heads, v_dim), which may be q's buffer. K and V of
 * different sizes are padded to the larger one, because a cache has one size of heads. */
QsfSlice qsf_build_attention(QsfBuilder *b, const QsfAttentionSpec *a);

/* A causal convolution of each channel of `in` over the last `kernel` positions, with its own state;
 * name.weight (kernel, channels) and, if there is one, name.bias. out may be `in`. */
void qsf_build_conv(QsfBuilder *b, const char *name, QsfSlice in, QsfSlice out, uint32_t kernel,
                    QsfActKind act);

/* A selective scan with its own state, `ssm_a` and `ssm_d`: see QsfScanStep. op: SCAN1 (dim 1,
 * groups 1) or SCAN2. */
typedef struct QsfScanSpec {
    QsfOp op;
    QsfSlice x, dt, bc; /* (heads, dim), (heads), (2, groups, n) */
    QsfSlice out;       /* may be x */
    uint32_t heads, n, groups;
} QsfScanSpec;
/* Appends a step of it. */
void qsf_build_scan(QsfBuilder *b, const QsfScanSpec *spec);

/* ---- whole parts that families share ---- */

/* The embedding table: token_embd.weight, or another tensor, which must be there. */
void qsf_build_embed(QsfBuilder *b);
void qsf_build_embed_named(QsfBuilder *b, const char *name);
/* out = the token's row of the table `name`.weight, out.width values per token; the table
 * stays in the file. */
void qsf_build_token_rows(QsfBuilder *b, const char *name, QsfSlice out);
/* Adds the rows of a table of learned positions, `name`.weight (hidden, n), to x; the context
 * ends with it. */
void qsf_build_positions(QsfBuilder *b, const char *name, uint32_t n, QsfSlice x);
typedef struct QsfQkv {
    QsfSlice q, k, v;
} QsfQkv;
/* Multiplies `in` by attn_q, attn_k and attn_v, or by attn_qkv, whose rows are theirs, into new buffers:
 * n->heads heads of head_dim elements, n->kv_heads of head_dim, n->kv_heads of v_dim. */
QsfQkv qsf_build_qkv(QsfBuilder *b, const QsfBlockSizes *n, QsfSlice in);

typedef struct QsfFfnSpec {
    uint32_t n; /* inner elements */
    QsfActKind act;
    bool gated;
    bool shared;     /* that of a shared expert: names end in "_shexp" */
    bool parts;      /* its matrices may be missing: without the gate as if it was not gated, without `up`
                        the input is used as it is, without `down` the output is the product
                        (ggml-org/llama.cpp src/llama-graph.cpp) */
    QsfActStep with; /* an activation with constants instead of act; kind NONE = act */
} QsfFfnSpec;
/* out = ffn_down * (act(ffn_gate * in) * (ffn_up * in)), or ffn_down * act(ffn_up * in) where it is not
 * gated. out may be in. */
void qsf_build_ffn(QsfBuilder *b, const QsfFfnSpec *f, QsfSlice in, QsfSlice out);

/* Caps the logits: cap * tanh(logits / cap); nothing for 0. After the head. */
void qsf_build_logit_cap(QsfBuilder *b, float cap);
/* The head: final norm `norm_name`, the matrix output.weight or the embedding table. Sets the current block
 * to n_blocks. Steps on the logits may follow. */
void qsf_build_head(QsfBuilder *b, QsfNormKind kind, const char *norm_name);

/* Turns what was built into the program of a model: checks that no tensor of the file is left over, places
 * the buffers, and copies all to the arena. Frees the builder's memory in any case. */
int qsf_build_finish(QsfBuilder *b, QsfProgram *out, QsfArena *arena);

#endif
