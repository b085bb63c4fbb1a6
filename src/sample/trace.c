/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Records what each stage made of the likeliest tokens. */
#include "src/sample/trace.h"

#include <math.h>
#include <string.h>

static int place_of(const QSFWhy *w, int32_t id) {
    for (uint32_t i = 0; i < w->n; i++)
        if (w->candidate[i] == id) return (int)i;
    return -1;
}

void qsf_trace_begin(QsfChain *c, QSFWhy *w, uint32_t n, int32_t also) {
    qk_pick top[QSF_WHY_TOKENS];
    memset(w, 0, sizeof *w);
    if (n >= QSF_WHY_TOKENS) n = QSF_WHY_TOKENS - 1;
    w->n = (uint32_t)c->table->top_k(top, c->x, c->n_vocab, n);
    for (uint32_t i = 0; i < w->n; i++) w->candidate[i] = top[i].id;
    if (also >= 0 && place_of(w, also) < 0) w->candidate[w->n++] = also;
    qsf_chain_probabilities(c);
    for (uint32_t i = 0; i < w->n; i++) w->p[i] = c->prob[w->candidate[i]];
    w->entropy = qsf_bits(c->nats);
    w->n_vocab = c->n_vocab;
    w->decided = -1;
    w->random = -1;
}

static void put_dense(QsfChain *c, const QSFWhy *w, QSFWhyStage *s) {
    qsf_chain_probabilities(c);
    for (uint32_t i = 0; i < w->n; i++)
        s->p[i] = c->x[w->candidate[i]] > QSF_LOGIT_LOWEST ? c->prob[w->candidate[i]] : 0;
}

static void put_listed(QsfChain *c, const QSFWhy *w, QSFWhyStage *s) {
    const double max = (double)qsf_chain_max(c), total = qsf_chain_total(c);
    for (uint32_t i = 0; i < c->n; i++) {
        const int at = place_of(w, c->cand[i].id);
        if (at >= 0) s->p[at] = (float)(exp(((double)c->cand[i].x - max) / c->temperature) / total);
    }
}

void qsf_trace_stage(QsfChain *c, QSFWhy *w, const QsfStage *stage) {
    if (w->n_stages == QSF_WHY_STAGES) return;
    QSFWhyStage *s = &w->stage[w->n_stages++];
    *s = (QSFWhyStage){ .name = stage->name, .kept = c->n };
    if (c->n == 0) return;
    if (c->dense)
        put_dense(c, w, s);
    else
        put_listed(c, w, s);
    if (c->n == 1 && w->decided < 0) w->decided = (int32_t)w->n_stages - 1;
}

bool qsf_trace_has(const QSFWhy *w, int32_t id) { return place_of(w, id) >= 0; }

bool qsf_sampler_look_why(const QSFWhy *w, uint32_t n, QSFToken *out) {
    if (w->n_stages == 0 || w->n < n) return false;
    *out = (QSFToken){ .id = w->id, .entropy = w->entropy, .n = n };
    for (uint32_t i = 0; i < w->n; i++)
        if (w->candidate[i] == w->id) out->p = w->p[i];
    for (uint32_t i = 0; i < n; i++) out->top[i] = (QSFCandidate){ .id = w->candidate[i], .p = w->p[i] };
    return true;
}
