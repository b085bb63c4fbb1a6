/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What was chosen so far, and which of it any number of slots would have had in memory.
 *
 * The policy gives up the expert that waits longest, which does not depend on the number of slots. So
 * what fewer slots hold is always a part of what more slots hold (a stack algorithm: R. L. Mattson et al.,
 * Evaluation techniques for storage hierarchies, IBM Systems Journal 9(2), 1970), and one list of all experts
 * tells for every number: the first n are those that n slots hold. An expert that is used comes to the top,
 * and those above its place move down, of two always the one that waits longer; n slots have it if its
 * place was among the first n. That takes as many steps as its place, no matter how many numbers are asked
 * for. Of models with many experts the list has a half, a third and so on of them, as if the others and their
 * part of the slots were not there (C. A. Waldspurger et al., Efficient MRC construction with SHARDS, USENIX
 * FAST 2015). Slots that are not filled yet, and experts that must not be given up while their
 * layer is computed, make the real hits differ a little. */
#include <math.h>
#include <string.h>

#include "src/stream/expert_pool_impl.h"

#define WINDOW 256u  /* positions after which what was counted counts half */
#define MOST   2048u /* experts in the list, about */

void qsf_expert_count(const QsfExpertPool *p, uint32_t e, int n) {
    const QsfStreamCounters *c = p->o.counters;
    if (c == NULL || c->layer == NULL) return;
    atomic_fetch_add_explicit(&c->layer[p->units[p->unit[e]].u.layer].experts_in, (uint64_t)(int64_t)n,
                              memory_order_relaxed);
}

/* ---- the order in which free slots are filled ---- */

static bool comes_after(const QsfExpertPool *p, uint32_t a, uint32_t b) {
    const float wait_a = qsf_expert_wait(p, a), wait_b = qsf_expert_wait(p, b);
    if (wait_a != wait_b) return wait_a > wait_b;
    const uint32_t ia = p->units[p->unit[a]].u.expert, ib = p->units[p->unit[b]].u.expert;
    return ia != ib ? ia > ib : a > b;
}

/* Restores the heap order[0..n), where only element i may be out of place. Its root is the expert that comes
 * last. */
static void sift(QsfExpertPool *p, uint32_t i, uint32_t n) {
    for (uint32_t k = 2 * i + 1; k < n; i = k, k = 2 * i + 1) {
        const uint32_t e = p->order[i];
        if (k + 1 < n && comes_after(p, p->order[k + 1], p->order[k])) k++;
        if (!comes_after(p, p->order[k], e)) return;
        p->order[i] = p->order[k];
        p->order[k] = e;
    }
}

void qsf_expert_sort(QsfExpertPool *p) {
    p->in_order = true;
    for (uint32_t i = p->n_experts / 2; i-- > 0;) sift(p, i, p->n_experts);
    for (uint32_t n = p->n_experts; n-- > 1;) {
        const uint32_t last = p->order[0];
        p->order[0] = p->order[n];
        p->order[n] = last;
        sift(p, 0, n);
    }
}

/* An expert of the list. Which ones it has is random, so that no layer and no id is preferred. */
static bool is_listed(const QsfExpertPool *p, uint32_t e) { return (e * 2654435761u >> 16) % p->every == 0; }

/* The list begins with those that are used most. */
static void make_list(QsfExpertPool *p) {
    p->n_stack = 0;
    for (uint32_t i = 0; i < p->n_experts; i++)
        if (is_listed(p, p->order[i])) p->stack[p->n_stack++] = p->order[i];
}

void qsf_expert_record_init(QsfExpertPool *p) {
    p->every = 1 + p->n_experts / (MOST + 1);
    for (uint32_t e = 0; e < p->n_experts; e++) p->order[e] = e;
    qsf_expert_sort(p);
    make_list(p);
}

uint32_t qsf_expert_pool_every(const QsfExpertPool *p) { return p->every; }

void qsf_expert_pool_learned(QsfExpertPool *p, const uint16_t *uses, uint32_t n, double positions) {
    if (n != p->n_experts || positions <= 0) return;
    for (uint32_t e = 0; e < n; e++) qsf_expert_set_rate(p, e, (float)fmin(uses[e] / positions, 1));
    qsf_expert_sort(p);
    make_list(p);
}

/* ---- choices ---- */

/* Brings an expert to the top; returns the place where it was. */
static uint32_t touch(QsfExpertPool *p, uint32_t e) {
    uint32_t down = p->stack[0], i = 0;
    if (down == e) return 0;
    float longest = qsf_expert_wait(p, down);
    p->stack[0] = e;
    for (i = 1; i + 1 < p->n_stack && p->stack[i] != e; i++) {
        const uint32_t here = p->stack[i];
        const float wait = qsf_expert_wait(p, here);
        if (wait < longest) continue;
        p->stack[i] = down;
        down = here;
        longest = wait;
    }
    p->stack[i] = down;
    return i;
}

void qsf_expert_pool_note(QsfExpertPool *p, uint32_t unit, bool alone, QsfStreamCounters *n) {
    const uint32_t e = qsf_expert_find(p, unit);
    p->in_order = false;
    if (alone && p->uses[e] < UINT32_MAX) p->uses[e]++;
    if (!is_listed(p, e)) return;
    const uint64_t place = touch(p, e);
    if (alone)
        atomic_fetch_add_explicit(&n->expert_depth[place * QSF_EXPERT_DEPTHS / p->n_stack], 1,
                                  memory_order_relaxed);
}

void qsf_expert_pool_note_position(QsfExpertPool *p, QsfStreamCounters *n) {
    if (p->n_alone < UINT32_MAX) p->n_alone++;
    if (++p->n_noted < WINDOW) return;
    p->n_noted = 0;
    for (uint32_t i = 0; i < QSF_EXPERT_DEPTHS; i++) {
        const uint64_t v = atomic_load_explicit(&n->expert_depth[i], memory_order_relaxed);
        atomic_store_explicit(&n->expert_depth[i], v / 2, memory_order_relaxed);
    }
}

void qsf_expert_pool_learn_position(QsfExpertPool *p) {
    if (p->n_alone < UINT32_MAX) p->n_alone++;
}

void qsf_expert_pool_learn_use(QsfExpertPool *p, uint32_t unit) {
    const uint32_t e = qsf_expert_find(p, unit);
    if (p->uses[e] < UINT32_MAX) p->uses[e]++;
}

uint32_t qsf_expert_pool_take_uses(QsfExpertPool *p, uint32_t *uses, uint32_t n) {
    const uint32_t positions = p->n_alone;
    if (n == 0) return positions;
    if (n != p->n_experts) return 0;
    memcpy(uses, p->uses, n * sizeof *uses);
    memset(p->uses, 0, n * sizeof *uses);
    p->n_alone = 0;
    return positions;
}
