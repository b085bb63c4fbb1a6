/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Can a model be opened? The checks of qsf_runtime_open that read no weights, for what only copies or verifies a
 * model. Any thread. */
#ifndef QSF_ENGINE_CHECK_H
#define QSF_ENGINE_CHECK_H

#include "src/model/model.h"

/* QSF_E_MODEL, which names the file: it holds a vocabulary but no weights. */
int qsf_check_weights(const QsfModel *m, QsfErr *err);

/* Hyperparameters, every tensor's name, shape and type, the tokenizer and the model's own chat template. src stays
 * the caller's and is not changed. to_convert: as in qsf_model_of_source. foreign (cap bytes) gets the name of an
 * architecture that this version cannot run, whose numbers and tensors are not checked, else "". QSF_E_MODEL and the
 * other codes of qsf_model_open, qsf_tokenizer_open and qsf_chat_template_open; each message names the file. */
int qsf_check_source(QsfSource *src, bool to_convert, char *foreign, size_t cap, QsfLedger *ledger, QsfErr *err);
/* The same for metadata alone, whose tensors are not at hand and not checked. */
int qsf_check_meta(const QsfSource *meta, char *foreign, size_t cap, QsfLedger *ledger, QsfErr *err);

#endif
