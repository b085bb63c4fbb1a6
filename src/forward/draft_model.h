/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A draft model: a second, smaller model with the vocabulary of the model that it drafts for, of any
 * architecture. It has a forward pass and a KV cache of its own, for the same conversation, and is entirely
 * in RAM. It evaluates what the conversation has beyond what it has seen, then guesses greedily; what it
 * evaluated of its guesses is taken back where the conversation went another way. With recurrent states, it
 * keeps a copy of them at the end of what is known to be right. Nothing here changes a result of the model.
 * Everything is in the plan (qsf_draft_model_plan). The model's thread. */
#ifndef QSF_FORWARD_DRAFT_MODEL_H
#define QSF_FORWARD_DRAFT_MODEL_H

#include "src/forward/forward.h"

#define QSF_DRAFT_MODEL_TOKENS 16u /* of a draft */

typedef struct QsfDraftModel QsfDraftModel;

/* Opens the header of a model file or directory. Errors of qsf_model_open. The caller must compare the
 * vocabularies (token/vocab_compare.h) before anything is loaded, and destroys it. */
int qsf_draft_model_create(QsfDraftModel **out, const char *path, QsfLedger *ledger, QsfErr *err);
void qsf_draft_model_destroy(QsfDraftModel *x); /* NULL allowed */
/* Returns its file, owned by x. */
const QsfSource *qsf_draft_model_source(const QsfDraftModel *x);
/* Sets the number of tokens that both vocabularies have; others are neither read nor guessed. */
void qsf_draft_model_set_vocab(QsfDraftModel *x, uint32_t n);

/* How much memory a draft model may have: the first way is the fastest. */
enum { QSF_DRAFT_MODEL_WAYS = 3 };
/* Plans it beside a plan of the model with these options, for ctx positions and its types of the KV cache, in
 * this way; adds what it takes to rows (QSF_MEM_N). Before it is loaded, or before qsf_draft_model_replan.
 * QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_draft_model_plan(QsfDraftModel *x, const QsfPlanOptions *o, uint32_t ctx, QsfKvTypes kv, unsigned way,
                         uint64_t *rows, QsfErr *err);
/* Returns the memory of its plan, in bytes. */
uint64_t qsf_draft_model_bytes(const QsfDraftModel *x);
/* After a replan of the model: puts the new plan in force, with this pool. Errors of qsf_forward_replan; it
 * must be destroyed then. */
int qsf_draft_model_replan(QsfDraftModel *x, QsfPool *pool, QsfErr *err);
/* Maps memory and begins to read the weights; o: those of the model's forward pass. QSF_E_BUDGET,
 * QSF_E_RUNTIME, QSF_E_MODEL, QSF_E_INTERRUPTED. */
int qsf_draft_model_load(QsfDraftModel *x, const QsfForwardOptions *o, QsfErr *err);

/* The conversation has only its first n tokens, or others after them. */
void qsf_draft_model_cut(QsfDraftModel *x, uint32_t n);
/* Evaluates ids[0..n), n >= 1, the tokens of the conversation, as far as it has not seen them; of a
 * conversation longer than its context the end. Codes of qsf_forward_eval; a later call repeats what is
 * missing. */
int qsf_draft_model_follow(QsfDraftModel *x, const int32_t *ids, uint32_t n, QsfErr *err);
/* Guesses what comes after ids[0..n), which it follows first: up to `most` tokens into out. *margin becomes
 * by how much the logit of the first one exceeds all others; after a token with a margin below `least` the
 * draft ends. Returns how many; errors end it. */
uint32_t qsf_draft_model_draft(QsfDraftModel *x, const int32_t *ids, uint32_t n, uint32_t most, float least,
                               int32_t *out, float *margin);
/* For tests: its forward pass, NULL until it is loaded. */
QsfForward *qsf_draft_model_forward(const QsfDraftModel *x);

#endif
