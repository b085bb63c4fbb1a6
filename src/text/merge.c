/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pair merging with a binary heap. Entries that a later merge made wrong stay in the heap and are
 * skipped when they come up. */
#include "src/text/merge.h"

#include <stdlib.h>

#define MAX_TEXT (1u << 30)

void qsf_merger_free(QsfMerger *m) {
    free(m->syms);
    free(m->heap);
    *m = (QsfMerger){0};
}

void qsf_merger_clear(QsfMerger *m) {
    m->n_syms = 0;
    m->n_heap = 0;
}

/* Makes room for one more element; the new capacity in *cap. */
static void *grow(void *p, size_t *cap, size_t elem, QsfErr *err) {
    size_t want = *cap < 64 ? 64 : *cap + *cap / 2;
    void *q = realloc(p, want * elem);
    if (q == NULL) {
        qsf_err_set(err, QSF_E_RUNTIME, "out of memory for tokenizing a text of %zu characters", *cap);
        return NULL;
    }
    *cap = want;
    return q;
}

int qsf_merger_add(QsfMerger *m, size_t len, int32_t id, QsfErr *err) {
    uint32_t off = 0;
    if (m->n_syms > 0) off = m->syms[m->n_syms - 1].off + m->syms[m->n_syms - 1].len;
    if (len > MAX_TEXT - off)
        return qsf_err_set(err, QSF_E_RUNTIME, "text too long to tokenize: more than 1 GiB");
    if (m->n_syms == m->cap_syms) {
        QsfSymbol *p = grow(m->syms, &m->cap_syms, sizeof *p, err);
        if (p == NULL) return QSF_E_RUNTIME;
        m->syms = p;
    }
    int32_t i = (int32_t)m->n_syms++;
    m->syms[i] = (QsfSymbol){.off = off, .len = (uint32_t)len, .prev = i - 1, .next = -1, .id = id};
    if (i > 0) m->syms[i - 1].next = i;
    return QSF_OK;
}

static bool before(const QsfPair *a, const QsfPair *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->left < b->left;
}

static void sift_up(QsfPair *heap, size_t i) {
    QsfPair p = heap[i];
    while (i > 0 && before(&p, &heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = p;
}

static void sift_down(QsfPair *heap, size_t n, size_t i) {
    QsfPair p = heap[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(&heap[child + 1], &heap[child])) child++;
        if (!before(&heap[child], &p)) break;
        heap[i] = heap[child];
    }
    heap[i] = p;
}

static QsfPair pop(QsfMerger *m) {
    QsfPair top = m->heap[0];
    m->heap[0] = m->heap[--m->n_heap];
    if (m->n_heap > 0) sift_down(m->heap, m->n_heap, 0);
    return top;
}

/* Offers the pair that begins with symbol left. */
static int offer(QsfMerger *m, int32_t left, QsfPairFn pair, const void *ctx, QsfErr *err) {
    if (left < 0 || m->syms[left].next < 0) return QSF_OK;
    const QsfSymbol *l = &m->syms[left], *r = &m->syms[l->next];
    QsfPair p = {.left = (uint32_t)left, .len = l->len + r->len};
    if (!pair(ctx, l, r, &p.rank, &p.id)) return QSF_OK;
    if (m->n_heap == m->cap_heap) {
        QsfPair *heap = grow(m->heap, &m->cap_heap, sizeof *heap, err);
        if (heap == NULL) return QSF_E_RUNTIME;
        m->heap = heap;
    }
    m->heap[m->n_heap] = p;
    sift_up(m->heap, m->n_heap++);
    return QSF_OK;
}

int qsf_merger_run(QsfMerger *m, QsfPairFn pair, const void *ctx, QsfErr *err) {
    for (size_t i = 0; i + 1 < m->n_syms; i++) {
        int rc = offer(m, (int32_t)i, pair, ctx, err);
        if (rc != QSF_OK) return rc;
    }
    while (m->n_heap > 0) {
        QsfPair p = pop(m);
        QsfSymbol *l = &m->syms[p.left];
        if (l->len == 0 || l->next < 0) continue;
        QsfSymbol *r = &m->syms[l->next];
        /* symbols only grow, so an equal length means that both are as they were */
        if (l->len + r->len != p.len) continue;
        l->len = p.len;
        l->id = p.id;
        l->next = r->next;
        r->len = 0;
        if (l->next >= 0) m->syms[l->next].prev = (int32_t)p.left;
        int rc = offer(m, l->prev, pair, ctx, err);
        if (rc == QSF_OK) rc = offer(m, (int32_t)p.left, pair, ctx, err);
        if (rc != QSF_OK) return rc;
    }
    return QSF_OK;
}
