/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sources whose drafts are computed: by the model's own next-token blocks (src/forward/nextn.h), by those of
 * its layers that are in RAM while the others stream (src/forward/pinned.c), or by a draft model
 * (src/forward/draft_model.h). A token of a draft costs a block and the head, these layers and the head's
 * sketch, or a pass of that model, whether it is right or not. So drafts have the length that was right often
 * enough (length.h), and end where the source is not sure. */
#include <stdlib.h>

#include "src/forward/draft_model.h"
#include "src/forward/nextn.h"
#include "src/speculate/length.h"

typedef struct Source {
    QsfNextn *nextn; /* a source uses one of these three */
    QsfForward *fwd;
    QsfDraftModel *draft;
    QsfDraftLength length;
} Source;

static int open_source(void **state, const QsfDraftOpen *o, bool available, bool streams, QsfErr *err) {
    *state = NULL;
    if (!available) return QSF_OK;
    Source *s = malloc(sizeof *s);
    if (s == NULL) return qsf_err_memory(err, "speculation");
    *s = (Source){ .nextn = o->nextn, .fwd = o->fwd, .draft = o->draft };
    qsf_draft_length_init(&s->length, streams);
    *state = s;
    return QSF_OK;
}

static void close_source(void *state, QsfLedger *ledger) {
    (void)ledger;
    free(state);
}

/* Notes a draft of n tokens, and returns n. margin: by how much the logit of the first one exceeds the
 * others. */
static uint32_t proposed(Source *s, const QsfDraftView *v, const int32_t *out, uint32_t n, float margin,
                         unsigned *grade) {
    qsf_draft_length_note(&s->length, v, out, n);
    *grade = qsf_draft_margin_grade(margin);
    return n;
}

/* ---- next-token blocks ---- */

static int open_nextn(void **state, const QsfDraftOpen *o, QsfErr *err) {
    return open_source(state, o, o->nextn != NULL, qsf_plan_streams(o->plan), err);
}

static void prepare_nextn(void *state, const QsfDraftView *v) {
    const Source *s = state;
    (void)v;
    qsf_nextn_prepare(s->nextn);
}

static uint32_t propose_nextn(void *state, const QsfDraftView *v, uint32_t max, int32_t *out,
                              unsigned *grade) {
    Source *s = state;
    float margin = 0;
    const uint32_t want = qsf_draft_length_next(&s->length, v, max);
    if (v->n == 0 || !qsf_nextn_ready(s->nextn, NULL)) return 0;
    const uint32_t n = qsf_nextn_draft(s->nextn, v->ids[v->n - 1], want, QSF_DRAFT_CERTAIN, out, &margin);
    return proposed(s, v, out, n, margin, grade);
}

_Static_assert(QSF_DRAFT_MOST <= QSF_NEXTN_DRAFTS, "a block can draft as much as a pass has room for");

const QsfDraftSource qsf_draft_nextn = { .drafting = QSF_DRAFTING_NEXTN,
                                         .open = open_nextn,
                                         .close = close_source,
                                         .prepare = prepare_nextn,
                                         .propose = propose_nextn };

/* ---- layers in RAM ---- */

static int open_pinned(void **state, const QsfDraftOpen *o, QsfErr *err) {
    return open_source(state, o, o->plan->holds, true, err);
}

static uint32_t propose_pinned(void *state, const QsfDraftView *v, uint32_t max, int32_t *out,
                               unsigned *grade) {
    Source *s = state;
    float margin = 0;
    const uint32_t want = qsf_draft_length_next(&s->length, v, max);
    if (!qsf_forward_drafts(s->fwd, NULL)) return 0;
    const uint32_t n = qsf_forward_draft(s->fwd, v->ids[v->n - 1], want, QSF_DRAFT_CERTAIN, out, &margin);
    return proposed(s, v, out, n, margin, grade);
}

const QsfDraftSource qsf_draft_pinned = {
    .drafting = QSF_DRAFTING_PINNED, .open = open_pinned, .close = close_source, .propose = propose_pinned
};

/* ---- a draft model ---- */

static int open_draft(void **state, const QsfDraftOpen *o, QsfErr *err) {
    return open_source(state, o, o->draft != NULL, qsf_plan_streams(o->plan), err);
}

/* The last token is evaluated with the draft. Where that fails, so does the draft. */
static void prepare_draft(void *state, const QsfDraftView *v) {
    const Source *s = state;
    QsfErr none = { 0 };
    if (v->n > 1) (void)qsf_draft_model_follow(s->draft, v->ids, v->n - 1, &none);
}

static uint32_t propose_draft(void *state, const QsfDraftView *v, uint32_t max, int32_t *out,
                              unsigned *grade) {
    Source *s = state;
    float margin = 0;
    const uint32_t want = qsf_draft_length_next(&s->length, v, max);
    const uint32_t n = qsf_draft_model_draft(s->draft, v->ids, v->n, want, QSF_DRAFT_CERTAIN, out, &margin);
    return proposed(s, v, out, n, margin, grade);
}

static void cut_draft(void *state, uint32_t n) {
    const Source *s = state;
    qsf_draft_model_cut(s->draft, n);
}

_Static_assert(QSF_DRAFT_MOST <= QSF_DRAFT_MODEL_TOKENS, "it can draft as much as a pass has room for");

const QsfDraftSource qsf_draft_model = { .drafting = QSF_DRAFTING_DRAFT,
                                         .open = open_draft,
                                         .close = close_source,
                                         .prepare = prepare_draft,
                                         .propose = propose_draft,
                                         .cut = cut_draft };
