/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of chain.h, and the walk through the stages. What passes over the whole vocabulary is a kernel;
 * only the members of a list are ever exponentiated in double. */
#include "src/sample/chain.h"

#include "src/sample/trace.h"

#include <math.h>

/* The default order. That of the stages that QSFParams.samplers can arrange is the one of
 * ggml-org/llama.cpp. */
const QsfStage *const qsf_sampler_stages[] = {
    &qsf_stage_logit_bias,  &qsf_stage_constraints, &qsf_stage_penalties,   &qsf_stage_dry,
    &qsf_stage_top_n_sigma, &qsf_stage_top_k,       &qsf_stage_typical,     &qsf_stage_top_p,
    &qsf_stage_min_p,       &qsf_stage_xtc,         &qsf_stage_temperature, &qsf_stage_least,
    &qsf_stage_mirostat,    &qsf_stage_adaptive_p,
};
const size_t qsf_n_sampler_stages = sizeof qsf_sampler_stages / sizeof *qsf_sampler_stages;
_Static_assert(sizeof qsf_sampler_stages / sizeof *qsf_sampler_stages <= QSF_SAMPLERS_MAX,
               "QSFParams.samplers has room for all");

float qsf_bits(float nats) { return nats > 0 ? nats / 0.693147181f : 0.0f; }

/* Below it, 1 / temperature would overflow; it equals argmax already. */
#define COLDEST 1e-6f

float qsf_chain_warm(float temperature) { return temperature < COLDEST ? COLDEST : temperature; }

float qsf_logit_clean(float v) {
    if (!(v > QSF_LOGIT_LOWEST)) return QSF_LOGIT_LOWEST;
    return v < -QSF_LOGIT_LOWEST ? v : -QSF_LOGIT_LOWEST;
}

static size_t best_of_list(const QsfChain *c) {
    size_t best = 0;
    for (size_t i = 1; i < c->n; i++) {
        const qk_pick a = c->cand[i], b = c->cand[best];
        if (a.x > b.x || (!(a.x < b.x) && a.id < b.id)) best = i;
    }
    return best;
}

size_t qsf_chain_best(QsfChain *c) {
    if (!c->best_known) c->best = c->dense ? c->table->argmax(c->x, c->n_vocab) : best_of_list(c);
    c->best_known = true;
    return c->best;
}

float qsf_chain_max(QsfChain *c) {
    const size_t best = qsf_chain_best(c);
    return c->dense ? c->x[best] : c->cand[best].x;
}

void qsf_chain_probabilities(QsfChain *c) {
    const float t = (float)c->temperature;
    if (c->prob_temperature == t) return;
    c->nats = c->table->softmax_t(c->prob, c->x, c->n_vocab, t);
    c->prob_temperature = t;
}

/* Shorter lists, to which those of the default settings belong, take less time than what a kernel saves. */
#define LONG_LIST 4096u

bool qsf_chain_is_long(const QsfChain *c) { return !c->dense && c->n > LONG_LIST; }

double qsf_chain_soften(QsfChain *c) {
    for (size_t i = 0; i < c->n; i++) c->x[i] = c->cand[i].x;
    return (double)c->table->softmax_t(c->x, c->x, c->n, (float)c->temperature);
}

double qsf_chain_total(QsfChain *c) {
    const double max = (double)qsf_chain_max(c);
    double total = 0;
    if (c->dense) {
        qsf_chain_probabilities(c);
        return 1.0 / (double)c->prob[c->best];
    }
    if (qsf_chain_is_long(c)) {
        (void)qsf_chain_soften(c);
        return 1.0 / (double)c->x[c->best];
    }
    for (size_t i = 0; i < c->n; i++) total += exp(((double)c->cand[i].x - max) / c->temperature);
    return total;
}

float qsf_chain_logit_of(QsfChain *c, double p) {
    return qsf_chain_max(c) + (float)(c->temperature * log(p * qsf_chain_total(c)));
}

double qsf_chain_entropy(QsfChain *c) {
    if (c->dense) {
        qsf_chain_probabilities(c);
        return (double)c->nats;
    }
    if (qsf_chain_is_long(c)) return qsf_chain_soften(c);
    const double max = (double)qsf_chain_max(c);
    double total = 0, sum = 0;
    for (size_t i = 0; i < c->n; i++) {
        const double d = ((double)c->cand[i].x - max) / c->temperature, w = exp(d);
        total += w;
        sum += w * d;
    }
    return log(total) - sum / total;
}

void qsf_chain_forbid(QsfChain *c, size_t id) {
    c->n -= c->x[id] > QSF_LOGIT_LOWEST;
    c->x[id] = QSF_LOGIT_LOWEST;
    c->removed = true;
}

void qsf_chain_keep_one(QsfChain *c, size_t i) {
    c->cand[0] = c->dense ? (qk_pick){ c->x[i], (int32_t)i } : c->cand[i];
    qsf_chain_adopt(c, 1);
}

