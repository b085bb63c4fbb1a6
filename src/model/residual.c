/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A slice belongs to a block's residual if values from before the block reach it, it writes there, and
 * later steps read it. What a block leaves for others without reading it first, as the values of the
 * first block in RWKV-7, does not. */
#include "src/model/residual.h"

#include <inttypes.h>
#include <stdlib.h>

typedef enum Touch { NOT, READS, REPLACES, CHANGES } Touch;

static bool overlap(QsfSlice a, QsfSlice b) {
    return a.buf == b.buf && a.buf != QSF_NONE && a.off < b.off + b.width && b.off < a.off + a.width;
}

static bool contains(QsfSlice a, QsfSlice b) {
    return a.buf == b.buf && a.off <= b.off && b.off + b.width <= a.off + a.width;
}

/* What a step does to a slice first. */
static Touch touch(const QsfStep *s, QsfSlice w) {
    if (overlap(s->in, w) || overlap(s->in2, w) || overlap(s->in3, w)) return READS;
    for (unsigned i = 0; i < QSF_UNIT_TENSORS; i++) {
        if (!overlap(s->out[i], w)) continue;
        if (i == 0 && qsf_step_is_in_place(s)) return READS;
        return contains(s->out[i], w) ? REPLACES : CHANGES;
    }
    return NOT;
}

/* Is the slice needed at step i, before which it has its value? Part of it may be replaced. */
static bool is_read(const QsfProgram *p, uint32_t i, uint32_t end, QsfSlice w) {
    for (; i < end && p->run[i] <= p->buf[w.buf].last; i++) {
        const Touch t = touch(&p->step[i], w);
        if (t != NOT) return t != REPLACES;
    }
    return false;
}

static bool is_written(const QsfProgram *p, uint32_t end, QsfSlice w) {
    if (w.buf == QSF_BUF_X) return true; /* by the embedding */
    for (uint32_t i = 0; i < end; i++)
        for (unsigned k = 0; k < QSF_UNIT_TENSORS; k++)
            if (overlap(p->step[i].out[k], w)) return true;
    return false;
}

static bool is_residual(const QsfProgram *p, const QsfResidualBlock *b, QsfSlice w) {
    if (w.buf >= p->n_bufs || p->buf[w.buf].last < p->run[b->end - 1]) return false;
    return is_written(p, b->begin, w) && is_read(p, b->begin, b->end, w) && is_read(p, b->end, p->n_steps, w);
}

static int add_slice(QsfResidual *r, QsfResidualBlock *b, QsfSlice w, QsfErr *err) {
    for (uint32_t i = b->first; i < r->n_slices; i++)
        if (contains(r->slice[i], w)) return QSF_OK;
    if (r->n_slices == r->cap_slices) {
        const uint32_t cap = r->cap_slices * 2 + 16;
        QsfSlice *more = realloc(r->slice, cap * sizeof *more);
        if (more == NULL) return qsf_err_memory(err, "layers");
        r->slice = more;
        r->cap_slices = cap;
    }
    r->slice[r->n_slices++] = w;
    b->n++;
    b->width += w.width;
    return QSF_OK;
}

static int find_slices(QsfResidual *r, const QsfProgram *p, QsfResidualBlock *b, QsfErr *err) {
    int rc = QSF_OK;
    b->first = r->n_slices;
    for (uint32_t i = b->begin; rc == QSF_OK && i < b->end; i++)
        for (unsigned k = 0; rc == QSF_OK && k < QSF_UNIT_TENSORS; k++) {
            const QsfSlice w = p->step[i].out[k];
            if (w.width > 0 && is_residual(p, b, w)) rc = add_slice(r, b, w, err);
        }
    if (b->width > r->widest) r->widest = b->width;
    return rc;
}

static bool belongs(const QsfResidual *r, const QsfResidualBlock *b, QsfSlice w) {
    for (uint32_t i = b->first; i < b->first + b->n; i++)
        if (contains(r->slice[i], w)) return true;
    return false;
}

bool qsf_residual_leaves_more(const QsfResidual *r, const QsfProgram *p, uint32_t block) {
    const QsfResidualBlock *b = &r->block[block];
    for (uint32_t i = b->begin; i < b->end; i++)
        for (unsigned k = 0; k < QSF_UNIT_TENSORS; k++) {
            const QsfSlice w = p->step[i].out[k];
            if (w.width > 0 && w.buf < p->n_bufs && !belongs(r, b, w) && is_read(p, b->end, p->n_steps, w))
                return true;
        }
    return false;
}

