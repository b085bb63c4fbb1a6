/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernel table: one pointer per operation, filled for an ISA level by qk_table_init. The
 * shipped table is what the tests test. Kernels know libc only: no threads, no allocation, no
 * globals. Pointers named x/w are read, y/dst are written and never overlap their inputs unless
 * "in place" is said. Float buffers are at least 4-byte aligned, packed rows may be unaligned.
 *
 * Determinism: a matmul's output element depends on its weight row, its activation column and the
 * level only. One accumulation order per format: the same for one column as for many, for any row
 * range. */
#ifndef QSF_KERNELS_KERNELS_H
#define QSF_KERNELS_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/blocks.h"
#include "kernels/cpu.h"
#include "kernels/kv.h"
#include "kernels/matmul.h"
#include "kernels/state.h"

/* K or V of one KV head (kernels/kv.h), stored as name says. Where `which` is asked for,
 * 0 = K, 1 = V; tiles is tile 0. */
typedef struct qk_kv_ops {
    const char *name;                      /* "f16" */
    size_t (*tile_bytes)(size_t head_dim); /* of K, and as much of V; a multiple of 16 */
    void (*store)(void *tiles, int which, size_t pos, const float *x, size_t head_dim);
    void (*load)(float *x, const void *tiles, int which, size_t pos, size_t head_dim);
    /* Position `from` of the tiles at src, as it is, becomes position `to` of those at dst. */
    void (*copy)(void *dst, size_t to, const void *src, size_t from, int which, size_t head_dim);
    /* y = softmax(scale * q K^T) V for every query of a, with K in this type and V in a->v_type. */
    void (*attend)(const qk_attn *a);
    /* Positions [span * QK_KV_SPAN, (span + 1) * QK_KV_SPAN) alone; query i = c * n_heads + h leaves its part
     * at part + i * part_stride floats (aligned to 64 bytes). y is not touched. */
    void (*attend_span)(const qk_attn *a, size_t span, float *part, size_t part_stride);
    /* y (head_dim) from the n parts of one query, in ascending order, part_stride floats apart: the same bits
     * as attend; sink is that of its head, or NULL. The parts are lost. */
    void (*merge)(float *y, float *part, size_t n, size_t part_stride, size_t head_dim, const float *sink);
} qk_kv_ops;

/* Rotation of several heads of several positions: head h of position p at x +
 * p * pos_stride + h * head_stride floats, its n_rot/2 (cos, sin) pairs at cs + p * n_rot. */
typedef struct qk_rope {
    float *x;
    const float *cs;
    size_t n_rot, n_heads, head_stride, n_pos, pos_stride;
} qk_rope;

/* Smaller differences of logits from the largest, divided by the temperature, have no weight.
 * The exponentials of many would be denormal numbers, which take a hundred times as long; a
 * draw cannot tell 1e-30 from 0. */
#define QK_SOFTMAX_LOWEST (-69.5f)

/* A token that may be chosen: its logit, its id. */
typedef struct qk_pick {
    float x;
    int32_t id;
} qk_pick;

/* Activation functions: gelu is the tanh form, relu2 the square of relu, softplus log(1 + e^x). */
#define QK_GATES(X) \
    X(silu, SILU)   \
    X(gelu, GELU)   \
    X(relu, RELU) X(relu2, RELU2) X(sigmoid, SIGMOID) X(softplus, SOFTPLUS) X(exp, EXP) X(tanh, TANH)
#define QK_GATE_NUMBER(name, NAME) QK_GATE_##NAME,
typedef enum qk_gate { QK_GATES(QK_GATE_NUMBER) QK_GATE_N } qk_gate;

/* Gated SiLU with limits: min(g sigmoid(alpha g), most) with g = min(gate, gate_most), times up, from
 * -up_most to up_most, plus up_plus. */
typedef struct qk_swiglu {
    float alpha, gate_most, most, up_most, up_plus;
} qk_swiglu;

/* xIELU (Huang and Schlag 2024): beta x, plus positive x^2 above 0, plus negative (e^min(x,
 * eps) - 1 - x) below. */
typedef struct qk_xielu {
    float positive, negative, beta, eps;
} qk_xielu;

enum { QK_MAX_STREAMS = 16 };

/* Rows of a thin matrix times columns of floats. The rows are in groups of QK_THIN_ROWS; element i of row r
 * of a group is its element i * QK_THIN_ROWS + r. The first group may begin, and the last one end, with
 * rows that are not wanted. */
enum { QK_THIN_ROWS = 16 };
typedef struct qk_thin {
    const void *w;      /* the group of the first row */
    size_t group_bytes; /* from a group to the next one */
    size_t first, rows; /* row `first` of that group is the first of `rows` */
    size_t k;           /* elements of a row */
    const float *x;     /* (n_cols), x_stride floats apart */
    float *y;           /* (n_cols), y_stride floats apart: rows [0, rows) of a column */
    size_t n_cols, x_stride, y_stride;
} qk_thin;

