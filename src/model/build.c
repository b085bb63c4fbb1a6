/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensors, buffers and steps of a program that is being built. */
#include "src/model/build.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/checked.h"
#include "src/file/dtype.h"
#include "src/file/rows.h"

#define NAME_MAX_BYTES 160
#define MAX_STATE      (1u << 28)

void qsf_build_check(QsfBuilder *b, int rc) {
    if (b->rc == QSF_OK) b->rc = rc;
}

static const char *path_of(const QsfBuilder *b) {
    return b->m->src != NULL ? qsf_source_path(b->m->src) : "";
}

void qsf_build_fail(QsfBuilder *b, const char *fmt, ...) {
    va_list ap;
    if (qsf_build_failed(b)) return;
    va_start(ap, fmt);
    b->rc = qsf_err_setv(b->err, QSF_E_MODEL, fmt, ap);
    va_end(ap);
    qsf_err_prefix(b->err, "%s", path_of(b));
}

void qsf_build_block(QsfBuilder *b, uint32_t block) { b->block = block; }
void qsf_build_units_in(QsfBuilder *b, uint32_t block) { b->unit_block = block; }

/* Makes room for one more element of an array; returns it, zeroed. NULL after an error. */
static void *grow(QsfBuilder *b, void *array, uint32_t *n, uint32_t *cap, size_t size) {
    void **at = array;
    if (qsf_build_failed(b)) return NULL;
    if (*n == *cap) {
        uint32_t more = *cap == 0 ? 64 : *cap * 2;
        void *mem = realloc(*at, more * size);
        if (mem == NULL) {
            b->rc = qsf_err_memory(b->err, "%s", path_of(b));
            return NULL;
        }
        *at = mem;
        *cap = more;
    }
    return memset((char *)*at + size * (*n)++, 0, size);
}

/* ---- tensors ---- */

/* The number of the current block in names of tensors. */
static uint32_t named_block(const QsfBuilder *b) {
    const uint32_t n = b->m->hp.n_named;
    return n > 0 && !qsf_build_is_nextn(b) ? b->block % n : b->block;
}

static const char *full_name(const QsfBuilder *b, const char *name, char *buf) {
    if (b->block >= b->p.n_blocks)
        snprintf(buf, NAME_MAX_BYTES, "%s", name);
    else
        snprintf(buf, NAME_MAX_BYTES, "blk.%" PRIu32 ".%s", named_block(b), name);
    return buf;
}

/* Finds a tensor; sets an error if it is required and absent. */
static const QsfTensor *find(QsfBuilder *b, QsfNeed need, const char *name) {
    char full[NAME_MAX_BYTES];
    if (qsf_build_failed(b)) return NULL;
    const QsfTensor *t = b->set->find(b->set->arg, full_name(b, name, full));
    if (t == NULL && need == QSF_REQUIRED) qsf_build_fail(b, "tensor '%s' is missing", full);
    if (t == NULL && need == QSF_OPTIONAL)
        qsf_reads_tensor(b->keys.reads, name, b->block >= b->p.n_blocks ? QSF_NONE : named_block(b));
    return t;
}

const QsfTensor *qsf_build_peek(const QsfBuilder *b, const char *name) {
    char full[NAME_MAX_BYTES];
    return qsf_build_failed(b) ? NULL : b->set->find(b->set->arg, full_name(b, name, full));
}

bool qsf_build_has(const QsfBuilder *b, const char *name) { return qsf_build_peek(b, name) != NULL; }

bool qsf_build_maybe(QsfBuilder *b, const char *name) { return find(b, QSF_OPTIONAL, name) != NULL; }

void qsf_build_require(QsfBuilder *b, const char *name) { (void)find(b, QSF_REQUIRED, name); }

static bool check_shape(QsfBuilder *b, const QsfTensor *t, const uint64_t ne[4]) {
    if (memcmp(t->ne, ne, sizeof t->ne) == 0) return true;
    char want[96];
    int n = snprintf(want, sizeof want, "%" PRIu64 " x %" PRIu64, ne[0], ne[1]);
    if (ne[2] != 1 || ne[3] != 1)
        snprintf(want + n, sizeof want - (size_t)n, " x %" PRIu64 " x %" PRIu64, ne[2], ne[3]);
    qsf_build_fail(b,
                   "tensor '%s' has the shape %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64
                   ", expected %s",
                   t->name, t->ne[0], t->ne[1], t->ne[2], t->ne[3], want);
    return false;
}

