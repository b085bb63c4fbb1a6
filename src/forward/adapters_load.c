/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads adapters. In half precision a tensor is multiplied by a power of two, which brings its largest
 * value to about 2^14, so that small values are as exact as large ones; the factor of its pair has the
 * inverse. Rows are stored in groups, as qk_thin wants them. */
#include <math.h>
#include <string.h>

#include "src/base/half.h"
#include "src/base/platform.h"
#include "src/file/dtype.h"
#include "src/file/rows.h"
#include "src/forward/forward_impl.h"

#define PIECE    4096u /* elements, a multiple of every block */
#define HALF_TOP 14    /* exponent of the largest value in half precision */

/* A tensor on its way into memory. */
typedef struct Loading {
    QsfForward *f;
    const QsfAdapter *of;
    const QsfTensor *t;
    uint8_t *to;
    bool grouped; /* not rows of the embedding table, of which one is used at a time */
    float scale;
    float largest; /* found in the first round */
    bool store;
} Loading;

/* Where element i of the tensor is in memory, in elements. Each of its matrices begins with a group. */
static uint64_t place(const Loading *l, uint64_t i) {
    if (!l->grouped) return i;
    const uint64_t k = l->t->ne[0], rows = l->t->ne[1], row = i / k, part = l->t->ne[2] > 1 ? row / rows : 0;
    const uint64_t at = part * qsf_adapter_padded(rows) + row - part * rows;
    return (at / QSF_ADAPTER_GROUP * k + i - row * k) * QSF_ADAPTER_GROUP + at % QSF_ADAPTER_GROUP;
}

static void store(const Loading *l, uint64_t i, float v) {
    const uint64_t at = place(l, i);
    if (l->f->adapters.set->exact)
        memcpy(l->to + 4 * at, &v, sizeof v);
    else
        qsf_half_put(l->to + 2 * at, qsf_half_bits((double)(v * l->scale)));
}

static int bad_value(const Loading *l, QsfErr *err) {
    return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' has a value that is not a finite number",
                       l->of->path, l->t->name);
}

/* One round over all values of the tensor. */
static int walk(Loading *l, QsfErr *err) {
    const QsfDtype *d = qsf_dtype(l->t->dtype);
    const qk_weight_ops *ops = &l->f->table->weight[qk_type_of(l->t->dtype)];
    const uint64_t all = l->t->ne[0] * l->t->ne[1] * l->t->ne[2];
    uint8_t raw[PIECE * sizeof(float)];
    float x[PIECE];
    for (uint64_t i = 0, n; i < all; i += n) {
        n = all - i < PIECE ? all - i : PIECE;
        const uint64_t at = i / d->block_elems * d->block_bytes, bytes = n / d->block_elems * d->block_bytes;
        if (qsf_cancelled(l->f)) return qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
        int rc = qsf_source_read_bytes(l->of->src, l->t, at, raw, (size_t)bytes, err);
        if (rc != QSF_OK) return rc;
        ops->dequant(raw, x, (size_t)n);
        for (uint64_t k = 0; k < n; k++) {
            if (!isfinite(x[k])) return bad_value(l, err);
            if (l->store)
                store(l, i + k, x[k]);
            else
                l->largest = fmaxf(l->largest, fabsf(x[k]));
        }
    }
    return QSF_OK;
}

/* Finds the scale of a tensor in memory, and multiplies *factor by its inverse. */
static int find_scale(QsfForward *f, const QsfAdapter *of, const QsfTensor *t, float *scale, float *factor,
                      QsfErr *err) {
    Loading l = { .f = f, .of = of, .t = t, .scale = 1 };
    int exponent, rc = walk(&l, err);
    *scale = 1;
    if (rc != QSF_OK || !(l.largest > 0) || f->adapters.set->exact) return rc;
    (void)frexpf(l.largest, &exponent);
    *scale = ldexpf(1, HALF_TOP - exponent);
    *factor = ldexpf(*factor, exponent - HALF_TOP);
    return QSF_OK;
}

