/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Choice of formats within a number of bytes (Y. Shoham, A. Gersho: "Efficient bit allocation for an
 * arbitrary set of quantizers", 1988: marginal gains on the hull), then exchanges when the steps on the hull
 * no longer fit. */
#include "src/convert/quant/allocate.h"

#include <math.h>

#include "src/base/checked.h"

/* --- table of roles. Weights: errors of V and down projections enter the residual stream unscaled, while
 * softmax and gate dampen those of Q, K and gate; errors of embedding and head affect tokens directly ---
 * */

enum { UNQUANTIZED = 16, END_FLOOR = 3, END_START = 4, OUTLIER_BITS = 4 };

#define END_WEIGHT 2.0

static const struct {
    unsigned role;
    QsfQuantPolicy policy;
} table[] = {
    { 0, { 2, 2, 1.0 } },  /* Q */
    { 1, { 2, 2, 1.0 } },  /* K */
    { 2, { 3, 4, 2.0 } },  /* V */
    { 3, { 2, 2, 1.5 } },  /* attention output */
    { 4, { 2, 2, 1.0 } },  /* gate */
    { 5, { 2, 2, 1.0 } },  /* up */
    { 6, { 3, 4, 2.0 } },  /* down */
    { 23, { 2, 2, 1.0 } }, /* gate, up and down of experts: each sees few tokens */
    { 24, { 2, 2, 1.0 } },
    { 25, { 2, 3, 1.5 } },
    { 26, { 4, 4, 2.0 } }, /* head */
    { QSF_ROLE_EMBEDDING, { 4, 4, 1.0 } },
};

static uint8_t at_least(uint8_t bits, uint8_t least) { return bits > least ? bits : least; }

QsfQuantPolicy qsf_quant_policy(unsigned role, uint32_t layer, uint32_t n_layers) {
    QsfQuantPolicy p = { UNQUANTIZED, UNQUANTIZED, 1 };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].role == role) p = table[i].policy;
    const int outer = layer < n_layers && (layer == 0 || layer == n_layers - 1);
    if (p.floor >= UNQUANTIZED || role == QSF_ROLE_EMBEDDING || !outer) return p;
    return (QsfQuantPolicy){ at_least(p.floor, END_FLOOR), at_least(p.start, END_START),
                             END_WEIGHT * p.weight };
}

size_t qsf_quant_climb(const QsfQuantRung *rungs, size_t n, unsigned start, int many_outliers,
                       QsfStepUp *why) {
    size_t i = 0;
    *why = QSF_BUMP_NONE;
    while (i + 1 < n && rungs[i].bits < start) i++;
    for (; many_outliers && i + 1 < n && rungs[i].bits < OUTLIER_BITS; i++) *why = QSF_BUMP_OUTLIERS;
    for (; i + 1 < n && !(rungs[i].cosine >= QSF_QUANT_COSINE); i++) *why = QSF_BUMP_COSINE;
    return i;
}

enum { EXCHANGES = 64 };

static bool allowed(const QsfAllocTensor *t, size_t i) { return t->allowed >> i & 1; }
static const QsfAllocOption *now(const QsfAllocTensor *t) { return &t->options[t->chosen]; }

static bool is_amount(double v) { return isfinite(v) && v >= 0; }

/* Returns the smallest option, or the best one of equal size. */
static int choose_least(QsfAllocTensor *t, QsfErr *err) {
    bool found = false;
    if (t->n > QSF_ALLOC_OPTIONS || !is_amount(t->weight))
        return qsf_err_set(err, QSF_E_RUNTIME, "%s: %zu formats to choose from, weight %g", t->name, t->n,
                           t->weight);
    for (size_t i = 0; i < t->n; i++) {
        const QsfAllocOption *o = &t->options[i];
        if (!allowed(t, i)) continue;
        if (!is_amount(o->error))
            return qsf_err_set(err, QSF_E_RUNTIME, "%s: the error of format %zu is %g", t->name, i, o->error);
        if (found && (o->bytes > now(t)->bytes || (o->bytes == now(t)->bytes && o->error >= now(t)->error)))
            continue;
        t->chosen = i;
        found = true;
    }
    return found ? QSF_OK : qsf_err_set(err, QSF_E_RUNTIME, "%s: no format is allowed", t->name);
}