static bool check_plain(QsfBuilder *b, const QsfTensor *t) {
    const QsfDtype *type = qsf_dtype(t->dtype);
    if (type->supported && type->block_elems == 1) return true;
    qsf_build_fail(b, "tensor '%s' is of type %s, expected F32, F16 or BF16", t->name, type->name);
    return false;
}

static bool check_matrix(QsfBuilder *b, const QsfTensor *t) {
    const QsfDtype *type = qsf_dtype(t->dtype); /* not NULL: the reader rejects unknown types */
    const bool large_blocks = qsf_dtype_of_64(t->dtype) != t->dtype;
    if (large_blocks && !b->m->to_convert)
        qsf_build_fail(
            b,
            "tensor '%s' is of type %s: only blocks of 64 can be run; qsf-convert converts them losslessly",
            t->name, type->name);
    else if (!large_blocks && !type->supported)
        qsf_build_fail(b, "tensor '%s' is of type %s, which is not supported", t->name, type->name);
    else if (t->compressed != NULL && b->m->hp.n_named < b->m->hp.n_layers)
        qsf_build_fail(b, "tensor '%s' is compressed, which is not supported in a model that loops", t->name);
    return !qsf_build_failed(b);
}

static uint32_t add_param(QsfBuilder *b, const QsfTensor *t, uint64_t n) {
    QsfParam *p = grow(b, &b->p.param, &b->p.n_params, &b->cap_params, sizeof *p);
    if (p == NULL) return QSF_NONE;
    *p = (QsfParam){ .tensor = t, .block = b->block, .n = n, .at = b->p.param_floats };
    b->p.param_floats += (n + 15) & ~(uint64_t)15;
    return b->p.n_params - 1;
}

uint32_t qsf_build_param_nd(QsfBuilder *b, QsfNeed need, const uint64_t *ne, unsigned n_dims,
                            const char *name) {
    uint64_t want[4] = { 1, 1, 1, 1 };
    const QsfTensor *t = find(b, need, name);
    memcpy(want, ne, n_dims * sizeof *ne);
    if (t == NULL || !check_shape(b, t, want) || !check_plain(b, t)) return QSF_NONE;
    return add_param(b, t, want[0] * want[1] * want[2] * want[3]);
}

uint32_t qsf_build_param_tiles(QsfBuilder *b, QsfNeed need, uint32_t rows, uint32_t cols, const char *name) {
    const uint64_t ne[2] = { rows, cols };
    const uint32_t i = qsf_build_param_nd(b, need, ne, 2, name);
    if (i == QSF_NONE) return i;
    b->p.param[i].tile_rows = rows;
    b->p.param_floats = b->p.param[i].at + qsf_matrix_state_floats(1, rows, cols);
    return i;
}

uint32_t qsf_build_param(QsfBuilder *b, QsfNeed need, uint64_t n, const char *name) {
    return qsf_build_param_nd(b, need, &n, 1, name);
}

const QsfTensor *qsf_build_matrix(QsfBuilder *b, QsfNeed need, uint64_t cols, uint64_t rows,
                                  const char *name) {
    const uint64_t want[4] = { cols, rows, 1, 1 };
    const QsfTensor *t = find(b, need, name);
    return t != NULL && check_shape(b, t, want) && check_matrix(b, t) ? t : NULL;
}

const QsfTensor *qsf_build_matrices(QsfBuilder *b, QsfNeed need, uint64_t cols, uint64_t rows, uint64_t n,
                                    const char *name) {
    const uint64_t want[4] = { cols, rows, n, 1 };
    const QsfTensor *t = find(b, need, name);
    if (t == NULL || !check_shape(b, t, want) || !check_matrix(b, t)) return NULL;
    if (t->compressed != NULL || t->x16) {
        qsf_build_fail(b, "tensor '%s' is interleaved or compressed, which is not supported for experts",
                       t->name);
        return NULL;
    }
    return t;
}

