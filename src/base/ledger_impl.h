/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files that map memory for the ledger share. */
#ifndef QSF_BASE_LEDGER_IMPL_H
#define QSF_BASE_LEDGER_IMPL_H

#include <stdbool.h>

#include "src/base/ledger.h"

/* A mapping has come. */
void qsf_region_add(QsfLedger *l, QsfMemCat cat, const char *what, const void *p, uint64_t bytes);
/* A mapping of `old` bytes at p has become one of `bytes` at q; 0 bytes = it is gone. what may be NULL. */
void qsf_region_change(QsfLedger *l, QsfMemCat cat, const char *what, const void *p, uint64_t old, const void *q,
                       uint64_t bytes);

/* Whether the mapping that is about to be made shall fail (qsf_mem_inject_failure). */
bool qsf_mem_fails_now(void);
int qsf_mem_none(const char *what, uint64_t bytes, QsfErr *err); /* QSF_E_RUNTIME */

#endif
