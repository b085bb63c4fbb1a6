/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chain of sampler.h. The logits are copied once into a clean, finite form; the filters then narrow a
 * list of candidates, and only its members are ever exponentiated in double. What passes over the whole
 * vocabulary is a kernel. */
#include "src/sample/sampler.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/sample/rng.h"

#define LOWEST (-1e30f) /* logit of tokens that cannot be chosen; finite, so that differences are not NaN */
#define COLDEST \
    1e-6f /* minimum temperature: below it, 1 / temperature would overflow; equals argmax
             already */

struct QsfSampler {
    QsfLedger *ledger;
    const qk_table *table;
    QsfRng rng;
    uint32_t n;
    float max;     /* largest of x */
    float nats;    /* entropy of p, if that is softmax(x) at temperature 1; -1 = it is not */
    size_t best;   /* its index */
    qk_pick *cand; /* (n) */
    float *x;      /* (n) logits after the penalty; p follows them in memory, 8 bytes per token in all */
    float *p;      /* (n) scratch: probabilities */
};

static uint64_t sampler_bytes(uint32_t n_vocab) {
    return (uint64_t)n_vocab * (2 * sizeof(float) + sizeof(qk_pick));
}

int qsf_sampler_create(QsfSampler **out, uint32_t n_vocab, const qk_table *table, QsfLedger *ledger,
                       QsfErr *err) {
    *out = NULL;
    if (n_vocab == 0) return qsf_err_set(err, QSF_E_MODEL, "cannot sample: the vocabulary is empty");
    QsfSampler *s = calloc(1, sizeof *s);
    if (s == NULL) return qsf_err_memory(err, "the sampler");
    void *mem;
    int rc = qsf_mem_map(ledger, QSF_MEM_LOGITS, sampler_bytes(n_vocab), "the sampler's candidates", &mem,
                         err);
    if (rc != QSF_OK) {
        free(s);
        return rc;
    }
    s->ledger = ledger;
    s->table = table;
    s->n = n_vocab;
    s->cand = mem;
    s->x = (float *)(s->cand + n_vocab);
    s->p = s->x + n_vocab;
    qsf_rng_seed(&s->rng, 0);
    *out = s;
    return QSF_OK;
}

void qsf_sampler_destroy(QsfSampler *s) {
    if (s == NULL) return;
    qsf_mem_unmap(s->ledger, QSF_MEM_LOGITS, s->cand, sampler_bytes(s->n));
    free(s);
}

void qsf_sampler_seed(QsfSampler *s, uint64_t seed) { qsf_rng_seed(&s->rng, seed); }

/* NaN, which compares false with everything, becomes LOWEST. */
static float clean(float v) {
    if (!(v > LOWEST)) return LOWEST;
    return v < -LOWEST ? v : -LOWEST;
}

/* Penalizes each id once, however often it occurs, because the new value is computed from the
 * original logit. */
static void penalize(QsfSampler *s, const float *logits, float penalty, const int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= s->n) continue;
        float v = logits[ids[i]];
        s->x[ids[i]] = clean(v > 0 ? v / penalty : v * penalty);
    }
}

static void prepare(QsfSampler *s, const float *logits, const QSFParams *p, const int32_t *recent,
                    size_t n_recent, const int32_t *banned, size_t n_banned) {
    s->table->clamp(s->x, logits, s->n, LOWEST, -LOWEST);
    size_t back = p->repeat_last_n < 0 || (size_t)p->repeat_last_n > n_recent ? n_recent
                                                                              : (size_t)p->repeat_last_n;
    if (p->repeat_penalty > 0 && p->repeat_penalty != 1.0f)
        penalize(s, logits, p->repeat_penalty, recent + (n_recent - back), back);
    for (size_t i = 0; i < n_banned; i++)
        if (banned[i] >= 0 && (uint32_t)banned[i] < s->n) s->x[banned[i]] = LOWEST;
}

/* Draws from p over the whole vocabulary. */
static void draw_dense(QsfSampler *s, double u, QsfSample *out) {
    double total;
    size_t chosen = s->table->draw(s->p, s->n, u, &total);
    out->id = (int32_t)chosen;
    out->p = (float)((double)s->p[chosen] / total);
    out->kept = s->n;
}

/* Returns the smallest number of leading candidates whose weight reaches top_p of total (in units of exp(x -
 * max)). All candidates before `sure` are kept; `sure` and those after it must be sorted. */
static size_t cut_top_p(const QsfSampler *s, size_t sure, size_t n, double top_p, double total) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += exp((double)s->cand[i].x - (double)s->max);
        if (i >= sure && sum >= top_p * total) return i + 1;
    }
    return n;
}

static size_t cut_min_p(QsfSampler *s, size_t n, float limit) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (s->cand[i].x >= limit) s->cand[kept++] = s->cand[i];
    return kept;
}

