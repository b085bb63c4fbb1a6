/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long a draft should be, for sources whose guesses cost something each: as long as its last token is
 * right often enough, by how often each position was. One thread. */
#ifndef QSF_SPECULATE_LENGTH_H
#define QSF_SPECULATE_LENGTH_H

#include "src/speculate/source.h"

#define QSF_DRAFT_CERTAIN 0.7f /* margin of a token over the second one below which a draft ends after it */

typedef struct QsfDraftLength {
    double rate[QSF_DRAFT_MOST]; /* share of tokens at a position that are right if those before are */
    double worth; /* a draft ends before a token that is right less often, all before included */
    int32_t last[QSF_DRAFT_MOST];
    uint32_t n, at; /* the last draft: last[0..n) after `at` tokens */
    uint32_t drafts;
} QsfDraftLength;

/* streams: a pass takes about as long whatever its width. */
void qsf_draft_length_init(QsfDraftLength *l, bool streams);
/* Looks at what came instead of the last draft, whether it was evaluated or not, and returns how many tokens,
 * at most `most`, the next one should have. */
uint32_t qsf_draft_length_next(QsfDraftLength *l, const QsfDraftView *v, uint32_t most);
/* The next draft is ids[0..n), after v. */
void qsf_draft_length_note(QsfDraftLength *l, const QsfDraftView *v, const int32_t *ids, uint32_t n);
/* Returns the grade of a draft whose first token has this margin. */
unsigned qsf_draft_margin_grade(float margin);

#endif
