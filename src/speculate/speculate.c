/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/speculate/speculate.h"

#include <stdio.h>

#include "src/base/clock.h"

const QsfDraftSource *const qsf_draft_sources[QSF_DRAFT_SOURCES] = { &qsf_draft_lookup, &qsf_draft_nextn,
                                                                     &qsf_draft_pinned, &qsf_draft_model };

static void close_sources(QsfSpeculator *s) {
    for (unsigned i = 0; i < QSF_DRAFT_SOURCES; i++) {
        if (s->state[i] != NULL) qsf_draft_sources[i]->close(s->state[i], s->ledger);
        s->state[i] = NULL;
    }
}

static bool is_wanted(const QsfSpeculator *s, const QsfDraftSource *source) {
    return s->cols > 1 && (s->drafting == QSF_DRAFTING_AUTO || s->drafting == source->drafting);
}

static void open_sources(QsfSpeculator *s, const QsfDraftOpen *o) {
    for (unsigned i = 0; i < QSF_DRAFT_SOURCES; i++) {
        const QsfDraftSource *source = qsf_draft_sources[i];
        QsfErr none = { 0 };
        if (is_wanted(s, source) && s->state[i] == NULL && source->open(&s->state[i], o, &none) != QSF_OK)
            s->state[i] = NULL;
    }
}

static bool is_same(const QsfSpeculator *s, const QsfPlan *p, QsfDrafting drafting) {
    return s->cols == p->draft_cols && s->lookup_tokens == p->lookup_tokens && s->drafting == drafting;
}

void qsf_speculate_plan(QsfSpeculator *s, const QsfDraftOpen *o, QsfDrafting drafting) {
    const bool streams = qsf_plan_streams(o->plan);
    s->ledger = o->ledger;
    if (!is_same(s, o->plan, drafting)) close_sources(s);
    s->cols = o->plan->draft_cols;
    atomic_store(&s->width, s->cols);
    s->lookup_tokens = o->plan->lookup_tokens;
    s->drafting = drafting;
    s->prompted = true;
    qsf_draft_control_init(&s->control, streams); /* other weights may stream now */
    open_sources(s, o);
}

void qsf_speculate_shrink(QsfSpeculator *s, const QsfPlan *p) {
    if (p->lookup_tokens >= s->lookup_tokens && p->draft_cols >= s->cols) return;
    close_sources(s);
    s->cols = s->lookup_tokens = 0;
}

void qsf_speculate_close(QsfSpeculator *s) {
    close_sources(s);
    s->cols = s->lookup_tokens = 0;
}

void qsf_speculate_cut(QsfSpeculator *s, uint32_t n) {
    s->prompted = true;
    for (unsigned i = 0; i < QSF_DRAFT_SOURCES; i++)
        if (s->state[i] != NULL && qsf_draft_sources[i]->cut != NULL)
            qsf_draft_sources[i]->cut(s->state[i], n);
}

/* Does a source after this one usually gain more? It costs time to ask it. */
static bool later_is_better(const QsfSpeculator *s, unsigned source, double gain) {
    for (unsigned i = source + 1; i < QSF_DRAFT_SOURCES; i++)
        if (s->state[i] != NULL && s->control.yield[i] > gain) return true;
    return false;
}

/* The first source that has something to say, unless another one is better. A source that was named is
 * believed. */
static void propose(QsfSpeculator *s, const QsfDraftView *v, uint32_t most, QsfDraft *d) {
    for (unsigned i = 0; i < QSF_DRAFT_SOURCES && d->n == 0; i++) {
        double gain;
        if (s->state[i] == NULL) continue;
        d->source = i;
        d->n = qsf_draft_sources[i]->propose(s->state[i], v, most, d->ids + 1, &d->grade);
        if (d->n == 0 || s->drafting != QSF_DRAFTING_AUTO) continue;
        d->n = qsf_draft_control_width(&s->control, i, d->grade, d->n, &gain);
        if (d->n > 0 && later_is_better(s, i, gain)) d->n = 0;
    }
}

static void prepare(QsfSpeculator *s, const QsfDraftView *v) {
    for (unsigned i = 0; s->prompted && i < QSF_DRAFT_SOURCES; i++)
        if (s->state[i] != NULL && qsf_draft_sources[i]->prepare != NULL)
            qsf_draft_sources[i]->prepare(s->state[i], v);
    s->prompted = false;
}