uint64_t qsf_build_rows_of(const QsfBuilder *b, const char *name) {
    char full[NAME_MAX_BYTES];
    if (qsf_build_failed(b)) return 0;
    const QsfTensor *t = b->set->find(b->set->arg, full_name(b, name, full));
    return t != NULL ? t->ne[1] : 0;
}

void qsf_build_unused(QsfBuilder *b, const char *name) {
    const QsfTensor *t = qsf_build_peek(b, name);
    const QsfTensor **at = t != NULL ? grow(b, &b->unused, &b->n_unused, &b->cap_unused, sizeof t) : NULL;
    if (at != NULL) *at = t;
}

bool qsf_build_read(QsfBuilder *b, QsfNeed need, uint64_t n, const char *name, float *out) {
    const uint64_t want[4] = { n, 1, 1, 1 };
    const QsfTensor *t = find(b, need, name);
    if (t == NULL || !check_shape(b, t, want)) return false;
    if (strcmp(qsf_dtype(t->dtype)->name, "F32") != 0) {
        qsf_build_fail(b, "tensor '%s' is of type %s, expected F32", t->name, qsf_dtype(t->dtype)->name);
        return false;
    }
    if (add_param(b, t, n) == QSF_NONE) return false;
    qsf_build_check(b, qsf_source_read_bytes(b->m->src, t, 0, out, n * sizeof *out, b->err));
    return !qsf_build_failed(b);
}

/* ---- metadata ---- */

uint32_t qsf_build_u32(QsfBuilder *b, const char *name, uint32_t fallback, uint32_t low, uint32_t high) {
    uint32_t v = fallback;
    if (!qsf_build_failed(b)) qsf_build_check(b, qsf_keys_u32(&b->keys, name, fallback, low, high, &v));
    return !qsf_build_failed(b) ? v : fallback > low ? fallback : low;
}

uint32_t qsf_build_need_u32(QsfBuilder *b, const char *name, uint32_t low, uint32_t high) {
    uint32_t v = low;
    if (!qsf_build_failed(b)) qsf_build_check(b, qsf_keys_need_u32(&b->keys, name, low, high, &v));
    return qsf_build_failed(b) ? low : v;
}

float qsf_build_f32(QsfBuilder *b, const char *name, float fallback, float low, float high) {
    float v = fallback;
    if (!qsf_build_failed(b)) qsf_build_check(b, qsf_keys_f32(&b->keys, name, fallback, low, high, &v));
    return !qsf_build_failed(b) ? v : fallback > low ? fallback : low;
}

float qsf_build_need_f32(QsfBuilder *b, const char *name, float low, float high) {
    float v = low > 0 ? low : 0;
    if (!qsf_build_failed(b)) qsf_build_check(b, qsf_keys_need_f32(&b->keys, name, low, high, &v));
    return qsf_build_failed(b) ? (low > 0 ? low : 0) : v;
}

bool qsf_build_bool(QsfBuilder *b, const char *name, bool fallback) {
    bool v = fallback;
    if (!qsf_build_failed(b)) qsf_build_check(b, qsf_keys_bool(&b->keys, name, fallback, &v));
    return v;
}

/* ---- buffers ---- */

QsfSlice qsf_build_buffer(QsfBuilder *b, uint32_t width) {
    QsfBuffer *buf = grow(b, &b->p.buf, &b->p.n_bufs, &b->cap_bufs, sizeof *buf);
    if (buf == NULL) return qsf_slice_none();
    *buf = (QsfBuffer){ .width = width, .stride = (width + 15u) & ~15u, .first = QSF_NONE };
    return (QsfSlice){ b->p.n_bufs - 1, 0, width };
}

QsfSlice qsf_slice_part(QsfSlice s, uint32_t off, uint32_t width) {
    return (QsfSlice){ s.buf, s.off + off, width };
}

QsfSlice qsf_build_x(const QsfBuilder *b) { return (QsfSlice){ QSF_BUF_X, 0, b->m->hp.hidden }; }

QsfSlice qsf_build_branch(const QsfBuilder *b) { return (QsfSlice){ QSF_BUF_BRANCH, 0, b->m->hp.hidden }; }