static int measure_pair(QsfForward *f, const QsfAdapter *a, const QsfAdapterPair *p, QsfErr *err) {
    float factor = qsf_adapter_factor(a, p), *scale = f->adapters.scales + 2 * (size_t)p->index;
    int rc = find_scale(f, a, p->a, &scale[0], &factor, err);
    if (rc == QSF_OK) rc = find_scale(f, a, p->b, &scale[1], &factor, err);
    f->adapters.factor[p->index] = factor;
    if (rc == QSF_OK && !isfinite(factor))
        return qsf_err_set(err, QSF_E_MODEL, "%s: the values of '%s.lora_a' and '.lora_b' are too large",
                           a->path, p->name);
    return rc;
}

static int read_tensor(QsfForward *f, const QsfAdapter *of, const QsfTensor *t, uint8_t *to, bool grouped,
                       float scale, QsfErr *err) {
    Loading l = { .f = f, .of = of, .t = t, .to = to, .grouped = grouped, .scale = scale, .store = true };
    return walk(&l, err);
}

static int read_pair(QsfForward *f, const QsfAdapter *a, const QsfAdapterPair *p, QsfErr *err) {
    const QsfAdapters *to = &f->adapters;
    uint8_t *mem = to->mem + (to->streams ? p->in_block : p->at);
    const float *scale = to->scales + 2 * (size_t)p->index;
    int rc = read_tensor(f, a, p->a, mem, !p->table, scale[0], err);
    return rc == QSF_OK ? read_tensor(f, a, p->b, mem + p->a_bytes, true, scale[1], err) : rc;
}

/* Padding is zero, whatever the block before had there. */
int qsf_adapters_hold(QsfForward *f, uint32_t block, QsfErr *err) {
    QsfAdapters *a = &f->adapters;
    int rc = QSF_OK;
    if (!a->streams || a->held == block) return QSF_OK;
    a->held = QSF_NONE;
    memset(a->mem, 0, (size_t)a->set->block_bytes);
    for (uint32_t k = 0; rc == QSF_OK && k < a->set->n; k++) {
        const QsfAdapter *from = &a->set->adapter[k];
        for (uint32_t i = 0; rc == QSF_OK && i < from->n_pairs; i++) {
            const QsfAdapterPair *p = &from->pair[i];
            if (!p->used || p->block != block) continue;
            rc = read_pair(f, from, p, err);
            qsf_count(&f->n.io.bytes_read, p->a->bytes + p->b->bytes);
        }
    }
    if (rc == QSF_OK) a->held = block;
    return rc;
}

static int read_control(QsfForward *f, const QsfControl *c, QsfErr *err) {
    const uint32_t hidden = f->model->hp.hidden;
    for (uint32_t b = 0; b < f->model->prog.n_blocks; b++) {
        float *to = f->adapters.control + (size_t)b * hidden, x[PIECE];
        for (uint32_t i = 0, n; c->direction[b] != NULL && i < hidden; i += n) {
            n = hidden - i < PIECE ? hidden - i : PIECE;
            int rc = qsf_source_read_bytes(c->src, c->direction[b], 4ull * i, x, n * sizeof *x, err);
            if (rc != QSF_OK) return rc;
            for (uint32_t k = 0; k < n; k++) {
                if (!isfinite(x[k]))
                    return qsf_err_set(err, QSF_E_MODEL,
                                       "%s: tensor '%s' has a value that is not a finite number", c->path,
                                       c->direction[b]->name);
                to[i + k] += c->scale * x[k];
            }
        }
        if (c->direction[b] != NULL) qsf_blocks_add(&f->adapters.controlled, b);
    }
    return QSF_OK;
}

/* ---- memory ---- */

static uint64_t floats_at(uint64_t bytes) { return (bytes + 63) & ~(uint64_t)63; }