static bool has_source(const QsfSpeculator *s) {
    for (unsigned i = 0; i < QSF_DRAFT_SOURCES; i++)
        if (s->state[i] != NULL) return true;
    return false;
}

void qsf_speculate_begin(QsfSpeculator *s, const QsfDraftView *v, uint32_t most, const char *why,
                         QsfDraft *d) {
    d->ids[0] = v->ids[v->n - 1];
    d->n = 0;
    d->source = d->grade = 0;
    d->begun_ns = d->proposed_ns = qsf_now_ns();
    if (s->drafting == QSF_DRAFTING_OFF)
        why = "it is off";
    else if (s->cols < 2)
        why = "the plan has no memory for it";
    else if (!has_source(s))
        why = "the source that is set is not there";
    else if (why == NULL && s->drafting == QSF_DRAFTING_AUTO && !qsf_draft_control_tries(&s->control))
        why = s->control.lost > 0 ? "drafts did not pay; they are tried again later"
                                  : "single tokens are measured first";
    atomic_store_explicit(&s->why, why, memory_order_relaxed);
    if (why != NULL) return;
    if (most > QSF_DRAFT_MOST) most = QSF_DRAFT_MOST;
    if (most > 0) prepare(s, v);
    d->begun_ns = qsf_now_ns();
    if (most > 0) propose(s, v, most, d);
    d->proposed_ns = qsf_now_ns();
}

static void count(atomic_uint_fast64_t *c, uint64_t n) {
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

void qsf_speculate_end(QsfSpeculator *s, const QsfDraftView *v, const QsfDraft *d, uint32_t accepted) {
    const uint64_t now = qsf_now_ns();
    QsfDraftCounts *c = &s->counts;
    count(&c->passes, 1);
    count(&c->tokens, accepted + 1);
    for (uint32_t i = 0; i < d->n; i++) count(&c->drafted[d->source][i], 1);
    for (uint32_t i = 0; i < accepted; i++) count(&c->accepted[d->source][i], 1);
    qsf_draft_control_note(&s->control, d->source, d->grade, d->n, accepted, (double)(now - d->proposed_ns),
                           (double)(d->proposed_ns - d->begun_ns));
    for (unsigned i = 0; i < QSF_DRAFT_SOURCES; i++)
        if (s->state[i] != NULL && qsf_draft_sources[i]->accepted != NULL)
            qsf_draft_sources[i]->accepted(s->state[i], v, i == d->source ? accepted : 0);
}

void qsf_speculate_reset_counts(QsfSpeculator *s) {
    QsfDraftCounts *c = &s->counts;
    atomic_store(&c->passes, 0);
    atomic_store(&c->tokens, 0);
    for (unsigned i = 0; i < QSF_DRAFT_SOURCES; i++)
        for (unsigned k = 0; k < QSF_DRAFT_MOST; k++) {
            atomic_store(&c->drafted[i][k], 0);
            atomic_store(&c->accepted[i][k], 0);
        }
}

void qsf_speculate_info(const QsfSpeculator *s, QSFSpeculation *out) {
    const QsfDraftCounts *c = &s->counts;
    *out = (QSFSpeculation){ .width = atomic_load(&s->width),
                             .passes = atomic_load(&c->passes),
                             .tokens = atomic_load(&c->tokens),
                             .n_sources = QSF_DRAFT_SOURCES };
    _Static_assert(QSF_DRAFT_SOURCES <= QSF_SPECULATION_SOURCES &&
                       QSF_DRAFT_MOST <= QSF_SPECULATION_POSITIONS,
                   "the public arrays are large enough");
    const char *why = atomic_load(&s->why);
    if (why != NULL) (void)snprintf(out->why, sizeof out->why, "%s", why);
    for (unsigned i = 0; i < QSF_DRAFT_SOURCES; i++) {
        QSFDraftedBy *by = &out->source[i];
        (void)snprintf(by->name, sizeof by->name, "%s", qsf_drafting_name(qsf_draft_sources[i]->drafting));
        for (unsigned k = 0; k < QSF_DRAFT_MOST; k++) {
            by->drafted[k] = atomic_load(&c->drafted[i][k]);
            by->accepted[k] = atomic_load(&c->accepted[i][k]);
        }
    }
}