static double total_weight(const QsfSampler *s, size_t n) {
    double total = 0;
    for (size_t i = 0; i < n; i++) total += exp((double)s->cand[i].x - (double)s->max);
    return total;
}

/* p is softmax(x / temperature). */
static size_t nucleus(QsfSampler *s, double top_p, float temperature) {
    size_t sure;
    if (temperature != 1.0f) s->nats = s->table->softmax_t(s->p, s->x, s->n, 1.0f);
    size_t n = s->table->top_p(s->cand, s->x, s->p, s->n, s->max, top_p, &sure);
    return cut_top_p(s, sure, n, top_p, 1.0 / (double)s->p[s->best]);
}

/* Applies top-k, top-p and min-p, at least one of which is on; returns the number of candidates. */
static size_t filter(QsfSampler *s, const QSFParams *p, float temperature) {
    size_t n = 0;
    float limit = p->min_p > 0 ? s->max + (float)log((double)p->min_p) : -INFINITY;
    bool top_p = p->top_p < 1.0f;
    if (p->top_k > 0 && (uint32_t)p->top_k < s->n) {
        n = s->table->top_k(s->cand, s->x, s->n, (size_t)p->top_k);
        if (top_p) n = cut_top_p(s, 0, n, (double)p->top_p, total_weight(s, n));
    } else if (top_p) {
        n = nucleus(s, (double)p->top_p, temperature);
    } else if (p->min_p > 0) {
        return s->table->at_least(s->cand, s->x, s->n, limit);
    }
    return p->min_p > 0 ? cut_min_p(s, n, limit) : n;
}

/* Draws a candidate. The weights overwrite the logits and probabilities, which are no longer needed. */
static void draw(QsfSampler *s, size_t n, double temperature, double u, QsfSample *out) {
    double total = 0, sum = 0, w = 0, *weight = (double *)(void *)s->x;
    for (size_t i = 0; i < n; i++) {
        weight[i] = exp(((double)s->cand[i].x - (double)s->max) / temperature);
        total += weight[i];
    }
    double target = u * total;
    for (size_t i = 0; i < n; i++) {
        if (!(weight[i] > 0)) continue;
        out->id = s->cand[i].id;
        w = weight[i];
        sum += w;
        if (sum > target) break;
    }
    out->p = (float)(w / total);
    out->kept = (uint32_t)n;
}

static float bits(float nats) { return nats > 0 ? nats / 0.693147181f : 0.0f; }

/* Filters and draws, at a temperature above 0. */
static void choose(QsfSampler *s, const QSFParams *p, QsfSample *out) {
    const float temperature = p->temperature < COLDEST ? COLDEST : p->temperature;
    s->max = s->x[s->best];
    const float nats = s->table->softmax_t(s->p, s->x, s->n, temperature);
    if (temperature == 1.0f) s->nats = nats;
    out->entropy = bits(nats);
    const double u = qsf_rng_unit(&s->rng);
    bool whole = (p->top_k <= 0 || (uint32_t)p->top_k >= s->n) && !(p->top_p < 1.0f) && !(p->min_p > 0);
    if (whole) {
        draw_dense(s, u, out);
        return;
    }
    draw(s, filter(s, p, temperature), (double)temperature, u, out);
    if (out->kept > s->n / 2) s->nats = -1; /* its weights have overwritten p */
}

void qsf_sampler_next(QsfSampler *s, const float *logits, const QSFParams *p, const int32_t *recent,
                      size_t n_recent, const int32_t *banned, size_t n_banned, QsfSample *out) {
    const bool changed = n_banned > 0 || (p->repeat_penalty > 0 && p->repeat_penalty != 1.0f);
    prepare(s, logits, p, recent, n_recent, banned, n_banned);
    s->best = s->table->argmax(s->x, s->n);
    s->nats = -1;
    *out = (QsfSample){ .id = (int32_t)s->best, .p = 1, .entropy = 0, .kept = 1 };
    if (p->temperature > 0) choose(s, p, out);
    out->plain = changed || s->nats < 0 ? -1 : bits(s->nats);
}

void qsf_sampler_look(QsfSampler *s, const float *logits, int32_t id, float plain, QSFToken *out) {
    *out = (QSFToken){ .id = id, .entropy = plain };
    if (plain < 0) out->entropy = bits(s->table->softmax_t(s->p, logits, s->n, 1.0f));
    if (id >= 0 && (uint32_t)id < s->n) out->p = s->p[id];
    out->n = (uint32_t)s->table->top_k(s->cand, logits, s->n, QSF_CANDIDATES);
    for (uint32_t i = 0; i < out->n; i++)
        out->top[i] = (QSFCandidate){ .id = (int32_t)s->cand[i].id, .p = s->p[s->cand[i].id] };
}
