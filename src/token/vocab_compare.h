/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compares the vocabularies of two model files: a model can draft for another one only if the ids of both
 * stand for the same bytes. */
#ifndef QSF_TOKEN_VOCAB_COMPARE_H
#define QSF_TOKEN_VOCAB_COMPARE_H

#include "src/file/source.h"

/* Compares the tokens of `other` with those of `src` by the bytes of every one, special and added tokens
 * included. Either vocabulary may be longer, as padded ones are: *n becomes the number of tokens that both
 * have. Roles may differ (a chat model has control tokens where its base model has ordinary ones), and so may
 * the texts of tokens that are unused in both. QSF_E_MODEL: the message names `other`, and the first token
 * that differs with its id; also where a file has no vocabulary. QSF_E_RUNTIME, QSF_E_INTERRUPTED. Any
 * thread. */
int qsf_vocab_compare(const QsfSource *src, const QsfSource *other, uint32_t *n, QsfErr *err);

#endif
