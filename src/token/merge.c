/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pair merging with a sorted list and a heap. Entries invalidated by a later merge stay there and are skipped
 * when reached. */
#include "src/token/merge.h"

#include "src/base/heap.h"
#include "src/base/interrupt.h"

#define CHECK_EVERY 4096u  /* pairs */
#define SORT_CHECK  65536u /* pairs sorted between two looks at the interrupt flag */
#define MAX_TEXT    (1u << 30)
#define WAYS        4 /* children of a heap node: half as many levels as with two */
#define DIGIT_BITS  11
#define DIGITS      (1u << DIGIT_BITS)
#define SORTED_FROM 4096 /* symbols: below this, sorting is not faster */

/* Changes the capacity of an array with elements of elem bytes. */
static int resize(QsfLedger *l, void **p, size_t *cap, size_t want, size_t elem, QsfErr *err) {
    if (want > SIZE_MAX / elem) return qsf_err_memory(err, "tokenizing a text of %zu characters", *cap);
    int rc = qsf_heap_resize(l, QSF_MEM_TRANSCRIPT, *cap * elem, want * elem, "tokenizing the text", p, err);
    if (rc == QSF_OK) *cap = want;
    return rc;
}

static int resize_pairs(QsfLedger *l, QsfPair **pairs, size_t *cap, size_t want, QsfErr *err) {
    void *p = *pairs;
    int rc = resize(l, &p, cap, want, sizeof **pairs, err);
    *pairs = p;
    return rc;
}

static int resize_symbols(QsfMerger *m, size_t want, QsfErr *err) {
    void *p = m->syms;
    int rc = resize(m->ledger, &p, &m->cap_syms, want, sizeof *m->syms, err);
    m->syms = p;
    return rc;
}

void qsf_merger_free(QsfMerger *m) {
    (void)resize_symbols(m, 0, NULL);
    (void)resize_pairs(m->ledger, &m->heap, &m->cap_heap, 0, NULL);
    (void)resize_pairs(m->ledger, &m->first, &m->cap_first, 0, NULL);
    *m = (QsfMerger){ .ledger = m->ledger };
}

void qsf_merger_clear(QsfMerger *m) {
    m->n_syms = 0;
    m->n_heap = m->n_first = m->at_first = 0;
}

/* A capacity with room for at least one element more. */
static size_t more(size_t cap) { return cap < 64 ? 64 : cap + cap / 2; }

int qsf_merger_add(QsfMerger *m, size_t len, int32_t id, QsfErr *err) {
    uint32_t off = 0;
    if (m->n_syms > 0) off = m->syms[m->n_syms - 1].off + m->syms[m->n_syms - 1].len;
    if (len > MAX_TEXT - off)
        return qsf_err_set(err, QSF_E_RUNTIME, "text too long to tokenize: more than 1 GiB");
    if (m->n_syms == m->cap_syms) {
        int rc = resize_symbols(m, more(m->cap_syms), err);
        if (rc != QSF_OK) return rc;
    }
    int32_t i = (int32_t)m->n_syms++;
    m->syms[i] = (QsfSymbol){ .off = off, .len = (uint32_t)len, .prev = i - 1, .next = -1, .id = id };
    if (i > 0) m->syms[i - 1].next = i;
    return QSF_OK;
}

static bool before(const QsfPair *a, const QsfPair *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->left < b->left;
}

static void sift_up(QsfPair *heap, size_t i) {
    QsfPair p = heap[i];
    while (i > 0 && before(&p, &heap[(i - 1) / WAYS])) {
        heap[i] = heap[(i - 1) / WAYS];
        i = (i - 1) / WAYS;
    }
    heap[i] = p;
}

static void sift_down(QsfPair *heap, size_t n, size_t i) {
    QsfPair p = heap[i];
    for (size_t child; (child = WAYS * i + 1) < n; i = child) {
        size_t end = child + WAYS < n ? child + WAYS : n;
        for (size_t other = child + 1; other < end; other++)
            if (before(&heap[other], &heap[child])) child = other;
        if (!before(&heap[child], &p)) break;
        heap[i] = heap[child];
    }
    heap[i] = p;
}

static bool stops_at(size_t i) { return i % SORT_CHECK == SORT_CHECK - 1 && qsf_interrupted(); }

/* One pass of the radix sort: from -> to, by the digit at shift, stable. Returns false, without moving
 * anything, if all have the same digit. If the thread is to stop, the result is of no use. */
