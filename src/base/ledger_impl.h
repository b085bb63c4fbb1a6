/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files that map memory for the ledger. */
#ifndef QSF_BASE_LEDGER_IMPL_H
#define QSF_BASE_LEDGER_IMPL_H

#include <stdbool.h>

#include "src/base/ledger.h"

/* Records a new mapping. */
void qsf_region_add(QsfLedger *l, QsfMemCat cat, const char *what, const void *p, uint64_t bytes);
/* Records that a mapping of `old` bytes at p was replaced by one of `bytes` at q; 0 bytes = it was removed.
 * what may be NULL. */
void qsf_region_change(QsfLedger *l, QsfMemCat cat, const char *what, const void *p, uint64_t old,
                       const void *q, uint64_t bytes);

/* Returns whether the next mapping must fail (qsf_mem_inject_failure). */
bool qsf_mem_fails_now(void);
/* Sets the error of a failed mapping and returns QSF_E_RUNTIME. */
int qsf_mem_none(const char *what, uint64_t bytes, QsfErr *err);

#endif
