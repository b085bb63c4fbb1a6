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

/* Do two settings name other adapters, or other scales? */
bool qsf_adapters_differ(const QSFSettings *a, const QSFSettings *b);
/* Opens what the settings name, for a model; as qsf_adapters_open, with the identities of the files. */
int qsf_adapters_of_settings(QsfAdapterSet **out, const QsfModel *m, const QSFSettings *s, bool exact,
                             QsfLedger *ledger, QsfErr *err);

#endif
