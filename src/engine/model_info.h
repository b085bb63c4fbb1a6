/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is known about a model without reading its weights: whether it can be opened, its description, the
 * settings it recommends, and a number that recognizes it. Any thread. */
#ifndef QSF_ENGINE_MODEL_INFO_H
#define QSF_ENGINE_MODEL_INFO_H

#include "qsf_engine.h"
#include "src/model/model.h"

/* ---- can it be opened? The checks of qsf_runtime_open that read no weights, also for code
 * that only copies or verifies a
 * model ---- */

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

/* ---- its description, from its metadata and its list of tensors ---- */

/* Writes "llama 1.1B Q4_0": architecture, parameters, and the weight type that takes the most bytes. */
void qsf_model_summary(const QsfModel *m, char *dst, size_t cap);
/* Returns several lines of text for /show model; malloc'ed, NULL when out of memory. */
char *qsf_model_text(const QsfModel *m);

/* ---- sampling settings that it recommends: general.sampling.* of its metadata
 * (ggml-org/llama.cpp pull 17120), written by
 * the model's publisher. The user's settings override them; they override the program's defaults ---- */

/* Fills advice with the program's defaults and the recommended values. A value that the setting rejects, or
 * of the wrong type, is ignored: a bad hint must not prevent opening the model. */
void qsf_model_defaults_read(const QsfSource *src, QSFSettings *advice);

/* Copies the rows that a model can recommend, unless the user set them in dst. */
void qsf_model_defaults_apply(QSFSettings *dst, const QSFSettings *advice);

/* ---- its identity ---- */

/* Returns a number of the model: of its metadata (with overrides; of arrays the length), its
 * table of tensors, the sizes of its files, the checksums that they contain, and samples of their
 * bytes. Not of names and times of files: a copy is the same model. Reads about 70 pages of each
 * file. QSF_E_MODEL, QSF_E_RUNTIME. */
int qsf_model_identity(const QsfSource *src, uint64_t *out, QsfErr *err);

#endif
