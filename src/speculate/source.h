/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sources of drafts: guesses at the next tokens, which the model then checks several at a time. A wrong draft
 * costs time and changes nothing, so a source may guess from anything; it must not allocate while the ledger
 * is frozen (the token loop). A row of the table is a source; a value of the setting "speculate" names it
 * (plan/drafting.h). One thread. */
#ifndef QSF_SPECULATE_SOURCE_H
#define QSF_SPECULATE_SOURCE_H

#include "src/base/ledger.h"
#include "src/forward/forward.h"
#include "src/plan/plan.h"

/* What a source is opened with; everything outlives it. */
typedef struct QsfDraftOpen {
    QsfForward *fwd;
    const QsfModel *model;
    struct QsfNextn *nextn;      /* next-token blocks that are loaded, or NULL */
    struct QsfDraftModel *draft; /* a draft model that is loaded, or NULL */
    const QsfPlan *plan;         /* with the memory that a source may charge to the ledger */
    QsfLedger *ledger;
} QsfDraftOpen;

/* The conversation. */
typedef struct QsfDraftView {
    const int32_t *ids; /* (n) its tokens. The last one was chosen and is not evaluated yet */
    uint32_t n;
} QsfDraftView;

typedef struct QsfDraftSource {
    QsfDrafting drafting; /* the value of the setting that names it */
    /* Opens a source. *state NULL: it cannot draft for this model or plan; the result is QSF_OK.
     * QSF_E_BUDGET, QSF_E_RUNTIME. The ledger is not frozen. */
    int (*open)(void **state, const QsfDraftOpen *o, QsfErr *err);
    void (*close)(void *state, QsfLedger *ledger);
    /* Before the first question after a prompt: evaluates what only has to be evaluated once. Its time is not
     * that of a draft, as that of the prompt is not that of a token. NULL: nothing. */
    void (*prepare)(void *state, const QsfDraftView *v);
    /* Writes up to max guesses at the tokens after v to out, and returns how many; *grade becomes how
     * sure it is of them, 0 to QSF_DRAFT_GRADES - 1: acceptance is measured for each. */
    uint32_t (*propose)(void *state, const QsfDraftView *v, uint32_t max, int32_t *out, unsigned *grade);
    /* After a pass: the first n of the guesses were what the model chose, and are in the cache with the
     * token before them. NULL: the source does not need it. */
    void (*accepted)(void *state, const QsfDraftView *v, uint32_t n);
    /* Positions n and later of the conversation are gone, or have other tokens now; may be NULL. */
    void (*cut)(void *state, uint32_t n);
} QsfDraftSource;

#define QSF_DRAFT_GRADES 4u
#define QSF_DRAFT_MOST   (QSF_DRAFT_COLS - 1)

/* The sources, by how cheap they are. */
extern const QsfDraftSource qsf_draft_lookup;
extern const QsfDraftSource qsf_draft_nextn;
extern const QsfDraftSource qsf_draft_pinned;
extern const QsfDraftSource qsf_draft_model;
#define QSF_DRAFT_SOURCES 4u
extern const QsfDraftSource *const qsf_draft_sources[QSF_DRAFT_SOURCES];

#endif