/* A change of one tensor's option. */
typedef struct Step {
    size_t tensor, option;
    double gain; /* weighted error removed */
    double rate; /* per byte */
} Step;

/* Finds the best step of one tensor that needs at most `room` more bytes. */
static void best_step(const QsfAllocTensor *t, size_t tensor, uint64_t room, Step *best) {
    for (size_t i = 0; i < t->n; i++) {
        const QsfAllocOption *o = &t->options[i];
        const double gain = t->weight * (now(t)->error - o->error);
        if (!allowed(t, i) || !(gain > 0)) continue;
        const uint64_t more = o->bytes > now(t)->bytes ? o->bytes - now(t)->bytes : 0;
        if (more > room) continue;
        const double rate = more ? gain / (double)more : (double)INFINITY;
        if (rate > best->rate || (rate == best->rate && gain > best->gain))
            *best = (Step){ tensor, i, gain, rate };
    }
}

static void take(QsfAllocTensor *tensors, Step step, uint64_t *total) {
    QsfAllocTensor *t = &tensors[step.tensor];
    *total = *total - now(t)->bytes + t->options[step.option].bytes;
    t->chosen = step.option;
}

static void climb(QsfAllocTensor *tensors, size_t n, uint64_t target, uint64_t *total) {
    for (;;) {
        Step best = { 0, 0, 0, 0 };
        for (size_t i = 0; i < n; i++) best_step(&tensors[i], i, target - *total, &best);
        if (!(best.gain > 0)) return;
        take(tensors, best, total);
    }
}

/* Moves bytes from one tensor to another if that reduces the total error. Returns whether it found such a
 * pair. */
static bool exchange(QsfAllocTensor *tensors, size_t n, uint64_t target, uint64_t *total) {
    Step down = { 0, 0, 0, 0 }, up = { 0, 0, 0, 0 };
    double most = 0;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < tensors[k].n; i++) {
            const QsfAllocOption *o = &tensors[k].options[i];
            if (!allowed(&tensors[k], i) || o->bytes >= now(&tensors[k])->bytes) continue;
            const double loss = tensors[k].weight * (o->error - now(&tensors[k])->error);
            const uint64_t room = target - *total + (now(&tensors[k])->bytes - o->bytes);
            for (size_t m = 0; m < n; m++) {
                Step s = { 0, 0, 0, 0 };
                if (m != k) best_step(&tensors[m], m, room, &s);
                if (!(s.gain - loss > most * (1 + 1e-9))) continue;
                most = s.gain - loss;
                down = (Step){ k, i, 0, 0 };
                up = s;
            }
        }
    if (!(most > 0)) return false;
    take(tensors, down, total);
    take(tensors, up, total);
    return true;
}

int qsf_allocate(QsfAllocTensor *tensors, size_t n, uint64_t target, uint64_t *total, QsfErr *err) {
    *total = 0;
    for (size_t i = 0; i < n; i++) {
        const int rc = choose_least(&tensors[i], err);
        if (rc) return rc;
        if (!qsf_add_u64(*total, now(&tensors[i])->bytes, total))
            return qsf_err_set(err, QSF_E_RUNTIME, "the sizes of all tensors do not fit 64 bits");
    }
    if (*total > target)
        return qsf_err_set(err, QSF_E_USAGE, "%llu bytes are too few: the weights need at least %llu",
                           (unsigned long long)target, (unsigned long long)*total);
    climb(tensors, n, target, total);
    for (int i = 0; i < EXCHANGES && exchange(tensors, n, target, total); i++)
        climb(tensors, n, target, total);
    return QSF_OK;
}
