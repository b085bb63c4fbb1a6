/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies the logits once into a clean, finite form, runs the chain on them, and draws. */
#include "src/sample/sampler.h"

#include <math.h>
#include <stdlib.h>

#include "src/sample/trace.h"

struct QsfSampler {
    QsfLedger *ledger;
    QsfRng rng;
    QsfChainMemory memory;
    uint64_t *work, *set; /* sets of tokens: allowed without rejected ones, and of the caller */
    QsfChain c; /* its buffers are those of the sampler: 16 bytes for each token of the vocabulary */
};

static uint64_t sampler_bytes(uint32_t n_vocab) {
    return (uint64_t)n_vocab * (2 * sizeof(float) + sizeof(qk_pick)) +
           2 * QSF_TOKEN_SET_WORDS(n_vocab) * sizeof(uint64_t);
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
    s->work = mem; /* first: their alignment is the largest */
    s->set = s->work + QSF_TOKEN_SET_WORDS(n_vocab);
    s->c = (QsfChain){ .table = table, .rng = &s->rng, .memory = &s->memory, .n_vocab = n_vocab };
    s->c.cand = (qk_pick *)(void *)(s->set + QSF_TOKEN_SET_WORDS(n_vocab));
    s->c.x = (float *)(s->c.cand + n_vocab);
    s->c.prob = s->c.x + n_vocab;
    qsf_rng_seed(&s->rng, 0);
    *out = s;
    return QSF_OK;
}

void qsf_sampler_destroy(QsfSampler *s) {
    if (s == NULL) return;
    qsf_mem_unmap(s->ledger, QSF_MEM_LOGITS, s->work, sampler_bytes(s->c.n_vocab));
    free(s);
}

void qsf_sampler_seed(QsfSampler *s, uint64_t seed) {
    qsf_rng_seed(&s->rng, seed);
    s->memory = (QsfChainMemory){ 0 };
}

static void begin(QsfChain *c, const QsfSamplerInput *in) {
    c->in = in;
    c->p = in->params;
    c->dense = true;
    c->sorted = c->removed = c->changed = c->best_known = false;
    c->n = c->n_vocab;
    c->temperature = 1;
    c->entropy = -1;
    c->prob_temperature = 0;
    c->prob_by_id = false;
    c->share = 1;
    c->applied = 0;
    c->u = -1;
    c->table->clamp(c->x, in->logits, c->n_vocab, QSF_LOGIT_LOWEST, -QSF_LOGIT_LOWEST);
}

/* Draws from all of the vocabulary; returns the logit of the token. */
static float draw_dense(QsfChain *c, QsfSample *out) {
    double total;
    qsf_chain_probabilities(c);
    const size_t chosen = c->table->draw(c->prob, c->n_vocab, c->u, &total);
    out->id = (int32_t)chosen;
    out->p = (float)((double)c->prob[chosen] / total);
    return c->x[chosen];
}

static float draw_long(QsfChain *c, QsfSample *out) {
    double total;
    (void)qsf_chain_soften(c);
    const size_t chosen = c->table->draw(c->x, c->n, c->u, &total);
    out->id = c->cand[chosen].id;
    out->p = (float)((double)c->x[chosen] / total);
    return c->cand[chosen].x;
}

/* Draws a candidate. The weights overwrite the logits, which are no longer needed, and probabilities, unless
 * those are: then weights are computed twice. */
static float draw_list(QsfChain *c, QsfSample *out) {
    const double max = (double)qsf_chain_max(c);
    const bool keeps = c->prob_by_id && c->n > c->n_vocab / 2;
    double total = 0, sum = 0, w = 0, *weight = (double *)(void *)c->x;
    size_t chosen = 0;
    for (size_t i = 0; i < c->n; i++) {
        w = exp(((double)c->cand[i].x - max) / c->temperature);
        if (!keeps) weight[i] = w;
        total += w;
    }
    if (c->n > c->n_vocab / 2) c->prob_temperature = 0;
    const double target = c->u * total;
    for (size_t i = 0; i < c->n; i++) {
        const double one = keeps ? exp(((double)c->cand[i].x - max) / c->temperature) : weight[i];
        if (!(one > 0)) continue;
        chosen = i;
        w = one;
        sum += w;
        if (sum > target) break;
    }
    out->id = c->cand[chosen].id;
    out->p = (float)(w / total);
    return c->cand[chosen].x;
}

