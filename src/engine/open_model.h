/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens the model of a runtime before there is a plan. One thread. */
#ifndef QSF_ENGINE_OPEN_MODEL_H
#define QSF_ENGINE_OPEN_MODEL_H

#include "src/engine/runtime.h"

/* Returns the bytes that the process may have while a model is opened, whose plan is not known yet: the
 * budget of the settings, or the largest automatic one. base: the resident set before. */
uint64_t qsf_opening_budget(const QSFSettings *s, uint64_t base);

/* Opens r->model: headers, metadata and the files of a vocabulary may take what the budget leaves beside the
 * program (base bytes). If that is too little, a second attempt may take 64 MB, or three quarters of what is
 * available if that is less, because only a plan says what is missing: *opening (else 0) is then the smallest
 * budget in which the model can be opened, and larger than the one of the settings. QSF_E_BUDGET names the
 * file if that is too little, too; else as qsf_model_open. */
int qsf_open_model(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, uint64_t base,
                   uint64_t *opening, QsfErr *err);

/* Opens another part with fn, while the heap has what the budget (bytes) leaves: the vocabulary and the chat
 * template. QSF_E_BUDGET, else as fn. */
typedef int QsfOpenFn(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, QsfErr *err);
int qsf_open_part(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, uint64_t budget, QsfOpenFn *fn,
                  QsfErr *err);
/* The same for a vocabulary alone, for which there is no plan. As in qsf_open_model it may have 64 MB in any
 * case: the caller compares what was taken with the budget, and names one that works. base: the resident set
 * before. */
int qsf_open_text(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, uint64_t base, QsfOpenFn *fn,
                  QsfErr *err);
/* The same for the adapters of s; have: the set in use, or NULL. Errors as qsf_adapters_of_settings. */
int qsf_open_adapters(QsfAdapterSet **out, QsfRuntime *r, const QSFSettings *s, const QsfAdapterSet *have,
                      uint64_t budget, QsfErr *err);

#endif