/* A slice that a program writes. */
typedef struct Written {
    QsfSlice slice;
    uint32_t from; /* step before which it has been written */
} Written;

/* Adds w unless it is there. Blocks write what the block before wrote: the newest are compared first. */
static uint32_t add_written(Written *list, uint32_t n, Written w) {
    for (uint32_t i = n; i-- > 0;)
        if (contains(list[i].slice, w.slice) && contains(w.slice, list[i].slice)) return n;
    list[n] = w;
    return n + 1;
}

/* The embedding and what steps write, each slice once. */
static uint32_t list_written(Written *list, const QsfProgram *p) {
    const QsfSlice x = { .buf = QSF_BUF_X, .off = 0, .width = p->buf[QSF_BUF_X].width };
    uint32_t n = add_written(list, 0, (Written){ x, 0 });
    for (uint32_t i = 0; i < p->n_steps; i++)
        for (unsigned k = 0; k < QSF_UNIT_TENSORS; k++) {
            const QsfSlice w = p->step[i].out[k];
            if (w.width > 0 && w.buf < p->n_bufs) n = add_written(list, n, (Written){ w, i + 1 });
        }
    return n;
}

/* Is step i the first one of a block whose residual does not have w? */
static bool lacks(const QsfResidual *r, const QsfProgram *p, uint32_t i, QsfSlice w) {
    if (p->step[i].block >= r->n_blocks) return false;
    const QsfResidualBlock *b = &r->block[p->step[i].block];
    return b->begin == i && !(b->n == 1 && contains(r->slice[b->first], w));
}

int qsf_residual_alone(const QsfResidual *r, const QsfProgram *p, QsfBlockSet *out, QsfErr *err) {
    Written *list = malloc(((size_t)p->n_steps * QSF_UNIT_TENSORS + 1) * sizeof *list);
    if (list == NULL) return qsf_err_memory(err, "layers");
    *out = (QsfBlockSet){ 0 };
    for (uint32_t i = 0; i < r->n_blocks; i++)
        if (r->block[i].n == 1) qsf_blocks_add(out, i);
    for (uint32_t n = list_written(list, p); n-- > 0;) {
        bool read = false; /* by this step or a later one, before it is replaced */
        for (uint32_t i = p->n_steps; i-- > list[n].from;) {
            const Touch t = touch(&p->step[i], list[n].slice);
            if (t != NOT) read = t != REPLACES;
            if (read && lacks(r, p, i, list[n].slice)) qsf_blocks_remove(out, p->step[i].block);
        }
    }
    free(list);
    return QSF_OK;
}

static int find_steps(QsfResidual *r, const QsfModel *m, QsfErr *err) {
    const QsfProgram *p = &m->prog;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (p->step[i].block >= p->n_blocks) continue;
        QsfResidualBlock *b = &r->block[p->step[i].block];
        if (b->end == 0) b->begin = b->end = i;
        if (b->end != i)
            return qsf_err_set(err, QSF_E_MODEL,
                               "%s: the steps of layer %" PRIu32 " are not together, so it cannot be scored",
                               qsf_source_path(m->src), p->step[i].block);
        b->end = i + 1;
    }
    return QSF_OK;
}

int qsf_residual_make(QsfResidual *out, const QsfModel *m, QsfErr *err) {
    *out = (QsfResidual){ .n_blocks = m->prog.n_blocks };
    out->block = calloc((size_t)out->n_blocks + 1, sizeof *out->block);
    int rc = out->block != NULL ? find_steps(out, m, err) : qsf_err_memory(err, "layers");
    for (uint32_t i = 0; rc == QSF_OK && i < out->n_blocks; i++)
        if (out->block[i].end > out->block[i].begin) rc = find_slices(out, &m->prog, &out->block[i], err);
    if (rc != QSF_OK) qsf_residual_free(out);
    return rc;
}

void qsf_residual_free(QsfResidual *r) {
    free(r->block);
    free(r->slice);
    *r = (QsfResidual){ 0 };
}