/* At temperature 0, and with `least`, there is nothing to draw, and no random number is used. Returns the
 * logit of the token. */
static float choose(QsfChain *c, QsfSample *out) {
    const bool decided = c->n == 1 && !c->dense && (!(c->p->temperature > 0) || c->p->least > 0);
    *out = (QsfSample){ .id = c->cand[0].id, .p = 1, .kept = c->n };
    if (decided) return c->cand[0].x;
    c->u = qsf_rng_unit(c->rng);
    if (c->dense) return draw_dense(c, out);
    return qsf_chain_is_long(c) ? draw_long(c, out) : draw_list(c, out);
}

uint64_t *qsf_sampler_set(QsfSampler *s) { return s->set; }

static int choose_one(QsfChain *c, const QsfSamplerInput *in, int32_t also, QsfSample *out, QsfErr *err) {
    begin(c, in);
    if (in->why != NULL) qsf_trace_begin(c, in->why, in->n_why, also);
    if (!qsf_chain_run(c) || !(choose(c, out) > QSF_LOGIT_LOWEST))
        return qsf_err_set(err, QSF_E_RUNTIME, "no token of the vocabulary is allowed here");
    if (in->why != NULL) in->why->id = out->id;
    if (in->why != NULL) in->why->random = c->u;
    return QSF_OK;
}

/* Chooses, and again, with the same numbers, if `why` lacks the token. */
static int choose_why(QsfSampler *s, const QsfSamplerInput *in, QsfSample *out, QsfErr *err) {
    const QsfRng rng = s->rng;
    const QsfChainMemory memory = s->memory;
    int rc = choose_one(&s->c, in, -1, out, err);
    if (rc != QSF_OK || in->why == NULL || qsf_trace_has(in->why, out->id)) return rc;
    s->rng = rng;
    s->memory = memory;
    return choose_one(&s->c, in, out->id, out, err);
}

/* The set of allowed tokens becomes one of its own, without this one. */
static void reject(QsfSampler *s, const QsfSamplerInput *in, int32_t id) {
    const size_t words = QSF_TOKEN_SET_WORDS(s->c.n_vocab);
    for (size_t i = 0; s->c.allowed != s->work && i < words; i++)
        s->work[i] = in->allowed != NULL ? in->allowed[i] : UINT64_MAX;
    s->c.allowed = s->work;
    s->work[id / 64] &= ~((uint64_t)1 << (id % 64));
}

int qsf_sampler_next(QsfSampler *s, const QsfSamplerInput *in, QsfSample *out, QsfErr *err) {
    QsfChain *c = &s->c;
    c->allowed = in->allowed;
    int rc = choose_why(s, in, out, err);
    while (rc == QSF_OK && in->rejects != NULL && in->rejects(in->arg, out->id)) {
        reject(s, in, out->id);
        rc = choose_why(s, in, out, err);
    }
    if (rc != QSF_OK) return rc;
    qsf_chain_drawn(c, out);
    out->entropy = c->entropy > 0 ? c->entropy : 0;
    out->plain = c->changed || c->prob_temperature != 1.0f ? -1 : qsf_bits(c->nats);
    return QSF_OK;
}

void qsf_sampler_look(QsfSampler *s, const float *logits, int32_t id, float plain, uint32_t n,
                      QSFToken *out) {
    QsfChain *c = &s->c;
    *out = (QSFToken){ .id = id, .entropy = plain };
    if (plain < 0) out->entropy = qsf_bits(c->table->softmax_t(c->prob, logits, c->n_vocab, 1.0f));
    if (id >= 0 && (uint32_t)id < c->n_vocab) out->p = c->prob[id];
    out->n = (uint32_t)c->table->top_k(c->cand, logits, c->n_vocab, n);
    for (uint32_t i = 0; i < out->n; i++)
        out->top[i] = (QSFCandidate){ .id = (int32_t)c->cand[i].id, .p = c->prob[c->cand[i].id] };
}