static int map(QsfForward *f, const QsfAdapterSet *s, bool streams, QsfErr *err) {
    QsfAdapters *a = &f->adapters;
    void *mem;
    const uint64_t pages = qsf_adapters_pages(s, streams), bytes = streams ? s->block_bytes : s->bytes;
    int rc = qsf_mem_map(f->ledger, QSF_MEM_PINNED, pages, "adapters", &mem, err);
    if (rc != QSF_OK) return rc;
    qsf_os_huge_pages(mem,
                      pages); /* each is read once for a token: a walk for every 4 KB costs a third more */
    const uint64_t control = s->n_controls > 0 ? 4ull * f->model->prog.n_blocks * f->model->hp.hidden : 0;
    QsfAdapters made = { .set = s,
                         .mem = mem,
                         .bytes = pages,
                         .ranks = a->ranks,
                         .parts = a->parts,
                         .rank_bytes = a->rank_bytes,
                         .streams = streams,
                         .held = QSF_NONE };
    for (uint32_t i = 0; i < s->n; i++)
        made.from[i] = a->kept == s ? a->from[i] : s->adapter[i].n_invocation > 0 ? UINT32_MAX : 0;
    *a = made;
    a->control = control > 0 ? (float *)(void *)(a->mem + bytes) : NULL;
    a->factor = (float *)(void *)(a->mem + bytes + floats_at(control));
    a->scales = a->factor + s->n_pairs;
    return QSF_OK;
}

static int read_all(QsfForward *f, QsfErr *err) {
    const QsfAdapterSet *s = f->adapters.set;
    int rc = QSF_OK;
    for (uint32_t k = 0; rc == QSF_OK && k < s->n; k++) {
        const QsfAdapter *a = &s->adapter[k];
        for (uint32_t i = 0; rc == QSF_OK && i < a->n_pairs; i++) {
            if (!a->pair[i].used) continue;
            rc = measure_pair(f, a, &a->pair[i], err);
            if (rc == QSF_OK && !f->adapters.streams) rc = read_pair(f, a, &a->pair[i], err);
        }
    }
    for (uint32_t k = 0; rc == QSF_OK && k < s->n_controls; k++) rc = read_control(f, &s->control[k], err);
    return rc;
}

/* keep: the same adapters are read again, and act where they do now. */
static void free_weights(QsfForward *f, bool keep) {
    QsfAdapters *a = &f->adapters, none = { .ranks = a->ranks, .rank_bytes = a->rank_bytes };
    qsf_mem_unmap(f->ledger, QSF_MEM_PINNED, a->mem, a->bytes);
    if (keep) {
        none.kept = a->set;
        memcpy(none.from, a->from, sizeof none.from);
    }
    *a = none;
}

void qsf_adapters_free(QsfForward *f, const QsfPlan *p) {
    QsfAdapters *a = &f->adapters;
    qsf_mem_unmap(f->ledger, QSF_MEM_ACTIVATIONS, a->ranks, a->rank_bytes);
    a->ranks = NULL;
    a->rank_bytes = 0;
    if (p == NULL || p->adapters != a->set || p->adapters_stream != a->streams)
        free_weights(f, p != NULL && p->adapters == a->set);
}

int qsf_adapters_load(QsfForward *f, const QsfPlan *p, QsfErr *err) {
    QsfAdapters *a = &f->adapters;
    void *mem;
    int rc = QSF_OK;
    if (p->adapters == NULL) return QSF_OK;
    const bool is_new = a->set != p->adapters;
    if (is_new) rc = map(f, p->adapters, p->adapters_stream, err);
    if (rc != QSF_OK) return rc;
    a->rank_bytes = qsf_adapters_pass_bytes(a->set, f->l.n_cols);
    rc = qsf_mem_map(f->ledger, QSF_MEM_ACTIVATIONS, a->rank_bytes, "ranks of adapters", &mem, err);
    a->ranks = mem;
    a->parts = a->ranks + (size_t)f->l.n_cols * a->set->rank_floats;
    if (rc != QSF_OK) a->rank_bytes = 0;
    if (rc == QSF_OK && is_new) rc = read_all(f, err);
    if (rc != QSF_OK && is_new) free_weights(f, false);
    return rc;
}