static bool sort_digit(const QsfPair *from, QsfPair *to, size_t n, unsigned shift) {
    size_t at[DIGITS] = { 0 }, sum = 0;
    for (size_t i = 0; i < n && !stops_at(i); i++) at[from[i].rank >> shift & (DIGITS - 1)]++;
    if (at[from[0].rank >> shift & (DIGITS - 1)] == n) return false;
    for (size_t d = 0; d < DIGITS; d++) {
        size_t count = at[d];
        at[d] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n && !stops_at(i); i++) to[at[from[i].rank >> shift & (DIGITS - 1)]++] = from[i];
    return true;
}

/* For a long text, the initial pairs, which are most of all pairs, are sorted once instead of going through
 * the heap, which would be many times the size of the caches. They are stored in the heap's array in text
 * order. */
static int sort_first(QsfMerger *m, QsfErr *err) {
    if (m->cap_first < m->cap_heap) {
        int rc = resize_pairs(m->ledger, &m->first, &m->cap_first, m->cap_heap, err);
        if (rc != QSF_OK) return rc;
    }
    QsfPair *from = m->heap, *to = m->first;
    for (unsigned shift = 0; shift < 32 && m->n_heap > 0; shift += DIGIT_BITS) {
        if (qsf_interrupted()) return qsf_interrupt_check(err);
        if (!sort_digit(from, to, m->n_heap, shift)) continue;
        QsfPair *sorted = to;
        to = from;
        from = sorted;
    }
    if (qsf_interrupted()) return qsf_interrupt_check(err);
    size_t cap = m->cap_heap;
    m->cap_heap = from == m->heap ? m->cap_first : m->cap_heap;
    m->cap_first = from == m->heap ? cap : m->cap_first;
    m->first = from;
    m->heap = to;
    m->n_first = m->n_heap;
    m->n_heap = 0;
    return QSF_OK;
}

/* Takes the first pair of the sorted ones and those in the heap; false if there is none. */
static bool pop(QsfMerger *m, QsfPair *top) {
    if (m->at_first < m->n_first && (m->n_heap == 0 || before(&m->first[m->at_first], &m->heap[0]))) {
        *top = m->first[m->at_first++];
        return true;
    }
    if (m->n_heap == 0) return false;
    *top = m->heap[0];
    m->heap[0] = m->heap[--m->n_heap];
    if (m->n_heap > 0) sift_down(m->heap, m->n_heap, 0);
    return true;
}

/* Adds the pair that begins with symbol left: at the end of the heap's array, or in its sorted place if sift
 * is set. */
static int offer(QsfMerger *m, int32_t left, QsfPairFn pair, const void *ctx, bool sift, QsfErr *err) {
    if (left < 0 || m->syms[left].next < 0) return QSF_OK;
    const QsfSymbol *l = &m->syms[left], *r = &m->syms[l->next];
    QsfPair p = { .left = (uint32_t)left, .len = l->len + r->len };
    if (!pair(ctx, l, r, &p.rank, &p.id)) return QSF_OK;
    if (m->n_heap == m->cap_heap) {
        int rc = resize_pairs(m->ledger, &m->heap, &m->cap_heap, more(m->cap_heap), err);
        if (rc != QSF_OK) return rc;
    }
    m->heap[m->n_heap] = p;
    if (sift) sift_up(m->heap, m->n_heap);
    m->n_heap++;
    return QSF_OK;
}

static int offer_all(QsfMerger *m, QsfPairFn pair, const void *ctx, QsfErr *err) {
    bool sorted = m->n_syms >= SORTED_FROM;
    for (size_t i = 0; i + 1 < m->n_syms; i++) {
        int rc = offer(m, (int32_t)i, pair, ctx, !sorted, err);
        if (rc == QSF_OK && (i + 1) % CHECK_EVERY == 0) rc = qsf_interrupt_check(err);
        if (rc != QSF_OK) return rc;
    }
    return sorted ? sort_first(m, err) : QSF_OK;
}

int qsf_merger_run(QsfMerger *m, QsfPairFn pair, const void *ctx, QsfErr *err) {
    QsfPair p;
    int rc = offer_all(m, pair, ctx, err);
    for (unsigned n = 1; rc == QSF_OK && pop(m, &p); n++) {
        if (n % CHECK_EVERY == 0 && (rc = qsf_interrupt_check(err)) != QSF_OK) break;
        QsfSymbol *l = &m->syms[p.left];
        if (l->len == 0 || l->next < 0) continue;
        QsfSymbol *r = &m->syms[l->next];
        /* symbols only grow, so an equal length means that both are unchanged */
        if (l->len + r->len != p.len) continue;
        l->len = p.len;
        l->id = p.id;
        l->next = r->next;
        r->len = 0;
        if (l->next >= 0) m->syms[l->next].prev = (int32_t)p.left;
        rc = offer(m, l->prev, pair, ctx, true, err);
        if (rc == QSF_OK) rc = offer(m, (int32_t)p.left, pair, ctx, true, err);
    }
    return rc;
}
