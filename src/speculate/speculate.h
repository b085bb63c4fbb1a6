/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Speculation: several tokens are computed in one pass. A source guesses what comes next, the pass evaluates
 * the guesses behind the token that was chosen, and the sampler chooses at each position as it always does.
 * As long as it chooses what was guessed, the next position counts, too; the rest is taken back. The logits
 * of a position do not depend on how many positions a pass has, so the tokens are the same as without. One
 * thread. */
#ifndef QSF_SPECULATE_SPECULATE_H
#define QSF_SPECULATE_SPECULATE_H

#include <stdatomic.h>

#include "qsf_engine.h"
#include "src/speculate/control.h"

/* What drafts came to, since the last reset; any thread may read it. */
typedef struct QsfDraftCounts {
    atomic_uint_fast64_t passes, tokens; /* of answers: passes, and the tokens that they added */
    atomic_uint_fast64_t drafted[QSF_DRAFT_SOURCES][QSF_DRAFT_MOST],
        accepted[QSF_DRAFT_SOURCES][QSF_DRAFT_MOST];
} QsfDraftCounts;

/* What is evaluated together. */
typedef struct QsfDraft {
    int32_t ids[QSF_DRAFT_COLS]; /* the token that was chosen, then n drafts */
    uint32_t n;
    unsigned source, grade;
    uint64_t begun_ns, proposed_ns;
} QsfDraft;

/* Zeroed, it makes no drafts. */
typedef struct QsfSpeculator {
    QsfLedger *ledger;
    void *state[QSF_DRAFT_SOURCES]; /* NULL: the source is not open */
    QsfDrafting drafting;
    uint32_t cols, lookup_tokens; /* of the plan */
    atomic_uint width;            /* cols, for any thread */
    bool prompted;                /* a prompt was evaluated since the sources were asked */
    QsfDraftControl control;
    QsfDraftCounts counts;
    _Atomic(const char *) why; /* no drafts were made for the last token, static; NULL = some may have been */
} QsfSpeculator;

/* Follows a plan: opens the sources for which it has memory, and closes others. Never fails: without memory
 * there are no drafts. The ledger is not frozen. */
void qsf_speculate_plan(QsfSpeculator *s, const QsfDraftOpen *o, QsfDrafting drafting);
/* Before a plan with less memory for drafts: gives it back. */
void qsf_speculate_shrink(QsfSpeculator *s, const QsfPlan *p);
void qsf_speculate_close(QsfSpeculator *s); /* zeroed is allowed */

/* The conversation has only its first n tokens. */
void qsf_speculate_cut(QsfSpeculator *s, uint32_t n);
/* Begins a pass: d->ids[0] becomes the last token of v, and as many drafts as pay follow, at most `most`; 0
 * if why, the reason against drafts, is not NULL. */
void qsf_speculate_begin(QsfSpeculator *s, const QsfDraftView *v, uint32_t most, const char *why,
                         QsfDraft *d);
/* The pass succeeded, and the first `accepted` drafts were what the sampler chose. v: as before it. */
void qsf_speculate_end(QsfSpeculator *s, const QsfDraftView *v, const QsfDraft *d, uint32_t accepted);

void qsf_speculate_reset_counts(QsfSpeculator *s);
/* Fills *out. Any thread. */
void qsf_speculate_info(const QsfSpeculator *s, QSFSpeculation *out);

#endif
