/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens the model of a runtime before there is a plan. One thread. */
#ifndef QSF_ENGINE_OPEN_MODEL_H
#define QSF_ENGINE_OPEN_MODEL_H

#include "src/engine/runtime.h"

/* Opens r->model. Until it returns, headers, metadata and the files of a vocabulary may take what the budget
 * leaves beside the program (base bytes), at least 64 MB: a plan, which would say what is missing, needs
 * them. QSF_E_BUDGET names the model if that is too little; else as qsf_model_open. */
int qsf_open_model(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, uint64_t base, QsfErr *err);

#endif
