/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Drafts of the model's own next-token blocks (src/forward/nextn.h). A token of a draft costs a block and the
 * head, whether it is right or not, so drafts have the length that was right often enough (length.h), and end
 * where a block is not sure. */
#include "src/forward/nextn.h"

#include <stdlib.h>

#include "src/speculate/length.h"

typedef struct Source {
    QsfNextn *x;
    QsfDraftLength length;
} Source;

static int open_source(void **state, const QsfDraftOpen *o, QsfErr *err) {
    *state = NULL;
    if (o->nextn == NULL) return QSF_OK;
    Source *s = malloc(sizeof *s);
    if (s == NULL) return qsf_err_memory(err, "speculation");
    *s = (Source){ .x = o->nextn };
    qsf_draft_length_init(&s->length, qsf_plan_streams(o->plan));
    *state = s;
    return QSF_OK;
}

static void close_source(void *state, QsfLedger *ledger) {
    (void)ledger;
    free(state);
}

static void prepare(void *state, const QsfDraftView *v) {
    const Source *s = state;
    (void)v;
    qsf_nextn_prepare(s->x);
}

static uint32_t propose(void *state, const QsfDraftView *v, uint32_t max, int32_t *out, unsigned *grade) {
    Source *s = state;
    float margin = 0;
    const uint32_t want = qsf_draft_length_next(&s->length, v, max);
    if (v->n == 0 || !qsf_nextn_ready(s->x, NULL)) return 0;
    const uint32_t n = qsf_nextn_draft(s->x, v->ids[v->n - 1], want, QSF_DRAFT_CERTAIN, out, &margin);
    qsf_draft_length_note(&s->length, v, out, n);
    *grade = qsf_draft_margin_grade(margin);
    return n;
}

_Static_assert(QSF_DRAFT_MOST <= QSF_NEXTN_DRAFTS, "a block can draft as much as a pass has room for");

const QsfDraftSource qsf_draft_nextn = {
    .drafting = QSF_DRAFTING_NEXTN,
    .open = open_source,
    .close = close_source,
    .prepare = prepare,
    .propose = propose,
};
