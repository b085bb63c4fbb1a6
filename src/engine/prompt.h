/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prompts are made within the RAM budget, and not at all when they certainly do not fit in the context. The thread of the
 * runtime. */
#ifndef QSF_ENGINE_PROMPT_H
#define QSF_ENGINE_PROMPT_H

#include "src/engine/runtime.h"

/* QSF_E_CONTEXT if even the smallest possible number of tokens of the text exceeds the context and no eviction policy is
 * set; the text is not tokenized. */
int qsf_prompt_check(const QsfRuntime *r, const char *text, size_t len, QsfErr *err);
/* Sets the error of a prompt of n tokens; more: it has more. Returns QSF_E_CONTEXT. */
int qsf_prompt_too_long(const QsfRuntime *r, size_t n, bool more, QsfErr *err);

/* Returns the bytes that a prompt with this message charges, besides the constant ones: for copies of the
 * text and for tokenizing it. A message that is certainly too long for the context is not tokenized. */
uint64_t qsf_prompt_need(const QsfRuntime *r, const char *text, size_t len);
/* Appends to a refusal (QSF_E_BUDGET) the smallest budget with which this prompt is made, which charges `need` bytes; to no
 * other error. Returns err->code. */
int qsf_prompt_advise(const QsfRuntime *r, uint64_t need, QsfErr *err);

/* As qsf_think_encode with the template and the vocabulary of r. ids, which must be empty, and all memory for making them
 * are charged to the ledger. Also QSF_E_BUDGET, whose message ends with the smallest budget that works, and QSF_E_CONTEXT for a
 * newest message that does not fit in the context. */
int qsf_prompt_encode(QsfRuntime *r, const QsfMsg *msgs, size_t n, unsigned flags, QsfIds *ids,
                      QsfThinkPrompt *where, QsfErr *err);

#endif
