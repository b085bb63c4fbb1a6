/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Drafts of the model's own layers that are in RAM while the others stream (src/forward/pinned.c). A token of
 * a draft costs these layers and the head's sketch, so drafts are about as long as the last ones were right,
 * and end where the layers are not sure. */
#include <stdlib.h>

#include "src/speculate/length.h"

typedef struct Source {
    QsfForward *fwd;
    QsfDraftLength length;
} Source;

static int open_source(void **state, const QsfDraftOpen *o, QsfErr *err) {
    *state = NULL;
    if (!o->plan->holds) return QSF_OK;
    Source *s = malloc(sizeof *s);
    if (s == NULL) return qsf_err_memory(err, "speculation");
    *s = (Source){ .fwd = o->fwd };
    qsf_draft_length_init(&s->length, true);
    *state = s;
    return QSF_OK;
}

static void close_source(void *state, QsfLedger *ledger) {
    (void)ledger;
    free(state);
}

static uint32_t propose(void *state, const QsfDraftView *v, uint32_t max, int32_t *out, unsigned *grade) {
    Source *s = state;
    float margin = 0;
    const uint32_t want = qsf_draft_length_next(&s->length, v, max);
    if (!qsf_forward_drafts(s->fwd, NULL)) return 0;
    const uint32_t n = qsf_forward_draft(s->fwd, v->ids[v->n - 1], want, QSF_DRAFT_CERTAIN, out, &margin);
    qsf_draft_length_note(&s->length, v, out, n);
    *grade = qsf_draft_margin_grade(margin);
    return n;
}

const QsfDraftSource qsf_draft_pinned = {
    .drafting = QSF_DRAFTING_PINNED, .open = open_source, .close = close_source, .propose = propose
};