QsfSlice qsf_build_logits(const QsfBuilder *b) { return (QsfSlice){ QSF_BUF_LOGITS, 0, b->m->hp.n_vocab }; }

/* ---- steps ---- */

QsfStep *qsf_build_step(QsfBuilder *b, QsfOp op, const char *label, QsfSlice in, QsfSlice out) {
    QsfStep *s = grow(b, &b->p.step, &b->p.n_steps, &b->cap_steps, sizeof *s);
    if (s == NULL) return NULL;
    *s = (QsfStep){ .op = op,
                    .block = b->block,
                    .label = label,
                    .in = in,
                    .in2 = qsf_slice_none(),
                    .in3 = qsf_slice_none() };
    for (unsigned i = 0; i < QSF_UNIT_TENSORS; i++) s->out[i] = qsf_slice_none();
    s->out[0] = out;
    return s;
}

static void norm_step(QsfBuilder *b, QsfNormKind kind, const char *name, QsfSlice in, QsfSlice out,
                      uint32_t heads, bool per_head) {
    char full[NAME_MAX_BYTES];
    QsfNormStep n = { .kind = kind,
                      .weight = QSF_NONE,
                      .bias = QSF_NONE,
                      .heads = heads,
                      .weight_per_head = per_head,
                      .eps = b->m->hp.norm_eps };
    const uint32_t width = out.width / heads, weights = per_head ? out.width : width;
    if (name != NULL) {
        const uint64_t ne[2] = { width, heads };
        snprintf(full, sizeof full, "%s.weight", name);
        if (!qsf_build_has(b, full) && qsf_build_has(b, name)) snprintf(full, sizeof full, "%s", name);
        n.weight = per_head ? qsf_build_param_nd(b, QSF_REQUIRED, ne, 2, full)
                            : qsf_build_param(b, QSF_REQUIRED, weights, full);
        snprintf(full, sizeof full, "%s.bias", name);
        if (kind == QSF_NORM_LAYER || (kind == QSF_NORM_RMS && b->rms_bias))
            n.bias = qsf_build_param(b, QSF_OPTIONAL, weights, full);
    }
    if (name == NULL && width > b->p.ones) b->p.ones = (width + 15u) & ~15u;
    QsfStep *s = qsf_build_step(b, QSF_OP_NORM, name != NULL ? name : "norm", in, out);
    if (s != NULL) s->u.norm = n;
}

void qsf_build_norm(QsfBuilder *b, QsfNormKind kind, const char *name, QsfSlice in, QsfSlice out) {
    norm_step(b, kind, name, in, out, 1, false);
}

void qsf_build_head_norm(QsfBuilder *b, QsfNormKind kind, const char *name, QsfSlice x, uint32_t heads,
                         bool per_head) {
    norm_step(b, kind, name, x, x, heads, per_head);
}

void qsf_build_add(QsfBuilder *b, const char *label, QsfSlice in, QsfSlice out) {
    (void)qsf_build_step(b, QSF_OP_ADD, label, in, out);
}

void qsf_build_act(QsfBuilder *b, const char *label, QsfActKind kind, QsfSlice in, QsfSlice out) {
    QsfStep *s = qsf_build_step(b, QSF_OP_ACT, label, in, out);
    if (s != NULL) s->u.act.kind = kind;
}

void qsf_build_with_param(QsfBuilder *b, QsfOp op, const char *label, uint32_t param, QsfSlice out) {
    QsfStep *s = qsf_build_step(b, op, label, qsf_slice_none(), out);
    if (s != NULL) s->u.param = param;
}

void qsf_build_scale(QsfBuilder *b, const char *label, QsfSlice out, float scale) {
    if (scale == 1.0f) return;
    QsfStep *s = qsf_build_step(b, QSF_OP_SCALE, label, qsf_slice_none(), out);
    if (s != NULL) s->u.scale = scale;
}

static uint32_t unit_block(const QsfBuilder *b) {
    return b->unit_block != QSF_NONE ? b->unit_block : b->block;
}

