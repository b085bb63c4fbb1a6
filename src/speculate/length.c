/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/speculate/length.h"

#include <string.h>

#define FIRST   0.7       /* share that is right at a position before anything is known */
#define STEP    (1 / 8.0) /* weight of a draft in it */
#define WORTH   0.35      /* a token that is right less often costs more than it saves, */
#define STREAMS 0.15      /* or where a pass takes as long whatever its width */
#define TRY     16u       /* one of this many drafts is a token longer, as the text may have changed */

void qsf_draft_length_init(QsfDraftLength *l, bool streams) {
    *l = (QsfDraftLength){ .worth = streams ? STREAMS : WORTH };
    for (uint32_t i = 0; i < QSF_DRAFT_MOST; i++) l->rate[i] = FIRST;
}

/* Tokens after the first wrong one, or after the end of the text, say nothing. */
static void judge(QsfDraftLength *l, const QsfDraftView *v) {
    for (uint32_t i = 0; i < l->n && l->at + i < v->n; i++) {
        const bool right = v->ids[l->at + i] == l->last[i];
        l->rate[i] += ((right ? 1 : 0) - l->rate[i]) * STEP;
        if (!right) break;
    }
    l->n = 0;
}

uint32_t qsf_draft_length_next(QsfDraftLength *l, const QsfDraftView *v, uint32_t most) {
    uint32_t want = 1;
    judge(l, v);
    double all = l->rate[0];
    while (want < QSF_DRAFT_MOST && (all *= l->rate[want]) >= l->worth) want++;
    if (++l->drafts % TRY == 0) want++;
    return want < most ? want : most;
}

void qsf_draft_length_note(QsfDraftLength *l, const QsfDraftView *v, const int32_t *ids, uint32_t n) {
    l->n = n < QSF_DRAFT_MOST ? n : QSF_DRAFT_MOST;
    l->at = v->n;
    memcpy(l->last, ids, l->n * sizeof *ids);
}

unsigned qsf_draft_margin_grade(float margin) {
    return margin < QSF_DRAFT_CERTAIN ? 0 : margin < 2 ? 1 : margin < 4 ? 2 : 3;
}
