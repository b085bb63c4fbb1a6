/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/speculate/length.h"

#include <string.h>

#define FIRST  2.0 /* tokens of a draft before anything is known */
#define MEMORY 8.0 /* drafts that an average is over, about */
#define BEYOND 1.5 /* a draft is longer than the average of what was right by this */

void qsf_draft_length_init(QsfDraftLength *l) { *l = (QsfDraftLength){ .right = FIRST - BEYOND }; }

static void judge(QsfDraftLength *l, const QsfDraftView *v) {
    uint32_t right = 0;
    if (l->n == 0 || v->n <= l->at) return;
    while (right < l->n && l->at + right < v->n && v->ids[l->at + right] == l->last[right]) right++;
    l->right += (right - l->right) / MEMORY;
    l->n = 0;
}

uint32_t qsf_draft_length_next(QsfDraftLength *l, const QsfDraftView *v, uint32_t most) {
    judge(l, v);
    l->n = 0;
    const uint32_t want = (uint32_t)(l->right + BEYOND + 0.5);
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
