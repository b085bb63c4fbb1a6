/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Drafts of a draft model (src/forward/draft_model.h). A token of a draft costs a pass of that model, so
 * drafts have the length that was right often enough (length.h), and end where it is not sure. */
#include <stdlib.h>

#include "src/forward/draft_model.h"
#include "src/speculate/length.h"

typedef struct Source {
    QsfDraftModel *x;
    QsfDraftLength length;
} Source;

static int open_source(void **state, const QsfDraftOpen *o, QsfErr *err) {
    *state = NULL;
    if (o->draft == NULL) return QSF_OK;
    Source *s = malloc(sizeof *s);
    if (s == NULL) return qsf_err_memory(err, "speculation");
    *s = (Source){ .x = o->draft };
    qsf_draft_length_init(&s->length, qsf_plan_streams(o->plan));
    *state = s;
    return QSF_OK;
}

static void close_source(void *state, QsfLedger *ledger) {
    (void)ledger;
    free(state);
}

/* The last token is evaluated with the draft. Where that fails, so does the draft. */
static void prepare(void *state, const QsfDraftView *v) {
    const Source *s = state;
    QsfErr none = { 0 };
    if (v->n > 1) (void)qsf_draft_model_follow(s->x, v->ids, v->n - 1, &none);
}

static uint32_t propose(void *state, const QsfDraftView *v, uint32_t max, int32_t *out, unsigned *grade) {
    Source *s = state;
    float margin = 0;
    const uint32_t want = qsf_draft_length_next(&s->length, v, max),
                   n = qsf_draft_model_draft(s->x, v->ids, v->n, want, QSF_DRAFT_CERTAIN, out, &margin);
    qsf_draft_length_note(&s->length, v, out, n);
    *grade = qsf_draft_margin_grade(margin);
    return n;
}

static void cut(void *state, uint32_t n) {
    const Source *s = state;
    qsf_draft_model_cut(s->x, n);
}

_Static_assert(QSF_DRAFT_MOST <= QSF_DRAFT_MODEL_TOKENS, "it can draft as much as a pass has room for");

const QsfDraftSource qsf_draft_model = { .drafting = QSF_DRAFTING_DRAFT,
                                         .open = open_source,
                                         .close = close_source,
                                         .prepare = prepare,
                                         .propose = propose,
                                         .cut = cut };
