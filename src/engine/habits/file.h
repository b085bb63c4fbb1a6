/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which experts of a model were chosen in earlier conversations: a small file per model in
 * $XDG_STATE_HOME/qsf/experts (docs/FORMATS.md). The file is not trusted: it decides what is read first into
 * memory and what a plan expects, never a size or a result. Of two processes the last one to write wins. */
#ifndef QSF_ENGINE_HABITS_FILE_H
#define QSF_ENGINE_HABITS_FILE_H

#include "src/base/ledger.h"
#include "src/base/paths.h"
#include "src/file/habits.h"
#include "src/plan/units.h"

typedef struct QsfHabits {
    QsfLedger *ledger;
    uint32_t n;      /* experts of all blocks */
    uint32_t tokens; /* of answers, that were counted; 0: nothing is known */
    uint16_t *uses;  /* (n) how often each expert was chosen for them; on the heap, charged to META */
    uint32_t depth[QSF_EXPERT_DEPTHS]; /* as expert_depth of QsfForwardStats, with a sum of about 2^16 */
} QsfHabits;

/* Nothing is known of n experts. All memory, also for reading and writing, is charged to META of the ledger,
 * which outlives h. QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_habits_init(QsfHabits *h, uint32_t n, QsfLedger *ledger, QsfErr *err);
void qsf_habits_free(QsfHabits *h); /* depth and tokens stay; a zeroed one is allowed */
/* Adds what was chosen for `tokens` more tokens. uses (h->n); depth may be NULL. Pure. */
void qsf_habits_add(QsfHabits *h, const uint32_t *uses, uint32_t tokens, const uint32_t *depth);

/* Writes the path of a model's file to out; false if neither XDG_STATE_HOME nor HOME is set, or it is too
 * long. model: qsf_model_identity. */
bool qsf_habits_path(char out[QSF_PATH_MAX], uint64_t model);
/* Does the folder of these files exist? Without it, no identity is needed, whose 66 reads take a second on a
 * slow disk. */
bool qsf_habits_any(void);
/* Fills h, which is initialized, from a file; with QSF_OK and h->tokens 0 there is none. QSF_E_MODEL: it is
 * damaged, of another model or another version; QSF_E_RUNTIME: it cannot be read; QSF_E_BUDGET: no memory to
 * read it. Then nothing is known. */
int qsf_habits_read(QsfHabits *h, const char *path, uint64_t model, QsfErr *err);
/* Creates or replaces it, and its folder, readable by the user only. Not synced: what a power failure damages
 * is found by its checksum. QSF_E_RUNTIME, QSF_E_BUDGET. */
int qsf_habits_write(const QsfHabits *h, const char *path, uint64_t model, QsfErr *err);

#endif
