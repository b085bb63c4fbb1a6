/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Decides how many drafts a pass has, from what was measured: how often drafts are accepted, by source, grade
 * and position, and what a pass costs by its width. Where drafts do not pay, there are none for a while. Only
 * speed depends on it. Times are nanoseconds. One thread. */
#ifndef QSF_SPECULATE_CONTROL_H
#define QSF_SPECULATE_CONTROL_H

#include "src/speculate/source.h"

/* Statistics of the drafts of one source and grade. */
typedef struct QsfDraftRates {
    double rate[QSF_DRAFT_MOST]; /* share of drafts at a position that are accepted if those before are */
} QsfDraftRates;

typedef struct QsfDraftControl {
    QsfDraftRates rates[QSF_DRAFT_SOURCES][QSF_DRAFT_GRADES];
    double cost[QSF_DRAFT_COLS + 1];   /* of a pass by width; 0 = not measured */
    uint32_t seen[QSF_DRAFT_COLS + 1]; /* passes of that width, up to a limit */
    double slope; /* a guess: what each further column adds, as a share of the cost of one */
    double yield[QSF_DRAFT_SOURCES]; /* of passes with its drafts: how many times as fast as single tokens */
    double ask[QSF_DRAFT_SOURCES];   /* time of asking it */
    uint32_t passes;
    double lost;  /* time that drafts have cost, less what they have saved */
    double spent; /* in passes */
} QsfDraftControl;

/* Forgets everything; streams: a pass mostly reads, whatever its width. */
void qsf_draft_control_init(QsfDraftControl *c, bool streams);
/* Returns how many of up to `most` drafts of this source and grade a pass should have, 0: none; *gain becomes
 * how many times as fast as single tokens that is expected to be. */
uint32_t qsf_draft_control_width(const QsfDraftControl *c, unsigned source, unsigned grade, uint32_t most,
                                 double *gain);
/* May a source be asked at all? Not for a while after its drafts have cost too much. */
bool qsf_draft_control_tries(const QsfDraftControl *c);
/* A pass with n drafts, 0 = none, took ns, and the first `accepted` were right. proposing: ns before it. */
void qsf_draft_control_note(QsfDraftControl *c, unsigned source, unsigned grade, uint32_t n,
                            uint32_t accepted, double ns, double proposing);

#endif