void qsf_chain_changed(QsfChain *c) {
    c->changed = true;
    c->best_known = false;
    c->prob_temperature = 0;
}

void qsf_chain_adopt(QsfChain *c, size_t n) {
    size_t kept = 0;
    c->dense = c->sorted = c->best_known = false;
    for (size_t i = 0; c->removed && i < n; i++)
        if (c->cand[i].x > QSF_LOGIT_LOWEST) c->cand[kept++] = c->cand[i];
    c->n = (uint32_t)(c->removed ? kept : n);
}

qk_pick *qsf_chain_scratch(QsfChain *c) {
    c->prob_temperature = 0;
    return (qk_pick *)(void *)c->x;
}

void qsf_chain_at_least(QsfChain *c, float limit) {
    const float max = qsf_chain_max(c);
    const bool sorted = !c->dense && c->sorted;
    size_t kept = 0;
    if (!(limit < max)) limit = max;
    if (c->dense) kept = c->table->at_least(c->cand, c->x, c->n_vocab, limit);
    for (size_t i = 0; !c->dense && i < c->n; i++)
        if (c->cand[i].x >= limit) c->cand[kept++] = c->cand[i];
    qsf_chain_adopt(c, kept);
    c->sorted = sorted;
}

static bool is_named(const QSFParams *p, size_t stage) {
    for (size_t i = 0; i < sizeof p->samplers; i++)
        if (p->samplers[i] == stage + 1) return true;
    return false;
}

static size_t first_movable(void) {
    size_t i = 0;
    while (qsf_sampler_stages[i]->flags & QSF_STAGE_FIXED) i++;
    return i;
}

/* Numbers of all stages in their order into out (QSF_SAMPLERS_MAX); returns how many. */
static size_t order(const QSFParams *p, uint8_t *out) {
    const size_t first = first_movable();
    size_t n = 0;
    for (size_t i = 0; i < first; i++) out[n++] = (uint8_t)i;
    for (size_t i = 0; i < sizeof p->samplers && p->samplers[i] > 0; i++) {
        const size_t stage = p->samplers[i] - 1u;
        if (stage < qsf_n_sampler_stages && !(qsf_sampler_stages[stage]->flags & QSF_STAGE_FIXED) &&
            n < QSF_SAMPLERS_MAX)
            out[n++] = (uint8_t)stage;
    }
    for (size_t i = first; i < qsf_n_sampler_stages && n < QSF_SAMPLERS_MAX; i++)
        if (p->samplers[0] == 0 || (qsf_sampler_stages[i]->flags & QSF_STAGE_FIXED)) out[n++] = (uint8_t)i;
    return n;
}

/* Is it certain that the likeliest of the candidates will be chosen? */
static bool is_greedy(const QSFParams *p) {
    size_t t = 0;
    while (qsf_sampler_stages[t] != &qsf_stage_temperature) t++;
    return !(p->temperature > 0) && !(p->least > 0) && (p->samplers[0] == 0 || is_named(p, t));
}

/* Before the first stage that is not only about logits. */
static void note_entropy(QsfChain *c) {
    if (c->entropy >= 0 || !(c->p->temperature > 0) || !c->dense) return;
    const double so_far = c->temperature;
    c->temperature = (double)qsf_chain_warm(c->p->temperature);
    qsf_chain_probabilities(c);
    c->temperature = so_far;
    c->entropy = qsf_bits(c->nats);
}

static bool skips(const QSFParams *p, const QsfStage *s, bool greedy) {
    if (p->mirostat > 0 && (s->flags & QSF_STAGE_TRUNCATES)) return true;
    return greedy && (s->flags & QSF_STAGE_KEEPS_BEST) && s != &qsf_stage_temperature;
}

void qsf_chain_drawn(QsfChain *c, const QsfSample *s) {
    for (size_t i = 0; i < qsf_n_sampler_stages; i++)
        if ((c->applied >> i & 1) && qsf_sampler_stages[i]->drawn != NULL) qsf_sampler_stages[i]->drawn(c, s);
}

bool qsf_chain_run(QsfChain *c) {
    const bool greedy = is_greedy(c->p);
    uint8_t stages[QSF_SAMPLERS_MAX];
    const size_t n = order(c->p, stages);
    for (size_t i = 0; i < n; i++) {
        const QsfStage *s = qsf_sampler_stages[stages[i]];
        if (skips(c->p, s, greedy) || !s->on(c)) continue;
        c->applied |= (uint32_t)1 << stages[i];
        if (!(s->flags & QSF_STAGE_LOGITS)) note_entropy(c);
        s->apply(c);
        if (c->in->why != NULL) qsf_trace_stage(c, c->in->why, s);
        if (c->n == 0) return false;
    }
    note_entropy(c);
    return c->n > 0;
}