static uint32_t add_unit(QsfBuilder *b, QsfMatmulClass cls) {
    QsfUnitSpec *u = grow(b, &b->p.unit, &b->p.n_units, &b->cap_units, sizeof *u);
    if (u == NULL) return QSF_NONE;
    *u = (QsfUnitSpec){ .block = unit_block(b), .matmul_class = cls };
    return b->p.n_units - 1;
}

uint32_t qsf_build_unit(QsfBuilder *b, const QsfUnitSpec *unit) {
    const uint32_t i = add_unit(b, unit->matmul_class);
    if (i == QSF_NONE) return i;
    b->p.unit[i] = *unit;
    b->p.unit[i].block = unit_block(b);
    return i;
}

/* Adds matrix i of a linear step, if it is there. */
static void add_matrix(QsfBuilder *b, QsfUnitSpec *u, QsfStep *s, const QsfMatrixSpec *m, uint32_t cols) {
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "%s.weight", m->name);
    const QsfTensor *t = qsf_build_matrix(b, m->need, cols, m->out.width, name);
    if (t == NULL) return;
    snprintf(name, sizeof name, "%s.bias", m->name);
    s->u.linear.bias[u->n] = qsf_build_param(b, QSF_OPTIONAL, m->out.width, name);
    s->out[u->n] = m->out;
    u->tensor[u->n++] = t;
}

void qsf_build_linear(QsfBuilder *b, QsfMatmulClass cls, QsfSlice in, const QsfMatrixSpec *mats, unsigned n,
                      QsfActKind act) {
    const uint32_t unit = add_unit(b, cls);
    QsfStep *s = qsf_build_step(b, QSF_OP_LINEAR, mats[0].name, in, qsf_slice_none());
    if (s == NULL) return;
    QsfUnitSpec *u = &b->p.unit[unit];
    s->u.linear = (QsfLinearStep){ .unit = unit, .act = act };
    for (unsigned i = 0; i < QSF_UNIT_TENSORS; i++) s->u.linear.bias[i] = QSF_NONE;
    for (unsigned i = 0; i < n; i++) add_matrix(b, u, s, &mats[i], in.width);
    u->paired = act != QSF_ACT_NONE && u->n > 1;
}

void qsf_build_project(QsfBuilder *b, QsfMatmulClass cls, const char *name, QsfSlice in, QsfSlice out) {
    qsf_build_linear(b, cls, in, &(QsfMatrixSpec){ name, out, QSF_REQUIRED }, 1, QSF_ACT_NONE);
}

void qsf_build_head_linear(QsfBuilder *b, QsfMatmulClass cls, const char *name, uint32_t heads, uint32_t k,
                           uint32_t rows, QsfSlice in, uint32_t in_stride, QsfSlice out,
                           uint32_t out_stride) {
    char full[NAME_MAX_BYTES];
    const uint64_t want[4] = { k, rows, heads, 1 };
    snprintf(full, sizeof full, "%s.weight", name);
    const QsfTensor *t = find(b, QSF_REQUIRED, full);
    if (t == NULL || !check_shape(b, t, want) || !check_matrix(b, t)) return;
    if (t->x16 && rows % 16 != 0)
        qsf_build_fail(b, "tensor '%s' is interleaved, but its matrices have %u rows, not a multiple of 16",
                       t->name, rows);
    const uint32_t unit = add_unit(b, cls);
    QsfStep *s = qsf_build_step(b, QSF_OP_HEAD_LINEAR, name, in, out);
    if (s == NULL) return;
    QsfUnitSpec *u = &b->p.unit[unit];
    u->tensor[u->n++] = t;
    u->heads = heads;
    s->u.head_linear = (QsfHeadLinearStep){ unit, heads, rows, in_stride, out_stride };
}

uint32_t qsf_build_kv_shared(QsfBuilder *b, uint32_t heads, uint32_t dim) {
    const uint32_t kv = qsf_build_kv(b, heads, dim);
    if (kv != QSF_NONE) b->p.kv[kv].v_is_k = true;
    return kv;
}

uint32_t qsf_build_kv(QsfBuilder *b, uint32_t heads, uint32_t dim) {
    if (b->p.n_kv == QSF_MAX_LAYERS)
        qsf_build_fail(b, "the model has more than %u KV caches", QSF_MAX_LAYERS);
    QsfKvSpec *kv = grow(b, &b->p.kv, &b->p.n_kv, &b->cap_kv, sizeof *kv);
    if (kv == NULL) return QSF_NONE;
    *kv = (QsfKvSpec){ .block = b->block, .heads = heads, .dim = dim };
    return b->p.n_kv - 1;
}

