/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of adapters share. */
#ifndef QSF_MODEL_ADAPTER_IMPL_H
#define QSF_MODEL_ADAPTER_IMPL_H

#include "src/model/adapter.h"

/* Sets QSF_E_MODEL, "FILE: ..."; returns it. */
int qsf_adapter_fail(const char *path, QsfErr *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* adapter_match.c: finds the uses of all pairs, and the sizes in memory. QSF_E_MODEL for a pair that no
 * matrix of the model fits; QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_adapters_match(QsfAdapterSet *s, const QsfModel *m, QsfErr *err);

/* Opens the file of a spec (base NULL: a control vector), or returns the open one. *bytes: what it has
 * charged to META. Errors of qsf_source_open_adapter. */
int qsf_adapter_source(QsfSource **src, const QsfAdapterSpec *spec, const QsfAdapterBase *base,
                       QsfLedger *ledger, uint64_t *bytes, QsfErr *err);

/* adapter_control.c: opens and checks a control vector, as the next one of s. Errors of qsf_adapters_open. */
int qsf_adapter_open_control(QsfAdapterSet *s, const QsfModel *m, const QsfAdapterSpec *spec, QsfErr *err);

#endif
