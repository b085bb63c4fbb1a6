/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Drafts of the model's own next-token blocks (src/forward/nextn.h). A token of a draft costs a block and the
 * head, whether it is right or not, so drafts are about as long as the last ones were right, and end where a
 * block is not sure. */
#include "src/forward/nextn.h"

#include <stdlib.h>
#include <string.h>

#include "src/speculate/source.h"

#define FIRST   2.0  /* tokens of a draft before anything is known */
#define MEMORY  8.0  /* drafts that an average is over, about */
#define BEYOND  1.5  /* a draft is longer than the average of what was right by this */
#define CERTAIN 0.7f /* margin below which a draft ends after that token */

typedef struct Source {
    QsfNextn *x;
    double right; /* tokens of a draft that were right, on average */
    int32_t last[QSF_DRAFT_MOST];
    uint32_t n, at; /* the last draft: last[0..n) after `at` tokens */
} Source;

/* Looks at what came instead of the last draft, whether it was evaluated or not. */
static void judge(Source *s, const QsfDraftView *v) {
    uint32_t right = 0;
    if (s->n == 0 || v->n <= s->at) return;
    while (right < s->n && s->at + right < v->n && v->ids[s->at + right] == s->last[right]) right++;
    s->right += (right - s->right) / MEMORY;
    s->n = 0;
}

static int open_source(void **state, const QsfDraftOpen *o, QsfErr *err) {
    *state = NULL;
    if (o->nextn == NULL) return QSF_OK;
    Source *s = malloc(sizeof *s);
    if (s == NULL) return qsf_err_memory(err, "speculation");
    *s = (Source){ .x = o->nextn, .right = FIRST - BEYOND };
    *state = s;
    return QSF_OK;
}

static void close_source(void *state, QsfLedger *ledger) {
    (void)ledger;
    free(state);
}

/* By how far the first token was ahead of the second one. */
static unsigned grade_of(float margin) { return margin < CERTAIN ? 0 : margin < 2 ? 1 : margin < 4 ? 2 : 3; }

static uint32_t propose(void *state, const QsfDraftView *v, uint32_t max, int32_t *out, unsigned *grade) {
    Source *s = state;
    float margin = 0;
    judge(s, v);
    const uint32_t want = (uint32_t)(s->right + BEYOND + 0.5);
    s->n = 0;
    if (v->n == 0 || !qsf_nextn_ready(s->x, NULL)) return 0;
    s->n = qsf_nextn_draft(s->x, v->ids[v->n - 1], want < max ? want : max, CERTAIN, out, &margin);
    s->at = v->n;
    memcpy(s->last, out, s->n * sizeof *out);
    *grade = grade_of(margin);
    return s->n;
}

_Static_assert(QSF_DRAFT_MOST <= QSF_NEXTN_DRAFTS, "a block can draft as much as a pass has room for");

const QsfDraftSource qsf_draft_nextn = { QSF_DRAFTING_NEXTN, open_source, close_source, propose, NULL, NULL };