uint32_t qsf_build_state(QsfBuilder *b, uint64_t floats) {
    QsfStateSpec *s = grow(b, &b->p.state, &b->p.n_states, &b->cap_states, sizeof *s);
    if (s == NULL) return QSF_NONE;
    if (floats == 0 || floats > MAX_STATE) {
        qsf_build_fail(b, "a recurrent state of block %" PRIu32 " has %" PRIu64 " elements, expected 1 to %u",
                       b->block, floats, MAX_STATE);
        return QSF_NONE;
    }
    *s = (QsfStateSpec){ .block = b->block, .floats = (uint32_t)floats, .at = b->p.state_floats };
    b->p.state_floats += (floats + 15) & ~(uint64_t)15;
    return b->p.n_states - 1;
}

uint32_t qsf_build_rope_table(QsfBuilder *b, QsfRopeKind kind, uint32_t n_rot, const double *freq,
                              double magnitude) {
    QsfRopeTable *r = grow(b, &b->p.rope, &b->p.n_ropes, &b->cap_ropes, sizeof *r);
    if (r == NULL) return QSF_NONE;
    *r = (QsfRopeTable){ .kind = kind, .n_rot = n_rot, .magnitude = magnitude, .at = b->p.rope_floats };
    b->p.rope_floats += n_rot;
    r->freq = calloc(n_rot / 2 + 1u, sizeof *freq);
    if (r->freq == NULL) {
        qsf_build_check(b, qsf_err_memory(b->err, "%s", path_of(b)));
        return QSF_NONE;
    }
    memcpy(r->freq, freq, n_rot / 2 * sizeof *freq);
    return b->p.n_ropes - 1;
}

void qsf_build_rope_long(QsfBuilder *b, uint32_t table, const double *freq, uint32_t original_ctx) {
    QsfRopeTable *r = &b->p.rope[table];
    r->freq_long = calloc(r->n_rot / 2 + 1u, sizeof *freq);
    if (r->freq_long == NULL) {
        qsf_build_check(b, qsf_err_memory(b->err, "%s", path_of(b)));
        return;
    }
    memcpy(r->freq_long, freq, r->n_rot / 2 * sizeof *freq);
    r->original_ctx = original_ctx;
}

float *qsf_build_per_head(QsfBuilder *b) {
    float **row = grow(b, &b->p.slopes, &b->p.n_slopes, &b->cap_slopes, sizeof *row);
    if (row == NULL) return NULL;
    *row = calloc(b->m->hp.n_heads, sizeof **row);
    if (*row == NULL) qsf_build_check(b, qsf_err_memory(b->err, "%s", path_of(b)));
    return *row;
}

uint32_t qsf_build_alibi(QsfBuilder *b, float max_bias) {
    const uint32_t heads = b->m->hp.n_heads;
    if (!(max_bias > 0.0f)) return QSF_NONE;
    float *row = qsf_build_per_head(b);
    if (row == NULL) return QSF_NONE;
    uint32_t pow2 = 1; /* the largest power of two that is not above the number of heads */
    while (pow2 * 2 <= heads) pow2 *= 2;
    const float m0 = exp2f(-max_bias / (float)pow2), m1 = exp2f(-max_bias / 2 / (float)pow2);
    for (uint32_t h = 0; h < heads; h++)
        row[h] = h < pow2 ? powf(m0, (float)(h + 1)) : powf(m1, (float)(2 * (h - pow2) + 1));
    return b->p.n_slopes - 1;
}

void qsf_build_rope(QsfBuilder *b, uint32_t table, QsfSlice x, uint32_t heads, uint32_t stride,
                    uint32_t off) {
    if (table == QSF_NONE) return;
    QsfStep *s = qsf_build_step(b, QSF_OP_ROPE, "rope", qsf_slice_none(), x);
    if (s != NULL) s->u.rope = (QsfRopeStep){ .table = table, .heads = heads, .stride = stride, .off = off };
}
