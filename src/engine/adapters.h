/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The settings "lora" and "control-vector": lists of files with scales, and the adapters that they name. */
#ifndef QSF_ENGINE_ADAPTERS_H
#define QSF_ENGINE_ADAPTERS_H

#include <limits.h>

#include "qsf_engine.h"
#include "src/model/adapter.h"

/* One file of a list. */
typedef struct QsfAdapterItem {
    char path[PATH_MAX];
    float scale; /* 1 where none is given */
} QsfAdapterItem;

/* Writes what is wrong with a value that the kind of these settings refuses; false: that is not known. */
bool qsf_adapters_explain(const char *value, char *dst, size_t cap);
/* Do two settings name other adapters, or other scales? */
bool qsf_adapters_differ(const QSFSettings *a, const QSFSettings *b);
/* Opens what the settings name, for a model; as qsf_adapters_open, with the identities of the files. Files
 * that `have` (NULL = none) has open are borrowed from it. */
int qsf_adapters_of_settings(QsfAdapterSet **out, const QsfModel *m, const QSFSettings *s,
                             const QsfAdapterSet *have, bool exact, QsfLedger *ledger, QsfErr *err);
/* Do the settings name the files of a set in the same order, but LoRA adapters with other scales? Then
 * scale[QSF_ADAPTERS_MAX] becomes these scales. */
bool qsf_adapters_only_scales(const QsfAdapterSet *set, const QSFSettings *s, float *scale);
/* Opens, checks and closes the files that `s` names and `now` (NULL = none) does not, for a model. Any
 * thread. Errors of qsf_adapters_open. */
int qsf_adapters_check(const QsfModel *m, const QSFSettings *s, const QSFSettings *now, QsfErr *err);

#endif
