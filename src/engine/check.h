/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks whether a model can be opened: the checks of qsf_runtime_open that read no weights, for code that
 * only copies or verifies a model. Any thread. */
#ifndef QSF_ENGINE_CHECK_H
#define QSF_ENGINE_CHECK_H

#include "src/model/model.h"

/* Checks that the model has weights, not only a vocabulary. QSF_E_MODEL; the message names the file. */
int qsf_check_weights(const QsfModel *m, QsfErr *err);

/* Checks the hyperparameters, the name, shape and type of every tensor, the tokenizer and the model's own
 * chat template. src stays owned by the caller and is not changed. to_convert: as in qsf_model_of_source.
 * foreign (cap bytes) gets the name of an architecture that this version cannot run, else ""; its
 * hyperparameters and tensors are not checked. Codes of qsf_model_open, qsf_tokenizer_open and
 * qsf_chat_template_open; each message names the file. */
int qsf_check_source(QsfSource *src, bool to_convert, char *foreign, size_t cap, QsfLedger *ledger,
                     QsfErr *err);
/* The same for metadata alone; tensors are not checked. */
int qsf_check_meta(const QsfSource *meta, char *foreign, size_t cap, QsfLedger *ledger, QsfErr *err);

#endif