typedef struct qk_table {
    qk_level level; /* highest level used */
    qk_weight_ops weight[QK_TYPE_N];
    qk_kv_ops kv[QK_KV_N];

    /* k floats -> one activation column of the kind (k a multiple of 32, for Q8K of 256). */
    void (*quantize[QK_ACT_N])(void *dst, const float *x, size_t k);
    /* y[r + c*y_stride] as matmul, but w rows are floats prepared by dequant and x columns are
     * floats: for --exact. Sums in double. */
    void (*matmul_exact)(const qk_mm *m, size_t row0, size_t row1, const qk_weight_ops *ops,
                         float *row_scratch);

    /* y = x / sqrt(mean(x^2) + eps) * w */
    void (*rms_norm)(float *y, const float *x, const float *w, size_t n, float eps);
    /* y = (x - mean) / sqrt(var + eps) * w + b; b may be NULL */
    void (*layer_norm)(float *y, const float *x, const float *w, const float *b, size_t n, float eps);
    /* y = x / max(sqrt(sum x^2), eps); y may be x */
    void (*l2_norm)(float *y, const float *x, size_t n, float eps);
    /* Rotate pairs of elements in place. pairs: (2i, 2i+1); halves: (i, i + n_rot/2). Elements past n_rot
     * stay. */
    void (*rope_pairs_batch)(const qk_rope *r);
    void (*rope_halves_batch)(const qk_rope *r);
    /* y = softmax(x / temperature), temperature > 0; y may be x. n >= 1. Returns the entropy of y in nats.
     * Weights below exp(QK_SOFTMAX_LOWEST) of the largest are 0. */
    float (*softmax_t)(float *y, const float *x, size_t n, float temperature);
    /* gate[i] = act(gate[i]) * up[i], in place on gate; up NULL = act only. relu and relu2 of a NaN are 0. */
    void (*gate[QK_GATE_N])(float *gate, const float *up, size_t n);
    void (*swiglu_mul)(float *gate, const float *up, size_t n, const qk_swiglu *s);
    void (*xielu_mul)(float *gate, const float *up, size_t n, const qk_xielu *s);
    void (*add)(float *y, const float *x, size_t n); /* y += x */
    void (*mul)(float *y, const float *x, size_t n); /* y *= x */
    void (*scale)(float *y, float a, size_t n);      /* y *= a */
    /* y = x + (z - x) * w; y may be any of them */
    void (*lerp)(float *y, const float *x, const float *z, const float *w, size_t n);
    /* y += w x, for halves and for floats. A sum depends on its row and its column only; the same bits at
     * every level that has FMA. */
    void (*thin_f16)(const qk_thin *m);
    void (*thin_f32)(const qk_thin *m);
    void (*softcap)(float *y, float cap, size_t n); /* y = cap * tanh(y / cap), cap > 0 */
    /* n <= QK_MAX_STREAMS streams of width elements, stream i at y + i * stride: y_i += sum over j of
     * coef[i * n + j] y_j, all of them as they were. */
    void (*mix_streams)(float *y, const float *coef, size_t n, size_t stride, size_t width);
    /* The same streams: y_i += (x - y_0) * (1 + coef[i]), with y_0 as it was. */
    void (*correct_streams)(float *y, const float *x, const float *coef, size_t n, size_t stride,
                            size_t width);
    /* y = max(y - t, 0), t = mean + deviations * the standard deviation of a sample; n >= 2. */
    void (*keep_above)(float *y, size_t n, float deviations);
    /* Index of the largest element, the lowest on a tie; NaN never wins; n >= 1. */
    size_t (*argmax)(const float *x, size_t n);
    /* The k best of x, best first, the lower id first on a tie; NaN is never picked. Returns
     * how many: k, or fewer. */
    size_t (*top_k)(qk_pick *out, const float *x, size_t n, size_t k);
    /* Those of which the fewest best have p that reach top_p of all p, into out (n); returns how many. The
     * first *sure, in the order of their ids, are all needed; after them come, best first, those about as
     * likely as the last one needed. max is the largest of x, which holds no NaN. */
    size_t (*top_p)(qk_pick *out, const float *x, const float *p, size_t n, float max, double top_p,
                    size_t *sure);
    size_t (*at_least)(qk_pick *out, const float *x, size_t n, float limit); /* x >= limit, by id; how many */
    /* The first token with which the sum of p passes u (in [0, 1)) of *total, the sum of them
     * all; none with p = 0. */
    size_t (*draw)(const float *p, size_t n, double u, double *total);
    /* NaN becomes low; y may be x */
    void (*clamp)(float *y, const float *x, size_t n, float low, float high);
    /* Recurrent states, kernels/state.h. scan_each: with t = softplus(dt), s = exp(t * a) * s + b (t * x)^T;
     * y = c^T s + d * x. scan_one: s = keep * s + b (gain * x)^T;  y = out * c^T s + d * x. */
    void (*scan_each)(const qk_scan *p, const qk_scan_each *e);
    void (*scan_one)(const qk_scan *p, const qk_scan_one *o);
    void (*delta)(float *s, const qk_delta *p);
    void (*wkv)(float *s, const qk_wkv *p);
    /* y[i] = sum over k of x[k][i] * w[k][i] + bias[i]; bias may be NULL. */
    void (*conv)(float *y, const float *const *x, const float *const *w, size_t kernel, const float *bias,
                 size_t n);
} qk_table;

/* Fills the table: reference first, then every level up to `level` overlays what it has. level
 * must be one this CPU has (qk_cpu_has). */
void qk_table_init(qk_table *t, qk_level level);
/* Returns "f32", "f16" or "q8"; static. */
const char *qk_kv_name(qk_kv type);

/* Scalar half-float conversions, exact; for places that are not hot. */
float qk_f16_to_f32(uint16_t h);
uint16_t qk_f32_to_f16(float f);

#endif
